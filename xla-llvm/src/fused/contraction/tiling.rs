//! Register tiles: their rows and vectors of accumulators, the packing of operands, and blocks of columns.
//!
//! No tile is partial and no lane is masked: the last tile of rows or columns, and the last vector of few columns,
//! start earlier so that they end at the matrix edge. The overlap is computed twice.

use std::fmt;

use xla_hlo::{ElementType, Result};

use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::arrays::Arrays;
use crate::fused::contraction::axes::Axis;
use crate::fused::contraction::groups::{DotInstruction, Groups};
use crate::fused::contraction::matmul::{Along, Matmul, MatmulSide};
use crate::fused::kernel::Launch;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::frame::Frame;
use crate::fused::strategy::{Choice, Strategy};
use crate::fused::tuning::register_tiles::{
    ALIASING, BLOCK_BYTES, COLUMNS_ALONG_K, ITEMS_A_THREAD, LATENCY, LEAST_K_VECTORS, LEAST_PANELS, LEAST_TILES,
    LEAST_WORK, MOST_VECTORS, NEAR_BYTES, PART, REDUCING, SUMS_BYTES,
};

/// Register blocking of a GEMM: tiles of accumulators in registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RegisterTiles {
    /// Operand whose elements are broadcast, row by row, and operand whose columns are lanes.
    pub sides: [MatmulSide; 2],
    /// Loops over rows and columns.
    pub axes: [Axis; 2],
    /// Loops over K while rows and columns are packed.
    pub packing: [Axis; 2],
    /// Loops over K inside of a tile.
    pub sums: Axis,
    /// Number of blocks that K is split into, which are processed sequentially.
    pub parts: u64,
    /// Number of K steps in each block; steps are groups if there are any.
    pub depth: u64,
    /// Groups of K that are multiplied at once.
    pub groups: Option<Groups>,
    /// Number of rows of a tile.
    pub rows: u64,
    /// Number of vectors in a row of a tile.
    pub vectors: u64,
    /// Number of lanes of each vector.
    pub lanes: u64,
    /// Number of lanes of each sum along K if operands are read along K; otherwise 1.
    pub k_lanes: u64,
    /// Whether all elements of rows and of columns are in memory. If so, bounds conditions, which treat each merged
    /// dimension separately, are ignored.
    pub whole: [bool; 2],
    /// Places that tiles read the elements of rows and columns from.
    pub places: [Place; 2],
    /// Number of column panels in a block.
    pub block: u64,
    /// Number of row tiles in a work item.
    pub run: u64,
    /// Whether a work item also covers the outer loops over rows, so that columns are packed once for all of them.
    pub all_rows: bool,
}

/// Memory that tiles read an operand from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The operand's own array.
    Array,
    /// Panel in scratch memory, packed in vectors along this direction.
    Panel(Along),
}

impl Strategy for RegisterTiles {
    fn names() -> &'static [&'static str] {
        &["register-tiles"]
    }

    fn choose(choice: &Choice<'_, '_, '_, '_>) -> Result<Option<RegisterTiles>> {
        choice.kernel.register_tiles(choice.emitter)
    }

    fn emit<'ctx>(
        &self,
        kernel: &FusedKernel<'_, '_>,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
    ) -> Result<Launch> {
        kernel.emit_register_tiles(emitter, frame, self).map(Launch::alone)
    }
}

impl RegisterTiles {
    /// Returns the number of columns of a panel.
    pub fn columns(&self) -> u64 {
        self.vectors * self.lanes
    }

    /// Returns the number of tiles along the rows, and of panels along the columns.
    pub fn tiles(&self) -> [u64; 2] {
        [self.axes[0].extent.div_ceil(self.rows), self.axes[1].extent.div_ceil(self.columns())]
    }

    /// Returns the first columns of the vectors of a tile, relative to the tile.
    pub fn starts(&self) -> Vec<u64> {
        let last = self.axes[1].extent - self.lanes;
        (0..self.vectors).map(|vector| (vector * self.lanes).min(last)).collect()
    }

    /// Returns the row stride, in elements, of rows packed along K.
    pub fn pitch(&self) -> u64 {
        row_pitch(self.depth)
    }

    /// Returns the number of K elements in each block.
    pub fn elements_of_part(&self) -> u64 {
        self.depth * self.groups.filter(|_| self.k_lanes == 1).map_or(1, Groups::size)
    }

