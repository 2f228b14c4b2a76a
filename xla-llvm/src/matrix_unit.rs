//! Products of small matrices that the threads of a warp compute together: the GPU's matrix unit, and the same on the host.
//!
//! A 16 by 16 matrix times a 16 by 8 one is added to a 16 by 8 one. Each thread holds pieces of all three, as NVIDIA's PTX ISA says of
//! `mma.m16n8k16` (section "Warp-level matrix instructions"): of thread `4 g + t` of the warp
//!
//! | pieces | rows and columns |
//! | --- | --- |
//! | left 0 to 3, pairs along the row | `(g, 2t)`, `(g + 8, 2t)`, `(g, 2t + 8)`, `(g + 8, 2t + 8)` |
//! | right 0, 1, pairs down the column | `(2t, g)`, `(2t + 8, g)` |
//! | sums 0 to 3 | `(g, 2t)`, `(g, 2t + 1)`, `(g + 8, 2t)`, `(g + 8, 2t + 1)` |

use inkwell::values::BasicValueEnum;
use xla_hlo::{ElementType, Error, Result};

use crate::elemental::Value;
use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};
use crate::simt::{Register, WARP};
use crate::target::{Simt, Target};

/// Rows of the product.
pub const ROWS: u64 = 16;
/// Columns of the product.
pub const COLUMNS: u64 = 8;
/// Steps of the sum.
pub const DEPTH: u64 = 16;

impl Target {
    /// Whether the threads of a warp can multiply matrices of that element type, with sums of f32.
    pub fn has_matrix_unit(&self, ty: ElementType) -> bool {
        // Number of the architecture: sm_80 and later have both types.
        let number = self.cpu().trim_start_matches("sm_").trim_end_matches(|c: char| c.is_ascii_lowercase());
        let able = match self.simt() {
            Some(Simt::Nvptx) => number.parse::<u32>().is_ok_and(|number| number >= 80),
            Some(Simt::Host) => true,
            None => false,
        };
        able && matches!(ty, ElementType::F16 | ElementType::BF16)
    }
}

impl<'ctx> Emitter<'ctx> {
    /// `left · right + sums` by the threads of a warp, all of which must be here. Pieces of the operands are 32-bit integers of two elements
    /// of `ty`, f16 or bf16, the first one in the low half; sums are f32.
    pub fn multiply_matrices<'e>(
        &'e self,
        ty: ElementType,
        left: [Lanes<'e, 'ctx>; 4],
        right: [Lanes<'e, 'ctx>; 2],
        sums: [Lanes<'e, 'ctx>; 4],
    ) -> Result<[Lanes<'e, 'ctx>; 4]> {
        match self.target().simt() {
            Some(Simt::Nvptx) => self.matrix_instruction(ty, left, right, sums),
            Some(Simt::Host) => self.matrix_by_shuffles(ty, left, right, sums),
            None => Err(Error::internal(format!("{} has no matrix unit", self.target().triple()))),
        }
    }

    fn matrix_instruction<'e>(
        &'e self,
        ty: ElementType,
        left: [Lanes<'e, 'ctx>; 4],
        right: [Lanes<'e, 'ctx>; 2],
        sums: [Lanes<'e, 'ctx>; 4],
    ) -> Result<[Lanes<'e, 'ctx>; 4]> {
        let name = match ty {
            ElementType::F16 => "llvm.nvvm.mma.m16n8k16.row.col.f32.f32",
            _ => "llvm.nvvm.mma.m16n8k16.row.col.bf16",
        };
        let missing = || Error::internal(format!("LLVM refuses {name}"));
        let pair = self.lane_type(Scalar::F16, 2);
        let piece = |word: Lanes<'e, 'ctx>| match ty {
            ElementType::F16 => self.record(self.builder().build_bit_cast(word.raw(), pair, "")),
            _ => Some(word.raw()),
        };
        let pieces = left.into_iter().chain(right).map(piece).collect::<Option<Vec<_>>>().ok_or_else(missing)?;
        let arguments: Vec<_> = pieces.into_iter().chain(sums.map(Lanes::raw)).collect();
        let Some(BasicValueEnum::StructValue(results)) = self.intrinsic(name, &[], &arguments) else {
            return Err(missing());
        };
        let mut after = sums;
        for (number, sum) in (0..).zip(&mut after) {
            let field = self.record(self.builder().build_extract_value(results, number, ""));
            *sum = self.lanes(field.ok_or_else(missing)?);
        }
        Ok(after)
    }

    fn matrix_by_shuffles<'e>(
        &'e self,
        ty: ElementType,
        left: [Lanes<'e, 'ctx>; 4],
        right: [Lanes<'e, 'ctx>; 2],
        mut sums: [Lanes<'e, 'ctx>; 4],
    ) -> Result<[Lanes<'e, 'ctx>; 4]> {
        let both = |low: Lanes<'e, 'ctx>, high: Lanes<'e, 'ctx>| (high.zext(64) << 32) | low.zext(64);
        let [near, far] = [both(left[0], left[1]), both(left[2], left[3])];
        let right = both(right[0], right[1]);
        let element = |words: Lanes<'e, 'ctx>, number: u32| {
            Value::stored(ty, words.lshr(i64::from(16 * number)).trunc(16)).lanes()
        };
        let lane = self.register(Register::Thread)? & i64::from(WARP - 1);
        let (row, column) = (lane & !3, (lane & 3) << 3);
        for other in 0..4i64 {
            let near = self.host_shuffle(near, row + other)?;
            let far = self.host_shuffle(far, row + other)?;
            for which in 0..2u32 {
                let column = self.host_shuffle(right, column + (4 * i64::from(which) + other))?;
                for half in 0..2u32 {
                    let (below, above) = (element(column, half), element(column, 2 + half));
                    for down in 0..2u32 {
                        let sum = &mut sums[(2 * down + which) as usize];
                        *sum = element(near, 2 * down + half).fma(below, *sum);
                        *sum = element(far, 2 * down + half).fma(above, *sum);
                    }
                }
            }
        }
        Ok(sums)
    }
}
