//! Sizes of the tiles that the blocks of a matmul compute.

use std::fmt;

use crate::fused::contraction::matmul::{Matmul, MatmulSide};
use crate::fused::simt::matmul::cut::Cut;
use crate::fused::simt::matmul::groups::fit as grouped;
use crate::fused::simt::matmul::staged::fit as staged;
use crate::fused::tuning::device::busy_blocks;
use crate::fused::tuning::matmul::{BUSY, LEAST, LEAST_TURNS, SIDE};
use crate::fused::tuning::matmul_groups;
use crate::fused::tuning::matmul_stages::{MOST, MOST_BYTES};
use crate::mma::OperandType;
use crate::target::Target;

/// Threads of a block, unless tiles come in stages.
pub(crate) const THREADS: u64 = SIDE * SIDE;

/// The way of operands to those who multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Feed {
    /// Through registers of the threads that multiply, and shared memory.
    Registers,
    /// By asynchronous copies of the threads that multiply, in several stages: see `staged`.
    Stages,
    /// By copies in bulk of another thread, in several stages, for warp groups: see `groups`.
    Groups,
}

/// The size of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tiling {
    /// Rows and columns of sums that each thread has, if it has those of a small matrix; a tile has as many times
    /// [`SIDE`].
    pub each: [u64; 2],
    /// Steps of the sum that are in shared memory at a time.
    pub depth: u64,
    /// Operand type of the tensor cores, if warps multiply on them.
    pub unit: Option<OperandType>,
    /// The way of the operands.
    pub feed: Feed,
    /// The parts of the sum that are other tiles.
    pub cut: Cut,
}

impl Tiling {
    /// Tiles of whole sums.
    pub fn new(matmul: &Matmul<'_>, target: &Target) -> Tiling {
        Tiling::largest(matmul, target).with_tiles(matmul, BUSY)
    }

    /// Tiles of parts of the sums. `None` where there are enough of whole ones, or sums are short.
    pub fn cut(matmul: &Matmul<'_>, target: &Target) -> Option<Tiling> {
        let has_few = Tiling::new(matmul, target).tiles(matmul) < BUSY;
        if has_few { Tiling::parts(matmul, target) } else { None }
    }

    /// The same, however many tiles of whole sums there are.
    fn parts(matmul: &Matmul<'_>, target: &Target) -> Option<Tiling> {
        let largest = Tiling::largest(matmul, target);
        let least = match largest.feed {
            // Their turns are twice as deep.
            Feed::Groups => LEAST_TURNS / 2 * largest.depth,
            Feed::Registers | Feed::Stages => LEAST_TURNS * largest.depth,
        };
        let tiling = largest.with_tiles(matmul, BUSY.div_ceil((matmul.k() / least).max(1)));
        // The loop goes through the halves of shared memory, or its stages, so that parts begin with the first one.
        let turns = match tiling.feed {
            Feed::Registers => 2,
            Feed::Stages => tiling.stages(),
            Feed::Groups => 1,
        };
        let cut = Cut::new(matmul.k(), busy_blocks(target) / tiling.tiles(matmul), (turns * tiling.depth, least));
        (cut.parts > 1).then_some(Tiling { cut, ..tiling })
    }