    /// Whether packed columns have initial sums, because the rows are offset.
    fn has_starts(&self) -> bool {
        self.places[1] != Place::Array && self.groups.is_some_and(|groups| groups.instruction.offsets_rows())
    }

    /// Returns the elements of scratch memory for rows, for columns, for sums between blocks of K, and for initial sums
    /// of columns.
    pub fn scratch(&self) -> [u64; 4] {
        let rows = match self.places[0] {
            Place::Array => 0,
            Place::Panel(Along::K) => self.rows * self.pitch(),
            Place::Panel(Along::Free) => self.rows * self.depth,
        };
        let columns = if self.places[1] == Place::Array { 0 } else { self.block * self.columns() * self.depth };
        let sums = self.outer_rows() * self.run * self.block * self.rows * self.columns();
        let starts = if self.has_starts() { self.block * self.columns() } else { 0 };
        [rows, columns, if self.parts > 1 { sums } else { 0 }, starts]
    }

    /// Returns the trip count of the outer row loops in a work item.
    fn outer_rows(&self) -> u64 {
        if self.all_rows { self.axes[0].outer.iter().product() } else { 1 }
    }

    /// Returns the extents of the loops over work items: batch, outer rows unless an item covers them, outer columns,
    /// blocks of columns, runs of row tiles.
    pub fn items(&self, batch: &[u64]) -> Vec<u64> {
        let [tiles, panels] = self.tiles();
        let rows: &[u64] = if self.all_rows { &[] } else { &self.axes[0].outer };
        let outer = batch.iter().chain(rows).chain(&self.axes[1].outer).copied();
        outer.chain([panels.div_ceil(self.block), tiles.div_ceil(self.run)]).collect()
    }
}

impl fmt::Display for RegisterTiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [m, n] = &self.axes;
        let k = self.parts * self.depth;
        write!(f, "{} x {} x {k}, {} x {} vectors", m.extent, n.extent, self.rows, self.vectors)?;
        write!(f, " of {}", self.lanes)?;
        for (place, name) in self.places.iter().zip(["rows", "columns"]) {
            match place {
                Place::Array => {}
                Place::Panel(Along::K) => write!(f, ", {name} packed along k")?,
                Place::Panel(Along::Free) => write!(f, ", {name} packed")?,
            }
        }
        if let Some(groups) = self.groups {
            write!(f, ", groups of {}", groups.size())?;
        }
        if self.k_lanes > 1 {
            write!(f, ", sums of {} lanes along k", self.k_lanes)?;
        }
        if self.parts > 1 {
            write!(f, ", {} parts of k", self.parts)?;
        }
        write!(f, ", blocks of {}", self.block * self.columns())
    }
}

impl<'m> FusedKernel<'_, 'm> {
    /// Returns the register tiles of a kernel that is a GEMM, if they pay off.
    pub(crate) fn register_tiles(&self, emitter: &Emitter<'_>) -> Result<Option<RegisterTiles>> {
        let Some(matmul) = self.only_matmul() else { return Ok(None) };
        // Elements of the last tiles are computed twice, and so is the epilogue.
        if !self.source.overwrites.is_empty() && matmul.id != self.source.root {
            return Ok(None);
        }
        let matmul = matmul.in_memory_order();
        let extents = [MatmulSide::Left, MatmulSide::Right].map(|side| matmul.extent(side));
        let work = [matmul.batches(), extents[0], extents[1], matmul.k()];
        let work = work.iter().fold(1, |product: u64, &extent| product.saturating_mul(extent));
        // Narrow integers have more lanes in vector loops, with the same wrap-around.
        let widens = !matmul.element_type.is_float() && matmul.accumulator_type != matmul.element_type;
        let is_slower =
            widens && DotInstruction::of(&matmul, emitter.target(), emitter.options().flush_denormals).is_none();
        if work < LEAST_WORK || extents.contains(&1) || is_slower {
            return Ok(None);
        }
        let arrays = self.matmul_arrays(&matmul, emitter.target())?;
        Ok(tiles(&matmul, &arrays, emitter).filter(|tiles| !widens || tiles.groups.is_some()))
    }
}

