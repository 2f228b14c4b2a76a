//! Sizes of the output tiles of a matmul's blocks.

use std::fmt;

use xla_hlo::Result;

use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::matmul::{Matmul, MatmulSide};
use crate::fused::kernel::Launch;
use crate::fused::loops::frame::Frame;
use crate::fused::simt::matmul::cut::Cut;
use crate::fused::simt::matmul::multistage::fit as multistage;
use crate::fused::simt::matmul::wgmma::fit as wgmma;
use crate::fused::strategy::{Choice, Strategy};
use crate::fused::tuning::device::busy_blocks;
use crate::fused::tuning::matmul::{BUSY, LEAST, LEAST_TURNS, SIDE};
use crate::fused::tuning::matmul_stages::{MOST, MOST_BYTES};
use crate::fused::tuning::matmul_wgmma;
use crate::mma::OperandType;
use crate::target::Target;

/// Number of threads per block with [`Feed::Registers`].
pub(crate) const THREADS: u64 = SIDE * SIDE;

/// Path of the operands to the threads that multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Feed {
    /// Through registers of the threads that multiply, then shared memory.
    Registers,
    /// By asynchronous copies (`cp.async`) of the threads that multiply, in several stages: see `multistage`.
    Multistage,
    /// By TMA copies of a producer thread, in several stages, for `wgmma` consumer groups: see `wgmma`.
    Wgmma,
}

/// Tile sizes of a matmul kernel, and the path of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tiling {
    /// Rows and columns of a tile divided by [`SIDE`]. Without tensor cores, these are the rows and columns of the
    /// small matrix of sums in each thread.
    pub each: [u64; 2],
    /// Number of steps of K in one stage (or buffer) of shared memory.
    pub depth: u64,
    /// Operand type of the tensor cores, if they are used.
    pub unit: Option<OperandType>,
    /// Path of the operands.
    pub feed: Feed,
    /// Split of K over tiles.
    pub cut: Cut,
}

impl Strategy for Tiling {
    fn names() -> &'static [&'static str] {
        &["matmul"]
    }

    fn choose(choice: &Choice<'_, '_, '_, '_>) -> Result<Option<Tiling>> {
        let matmul = choice.only_matmul().filter(|matmul| matmul.fills_tiles());
        Ok(matmul.map(|matmul| Tiling::new(matmul, choice.target())))
    }

    fn maps(&self) -> usize {
        Tiling::maps(*self)
    }

    fn emit<'ctx>(
        &self,
        kernel: &FusedKernel<'_, '_>,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
    ) -> Result<Launch> {
        kernel.emit_matmul(emitter, frame, &kernel.matmul()?, *self)
    }
}

impl Tiling {
    /// Returns the tiling for whole sums.
    pub fn new(matmul: &Matmul<'_>, target: &Target) -> Tiling {
        Tiling::largest(matmul, target).with_tiles(matmul, BUSY)
    }

    /// Returns the tiling for split-K. `None` if whole sums have enough tiles, or K is short.
    pub fn cut(matmul: &Matmul<'_>, target: &Target) -> Option<Tiling> {
        let has_few = Tiling::new(matmul, target).tiles(matmul) < BUSY;
        if has_few { Tiling::parts(matmul, target) } else { None }
    }

    /// Returns the tiling for split-K, regardless of the number of tiles of whole sums.
    fn parts(matmul: &Matmul<'_>, target: &Target) -> Option<Tiling> {
        let largest = Tiling::largest(matmul, target);
        let least = match largest.feed {
            // Their stages are twice as deep.
            Feed::Wgmma => LEAST_TURNS / 2 * largest.depth,
            Feed::Registers | Feed::Multistage => LEAST_TURNS * largest.depth,
        };
        let tiling = largest.with_tiles(matmul, BUSY.div_ceil((matmul.k() / least).max(1)));
        // The loop cycles through the buffers or stages of shared memory. Parts are multiples of a cycle, so that each
        // begins with the first buffer or stage.
        let turns = match tiling.feed {
            Feed::Registers => 2,
            Feed::Multistage => tiling.stages(),
            Feed::Wgmma => 1,
        };
        let cut = Cut::new(matmul.k(), busy_blocks(target) / tiling.tiles(matmul), (turns * tiling.depth, least));
        (cut.parts > 1).then_some(Tiling { cut, ..tiling })
    }