    /// Other tiles than the usual ones, of whole sums or of parts, that may be faster; the likelier first.
    pub fn others(self, matmul: &Matmul<'_>, target: &Target) -> Vec<Tiling> {
        let whole = Tiling::new(matmul, target);
        let most = Tiling::largest(matmul, target).each;
        let fits = |tiling: &Tiling| {
            let most = if tiling.feed == whole.feed { most } else { [Tiling::MOST; 2] };
            (0..2).all(|side| (tiling.least()..=most[side]).contains(&tiling.each[side]))
        };
        // Those that are nearly squares read the least for their sums.
        let is_narrow = |tiling: &Tiling| tiling.each[0].abs_diff(tiling.each[1]);
        let larger_than =
            |tiling: Tiling| [tiling.grown(0), tiling.grown(1)].into_iter().filter(fits).min_by_key(is_narrow);
        let larger = larger_than(whole);
        let smaller = whole.with_tiles(matmul, whole.tiles(matmul).saturating_add(1));
        let through_registers = whole.by_warps(matmul, Feed::Registers);
        let in_stages = (whole.feed == Feed::Groups).then(|| whole.by_warps(matmul, Feed::Stages)).flatten();
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

    /// Rows and columns of a thread that no tile of warps has more of.
    const MOST: u64 = 8;

    /// The same operands by another way, to warps: `None` where they cannot go it.
    fn by_warps(self, matmul: &Matmul<'_>, feed: Feed) -> Option<Tiling> {
        let unit = self.unit.filter(|&unit| feed != Feed::Stages || staged::can_be_staged(matmul, unit));
        let each = self.each.map(|each| each.min(Tiling::MOST));
        let depth = unit.map_or(self.depth, |unit| 2 * unit.depth());
        (feed == Feed::Registers || unit.is_some()).then_some(Tiling { each, depth, feed, ..self })
    }

    /// Rows and columns that a thread has at least.
    fn least(self) -> u64 {
        if self.feed == Feed::Groups { matmul_groups::LEAST } else { LEAST }
    }

    /// With twice as many rows or columns.
    fn grown(mut self, side: usize) -> Tiling {
        self.each[side] *= 2;
        self
    }

    /// With as many rows as these have columns, and the other way around.
    fn turned(self) -> Tiling {
        Tiling { each: [self.each[1], self.each[0]], ..self }
    }

    /// The largest tiles that the result fills.
    fn largest(matmul: &Matmul<'_>, target: &Target) -> Tiling {
        let unit = matmul.operand_type.filter(|&operand_type| target.has_tensor_cores(operand_type));
        // 32-bit registers of a sum.
        let registers = matmul.accumulator_type.byte_width() / 4;
        let (each, depth) = match (unit, registers) {
            (Some(operand_type), _) => ([8, 8], 2 * operand_type.depth()),
            (None, 0 | 1) => ([8, 8], 8),
            (None, 2) => ([8, 4], 8),
            (None, _) => ([4, 4], 8),
        };
        let cut = Cut::whole(matmul.k());
        let mut tiling = match unit {
            Some(unit) if grouped::can_be_grouped(matmul, unit, target) => {
                let each = [each[0], matmul_groups::COLUMNS];
                Tiling { each, depth: matmul_groups::DEPTH, unit: Some(unit), feed: Feed::Groups, cut }
            }
            Some(unit) if staged::can_be_staged(matmul, unit) => {
                Tiling { each, depth, unit: Some(unit), feed: Feed::Stages, cut }
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

    /// Threads of a block.
    pub fn threads(self) -> u64 {
        match self.feed {
            Feed::Registers => THREADS,
            Feed::Stages => staged::THREADS,
            Feed::Groups => grouped::threads(self.size(MatmulSide::Left)),
        }
    }

    /// Stages that fit into shared memory.
    pub fn stages(self) -> u64 {
        let sides = [MatmulSide::Left, MatmulSide::Right];
        let bytes = self.unit.map_or(0, |unit| unit.element_type().byte_width() as u64);
        if self.feed == Feed::Groups {
            return grouped::stages(sides.map(|side| self.size(side)), bytes);
        }
        let elements = sides.map(|side| self.size(side) * self.depth);
        (MOST_BYTES / (elements.iter().sum::<u64>() * bytes).max(1)).clamp(2, MOST)
    }

    /// Maps of a kernel's operands.
    pub fn maps(self) -> usize {
        if self.feed == Feed::Groups { 2 } else { 0 }
    }

    /// Rows or columns of a tile.
    pub fn size(self, side: MatmulSide) -> u64 {
        self.each[side as usize] * SIDE
    }

    /// Tiles along a side of the result.
    pub fn along(self, matmul: &Matmul<'_>, side: MatmulSide) -> u64 {
        matmul.extent(side).div_ceil(self.size(side))
    }

    /// Of so many tiles along the columns the ones that neighbouring blocks go through before they go on to other rows:
    /// what all blocks of a time read of both operands is the least where they are about a square. The largest tiles
    /// read the most at a time.
    pub fn across(self, columns: u64) -> u64 {
        match self.feed {
            Feed::Groups => [8, 4, 2].into_iter().find(|&across| columns.is_multiple_of(across)).unwrap_or(1),
            Feed::Registers | Feed::Stages => 1,
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
            Feed::Stages => write!(f, ", {} stages", self.stages()),
            Feed::Groups => {
                let groups = grouped::groups(self.size(MatmulSide::Left));
                write!(f, ", warp groups: {groups}, {} stages in bulk", self.stages())
            }
        }
    }
}