/// Chooses the tiles of a GEMM; `None` if the result's columns are not contiguous.
fn tiles(matmul: &Matmul<'_>, arrays: &Arrays, emitter: &Emitter<'_>) -> Option<RegisterTiles> {
    let Arrays { symbols, operands, result } = arrays;
    let rows = match &operands[0] {
        Some(at) => Axis::longest(&matmul.free[0], &symbols[1], &[at, result]),
        None => Axis::longest_apart(&matmul.free[0]),
    };
    let columns = match &operands[1] {
        Some(at) => Axis::last(&matmul.free[1], &symbols[2], &[at, result]),
        None => Axis::apart(&matmul.free[1]),
    };
    let column = columns.carrier(&symbols[2])?;
    // A single row costs little compared to packing its columns.
    if result.coefficient(column) != 1 || rows.extent == 1 {
        return None;
    }
    let groups = arrays.groups(matmul, columns.extent, emitter);
    let along_k = tile_along_k(matmul, arrays, groups, [rows.extent, columns.extent], emitter);
    let [height, vectors, lanes, k_lanes] = match along_k {
        Some(tile) => tile,
        None => register_tile(matmul, [rows.extent, columns.extent], emitter)?,
    };
    let packing = arrays.k_loops(matmul, groups);
    let sums = Axis::last(&matmul.contracting, &symbols[3], &[]);
    let depth = if k_lanes > 1 { matmul.k() } else { packing[0].loops().iter().product() };
    let (sides, places) = ([MatmulSide::Left, MatmulSide::Right], matmul.neighbours.map(|n| Place::Panel(n.along)));
    let items = matmul.batches() * columns.outer.iter().product::<u64>();
    let wanted = match emitter.options().threads as u64 {
        0 | 1 => 1,
        threads => ITEMS_A_THREAD * threads,
    };
    let mut tiles = RegisterTiles {
        sides,
        axes: [rows, columns],
        packing,
        sums,
        parts: 1,
        depth,
        groups,
        rows: height,
        vectors,
        lanes,
        k_lanes,
        whole: [0, 1].map(|side| operands[side].is_some()),
        places,
        block: 1,
        run: 1,
        all_rows: items >= wanted,
    };
    tiles.places = if k_lanes > 1 { [Place::Array; 2] } else { tiles.choose_places(matmul, arrays) };
    let in_place = (0..2).filter(|&side| tiles.places[side] == Place::Array).filter_map(|side| operands[side].as_ref());
    let in_place: Vec<&AffineExpr> = in_place.collect();
    tiles.sums = match groups.filter(|_| k_lanes == 1) {
        Some(_) if in_place.is_empty() => tiles.sums.part(depth),
        Some(_) => tiles.packing[0].clone(),
        None => Axis::last(&matmul.contracting, &symbols[3], &in_place),
    };
    let bytes = matmul.accumulator_type.byte_width() as u64;
    tiles.divide_k();
    tiles.choose_blocks(bytes, wanted.div_ceil(items.max(1)));
    let [_, panels] = tiles.tiles();
    tiles.choose_run(bytes, wanted.div_ceil(items.max(1) * panels.div_ceil(tiles.block)));
    if wanted > 1 {
        tiles.keep_overlaps_together();
    }
    Some(tiles)
}

impl RegisterTiles {
    /// Splits K, if it is one loop, into blocks whose panels stay in the caches for many columns.
    fn divide_k(&mut self) {
        let k = self.depth;
        let is_one_loop = [&self.packing[0], &self.packing[1], &self.sums].iter().all(|axis| axis.outer.is_empty());
        let is_ragged = self.groups.is_some_and(|groups| groups.rest() > 0);
        if !is_one_loop || is_ragged || self.places[1] == Place::Array || k <= 2 * PART.start() {
            return;
        }
        let divisor =
            |multiple: u64| PART.rev().find(|&depth| depth.is_multiple_of(multiple) && k.is_multiple_of(depth));
        let Some(depth) = divisor(16).or_else(|| divisor(1)) else { return };
        (self.depth, self.parts) = (depth, k / depth);
        self.packing = [0, 1].map(|side| self.packing[side].part(depth));
        self.sums = self.sums.part(depth);
        self.groups = self.groups.map(|groups| Groups { extent: depth * groups.size(), ..groups });
    }

    /// Chooses the number of panels per block, given the bytes of a sum and the wanted number of work items.
    fn choose_blocks(&mut self, bytes: u64, wanted: u64) {
        let [_, n] = self.tiles();
        let panel = self.columns() * self.depth * bytes;
        let fitting = (BLOCK_BYTES / panel.max(1)).clamp(1, n);
        let fitting = match self.places[1] {
            _ if self.k_lanes > 1 => fitting.min(n.div_ceil(wanted)),
            Place::Array => n,
            Place::Panel(_) => fitting,
        };
        self.block = n.div_ceil(n.div_ceil(fitting));
    }