    /// Returns other tilings than this one, of whole sums or split-K, that may be faster; the most promising first.
    pub fn others(self, matmul: &Matmul<'_>, target: &Target) -> Vec<Tiling> {
        let whole = Tiling::new(matmul, target);
        let most = Tiling::largest(matmul, target).each;
        let fits = |tiling: &Tiling| {
            let most = if tiling.feed == whole.feed { most } else { [Tiling::MOST; 2] };
            (0..2).all(|side| (tiling.least()..=most[side]).contains(&tiling.each[side]))
        };
        // Tiles that are nearly square read the least per sum.
        let is_narrow = |tiling: &Tiling| tiling.each[0].abs_diff(tiling.each[1]);
        let larger_than =
            |tiling: Tiling| [tiling.grown(0), tiling.grown(1)].into_iter().filter(fits).min_by_key(is_narrow);
        let larger = larger_than(whole);
        let smaller = whole.with_tiles(matmul, whole.tiles(matmul).saturating_add(1));
        let through_registers = whole.by_warps(matmul, Feed::Registers);
        let in_stages = (whole.feed == Feed::Wgmma).then(|| whole.by_warps(matmul, Feed::Multistage)).flatten();
        let all = [
            Some(whole),
            in_stages,
            larger,
            Tiling::parts(matmul, target),
            Some(smaller),
            Some(smaller.turned()),
            Some(whole.turned()),
            larger.and_then(larger_than),
            through_registers,
        ];
        let mut others = Vec::new();
        for other in all.into_iter().flatten().filter(fits) {
            if other != self && !others.contains(&other) {
                others.push(other);
            }
        }
        others
    }

    /// Maximum of `each` for tiles that warps compute.
    const MOST: u64 = 8;

    /// Returns the tiling with another feed, for warps; `None` if the operands do not support it.
    fn by_warps(self, matmul: &Matmul<'_>, feed: Feed) -> Option<Tiling> {
        let unit = self.unit.filter(|&unit| feed != Feed::Multistage || multistage::can_be_multistage(matmul, unit));
        let each = self.each.map(|each| each.min(Tiling::MOST));
        let depth = unit.map_or(self.depth, |unit| 2 * unit.depth());
        (feed == Feed::Registers || unit.is_some()).then_some(Tiling { each, depth, feed, ..self })
    }

    /// Returns the minimum of `each`.
    fn least(self) -> u64 {
        if self.feed == Feed::Wgmma { matmul_wgmma::LEAST } else { LEAST }
    }

    /// Returns the tiling with the rows or columns doubled.
    fn grown(mut self, side: usize) -> Tiling {
        self.each[side] *= 2;
        self
    }

    /// Returns the tiling with rows and columns exchanged.
    fn turned(self) -> Tiling {
        Tiling { each: [self.each[1], self.each[0]], ..self }
    }

    /// Returns the largest tiling that the result fills.
    fn largest(matmul: &Matmul<'_>, target: &Target) -> Tiling {
        let unit = matmul.operand_type.filter(|&operand_type| target.has_tensor_cores(operand_type));
        // 32-bit registers of an accumulator.
        let registers = matmul.accumulator_type.byte_width() / 4;
        let (each, depth) = match (unit, registers) {
            (Some(operand_type), _) => ([8, 8], 2 * operand_type.depth()),
            (None, 0 | 1) => ([8, 8], 8),
            (None, 2) => ([8, 4], 8),
            (None, _) => ([4, 4], 8),
        };
        let cut = Cut::whole(matmul.k());
        let mut tiling = match unit {
            Some(unit) if wgmma::can_be_grouped(matmul, unit, target) => {
                let each = [each[0], matmul_wgmma::COLUMNS];
                Tiling { each, depth: matmul_wgmma::DEPTH, unit: Some(unit), feed: Feed::Wgmma, cut }
            }
            Some(unit) if multistage::can_be_multistage(matmul, unit) => {
                Tiling { each, depth, unit: Some(unit), feed: Feed::Multistage, cut }
            }
            unit => Tiling { each, depth, unit, feed: Feed::Registers, cut },
        };
        for side in [MatmulSide::Left, MatmulSide::Right] {
            while tiling.each[side as usize] > tiling.least() && tiling.size(side) / 2 >= matmul.extent(side) {
                tiling.each[side as usize] /= 2;
            }
        }
        tiling
    }