    /// Chooses the number of row tiles per run, given the bytes of a sum and the wanted number of work items per block.
    fn choose_run(&mut self, bytes: u64, wanted: u64) {
        let [m, _] = self.tiles();
        let outer: u64 = if self.all_rows { 1 } else { self.axes[0].outer.iter().product() };
        self.run = m.div_ceil(wanted.div_ceil(outer.max(1)).clamp(1, m));
        if self.parts > 1 {
            let sums = self.outer_rows() * self.block * self.rows * self.columns() * bytes;
            self.run = self.run.min((SUMS_BYTES / sums.max(1)).max(1));
        }
    }

    /// Ensures that the last tile and the last panel are in one work item with the ones that they overlap, so that no
    /// two threads write to the same place.
    fn keep_overlaps_together(&mut self) {
        let ([tiles, panels], [rows, columns]) = (self.tiles(), [self.rows, self.columns()]);
        if !self.axes[0].extent.is_multiple_of(rows) {
            self.run = group_of_last(self.run, tiles);
        }
        if !self.axes[1].extent.is_multiple_of(columns) {
            self.block = group_of_last(self.block, panels);
        }
    }

    /// Chooses where operands are read. They are packed if they must be converted, gathered or padded for several
    /// tiles, or if they are read often enough and are too large for the caches.
    fn choose_places(&self, matmul: &Matmul<'_>, Arrays { symbols, operands, .. }: &Arrays) -> [Place; 2] {
        let bytes = matmul.accumulator_type.byte_width() as u64;
        let [tiles, panels] = self.tiles();
        let tiles = tiles * self.outer_rows();
        let along = matmul.neighbours.map(|neighbours| neighbours.along);
        let is_alike = |side: usize| matmul.bytes[side] == bytes;
        let step = |side: usize| {
            let carrier = self.axes[side].carrier(&symbols[1 + side])?;
            operands[side].as_ref().map(|at| at.coefficient(carrier).unsigned_abs())
        };
        if let Some(groups) = self.groups {
            // The loops over K may be in another order than the dimensions of the left operand.
            let carrier = self.packing[0].carrier(&symbols[3]);
            let k_step = carrier.zip(operands[0].as_ref()).map(|(carrier, at)| at.coefficient(carrier));
            return self.choose_group_places(matmul, groups, [step(0), step(1)], (tiles, k_step == Some(1)));
        }
        let rows_in_place = step(0).is_some_and(|step| {
            let is_apart = along[0] == Along::K && !(step * bytes).is_multiple_of(ALIASING);
            is_alike(0) && (is_apart || panels < LEAST_PANELS) || panels == 1
        });
        let columns_in_place = step(1).is_some_and(|step| {
            let is_near = self.depth * self.axes[1].extent * bytes <= NEAR_BYTES;
            step == 1 && (is_alike(1) && (is_near || tiles < LEAST_TILES) || tiles == 1)
        });
        let place = |side: usize, in_place| if in_place { Place::Array } else { Place::Panel(along[side]) };
        [place(0, rows_in_place), place(1, columns_in_place)]
    }

    /// Chooses where operands are read if steps are groups, given the distance between rows and between columns in
    /// memory, the number of row tiles that read a panel, and whether groups of rows are contiguous in memory. Such
    /// rows are read in place, and columns if only one tile reads them.
    fn choose_group_places(
        &self,
        matmul: &Matmul<'_>,
        groups: Groups,
        [row_step, column_step]: [Option<u64>; 2],
        (tiles, is_contiguous): (u64, bool),
    ) -> [Place; 2] {
        let [_, panels] = self.tiles();
        let along = matmul.neighbours.map(|neighbours| neighbours.along);
        let is_whole = groups.rest() == 0 && !groups.instruction.offsets_rows();
        let has_bytes = |side: usize| matmul.bytes[side] * groups.size() == 4;
        let rows_in_place = row_step.is_some_and(|step| {
            let is_apart = !(step * matmul.bytes[0]).is_multiple_of(ALIASING);
            is_whole && has_bytes(0) && is_contiguous && (is_apart || panels < LEAST_PANELS)
        });
        let columns_in_place = is_whole && has_bytes(1) && column_step == Some(1) && tiles == 1;
        let place = |side: usize, in_place| if in_place { Place::Array } else { Place::Panel(along[side]) };
        [place(0, rows_in_place), place(1, columns_in_place)]
    }
}