    /// Shrinks the tiles until there are at least `least`.
    fn with_tiles(mut self, matmul: &Matmul<'_>, least: u64) -> Tiling {
        while self.tiles(matmul) < least && self.each != [self.least(); 2] {
            let side = if self.each[0] >= self.each[1] { 0 } else { 1 };
            self.each[side] /= 2;
        }
        self
    }

    /// Returns the number of threads per block.
    pub fn threads(self) -> u64 {
        match self.feed {
            Feed::Registers => THREADS,
            Feed::Multistage => multistage::THREADS,
            Feed::Wgmma => wgmma::threads(self.size(MatmulSide::Left)),
        }
    }

    /// Returns the number of stages that fit into shared memory.
    pub fn stages(self) -> u64 {
        let sides = [MatmulSide::Left, MatmulSide::Right];
        let bytes = self.unit.map_or(0, |unit| unit.element_type().byte_width() as u64);
        if self.feed == Feed::Wgmma {
            return wgmma::stages(sides.map(|side| self.size(side)), bytes);
        }
        let elements = sides.map(|side| self.size(side) * self.depth);
        (MOST_BYTES / (elements.iter().sum::<u64>() * bytes).max(1)).clamp(2, MOST)
    }

    /// Returns the number of tensor maps that the kernel takes.
    pub fn maps(self) -> usize {
        if self.feed == Feed::Wgmma { 2 } else { 0 }
    }

    /// Returns the number of rows or columns of a tile.
    pub fn size(self, side: MatmulSide) -> u64 {
        self.each[side as usize] * SIDE
    }

    /// Returns the number of tiles along a side of the result.
    pub fn along(self, matmul: &Matmul<'_>, side: MatmulSide) -> u64 {
        matmul.extent(side).div_ceil(self.size(side))
    }

    /// Returns how many of the `columns` tiles of a row consecutive blocks compute before they move to the next row of
    /// tiles. The blocks that run at the same time read the least of both operands if their tiles are about a square.
    /// This is done for the largest tiles only ([`Feed::Wgmma`]), which read the most.
    pub fn across(self, columns: u64) -> u64 {
        match self.feed {
            Feed::Wgmma => [8, 4, 2].into_iter().find(|&across| columns.is_multiple_of(across)).unwrap_or(1),
            Feed::Registers | Feed::Multistage => 1,
        }
    }

    pub fn tiles(self, matmul: &Matmul<'_>) -> u64 {
        let [rows, columns] = [MatmulSide::Left, MatmulSide::Right].map(|side| self.along(matmul, side));
        matmul.batches().saturating_mul(rows).saturating_mul(columns)
    }
}

impl fmt::Display for Tiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [rows, columns] = [MatmulSide::Left, MatmulSide::Right].map(|side| self.size(side));
        write!(f, "tiles of {rows} x {columns}, {} steps of K at a time", self.depth)?;
        if let Some(unit) = self.unit {
            write!(f, ", tensor cores in {unit:?}")?;
        }
        match self.feed {
            Feed::Registers => Ok(()),
            Feed::Multistage => write!(f, ", {} stages", self.stages()),
            Feed::Wgmma => {
                let groups = wgmma::groups(self.size(MatmulSide::Left));
                write!(f, ", warp groups: {groups}, {} stages in bulk", self.stages())
            }
        }
    }
}