/// Returns rows, vectors and lanes of the cheapest tile for a matrix with this number of rows and columns.
pub(crate) fn register_tile(matmul: &Matmul<'_>, [rows, columns]: [u64; 2], emitter: &Emitter<'_>) -> Option<[u64; 4]> {
    let (ty, target) = (matmul.accumulator_type, emitter.target());
    let parts = if ty.is_complex() { 2 } else { 1 };
    let lanes = within(target.lanes(8 * ty.real_part().byte_width() as u32).into(), columns);
    // One register holds the element of the left operand, or a product.
    let registers = (u64::from(target.abilities().registers) / parts).checked_sub(1)?;
    let needed = columns.div_ceil(lanes);
    let mut best: Option<([u64; 2], [u64; 3])> = None;
    for vectors in 1..=MOST_VECTORS.min(needed) {
        let Some(most) = (registers / vectors).checked_sub(1).filter(|&most| most > 0) else { continue };
        let tiles = rows.div_ceil(most);
        let height = rows.div_ceil(tiles);
        let multiplications = (height * vectors).max(LATENCY);
        // A load pairs with one or two multiplications, depending on the processor.
        let step = 2 * multiplications + height + vectors + 2;
        let cost = tiles * needed.div_ceil(vectors) * step;
        let candidate = ([cost, height * vectors], [height, vectors, lanes]);
        if best.is_none_or(|best| candidate.0 < best.0) {
            best = Some(candidate);
        }
    }
    best.map(|(_, [height, vectors, lanes])| [height, vectors, lanes, 1])
}

/// Returns rows, vectors, lanes and K lanes of a tile whose operands are both contiguous along K, if horizontal
/// reductions cost less than transposing an operand.
fn tile_along_k(
    matmul: &Matmul<'_>,
    arrays: &Arrays,
    groups: Option<Groups>,
    [rows, columns]: [u64; 2],
    emitter: &Emitter<'_>,
) -> Option<[u64; 4]> {
    let (ty, target) = (matmul.accumulator_type, emitter.target());
    let at: Vec<&AffineExpr> = arrays.operands.iter().map(Option::as_ref).collect::<Option<_>>()?;
    let k = Axis::last(&matmul.contracting, &arrays.symbols[3], &at);
    let carrier = k.carrier(&arrays.symbols[3])?;
    let lies_along_k = k.outer.is_empty() && at.iter().all(|at| at.coefficient(carrier) == 1);
    let k_lanes = u64::from(target.lanes(8 * ty.byte_width() as u32)) * groups.map_or(1, Groups::size);
    let offsets_rows = groups.is_some_and(|groups| groups.instruction.offsets_rows());
    if ty.is_complex() || !lies_along_k || k_lanes == 1 || k.extent < LEAST_K_VECTORS * k_lanes {
        return None;
    }
    let lanes = within(k_lanes.min(COLUMNS_ALONG_K), columns);
    let steps = k.extent / groups.map_or(1, Groups::size);
    // One register holds a row's element, the others those of all columns.
    let most = u64::from(target.abilities().registers).checked_sub(lanes + 1)? / lanes;
    let most = most.saturating_sub(u64::from(offsets_rows)).max(1);
    // Narrow elements are converted for each tile; with several tiles, packing is better.
    let pays = match matmul.bytes {
        bytes if bytes == [groups.map_or(ty.byte_width() as u64, |groups| 4 / groups.size()); 2] => {
            // The sums of the rows' offset are reduced, too, and computed again for each tile.
            let cost = if offsets_rows { 2 * REDUCING } else { REDUCING };
            rows * cost <= steps
        }
        _ if groups.is_some() => false,
        bytes => bytes == [2; 2] && ty == ElementType::F32 && rows <= most,
    };
    pays.then(|| [rows.div_ceil(rows.div_ceil(most)), 1, lanes, k_lanes])
}

/// Returns the smallest group size of at least `size` for which the last group has more than one of `count` pieces, or
/// a single group of all pieces.
pub(crate) fn group_of_last(size: u64, count: u64) -> u64 {
    (size..count).find(|&size| !(count - 1).is_multiple_of(size)).unwrap_or(count)
}

/// Returns `lanes`, a power of two, halved until it is at most `extent`.
pub(crate) fn within(mut lanes: u64, extent: u64) -> u64 {
    while lanes > extent.max(1) {
        lanes /= 2;
    }
    lanes
}

/// Returns the row stride, in elements, of packed rows of `count` elements; it avoids cache set conflicts between rows.
pub(super) fn row_pitch(count: u64) -> u64 {
    count.next_multiple_of(16) + 16
}
