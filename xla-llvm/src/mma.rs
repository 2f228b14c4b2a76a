//! Matrix-multiply-accumulate (MMA) of small matrices by the threads of a warp: tensor cores on GPUs, and an equivalent
//! on the host.
//!
//! A matrix with 16 rows is multiplied by one with 8 columns and added to a 16 x 8 matrix. Each thread holds fragments
//! of all three as 32-bit words, as defined by NVIDIA's PTX ISA for `mma.m16n8k16` and `mma.m16n8k8` (section
//! "Warp-level matrix instructions"). Thread `4 g + t` of the warp holds
//!
//! | fragments | rows and columns for f16 and bf16, pairs along K | for TF32 |
//! | --- | --- | --- |
//! | left 0 to 3 | `(g, 2t)`, `(g + 8, 2t)`, `(g, 2t + 8)`, `(g + 8, 2t + 8)` | `(g, t)`, `(g + 8, t)`, `(g, t + 4)`, `(g + 8, t + 4)` |
//! | right 0, 1 | `(2t, g)`, `(2t + 8, g)` | `(t, g)`, `(t + 4, g)` |
//! | sums 0 to 3 | `(g, 2t)`, `(g, 2t + 1)`, `(g + 8, 2t)`, `(g + 8, 2t + 1)` | same as f16 |

mod loads;
mod warp_group;

use inkwell::values::BasicValueEnum;
use xla_hlo::{ElementType, Error, Result};

use crate::elemental::Value;
use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};
use crate::simt::{Register, WARP};
use crate::target::{Simt, Target};

pub use loads::MATRICES;
pub use warp_group::{GROUP, GROUP_ROWS, LeftFactor, SharedFactor, SharedForm, group_block};

/// M: number of rows of the result.
pub const ROWS: u64 = 16;
/// N: number of columns of the result.
pub const COLUMNS: u64 = 8;

/// Type of the operands' elements; accumulators are f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperandType {
    /// Elements of f16.
    F16,
    /// Elements of bf16.
    Bf16,
    /// Elements of f32 that are rounded by [`Emitter::round_to_tf32`].
    Tf32,
}

impl OperandType {
    /// Returns the operand type of arrays with this element type, without conversion.
    pub fn of(ty: ElementType) -> Option<OperandType> {
        match ty {
            ElementType::F16 => Some(OperandType::F16),
            ElementType::BF16 => Some(OperandType::Bf16),
            _ => None,
        }
    }

    /// Returns the element type that operands are stored in.
    pub fn element_type(self) -> ElementType {
        match self {
            OperandType::F16 => ElementType::F16,
            OperandType::Bf16 => ElementType::BF16,
            OperandType::Tf32 => ElementType::F32,
        }
    }

    /// Returns the number of neighbours along K in a fragment.
    pub fn in_a_fragment(self) -> u64 {
        match self {
            OperandType::F16 | OperandType::Bf16 => 2,
            OperandType::Tf32 => 1,
        }
    }

    /// Returns K: the number of steps of the sum.
    pub fn depth(self) -> u64 {
        8 * self.in_a_fragment()
    }
}

impl Target {
    /// Whether the threads of a warp can multiply matrices with these operands.
    pub fn has_tensor_cores(&self, factors: OperandType) -> bool {
        // Number of the architecture: sm_80 and later support all operand types.
        let number = self.cpu().trim_start_matches("sm_").trim_end_matches(|c: char| c.is_ascii_lowercase());
        match (self.simt(), factors) {
            (Some(Simt::Nvptx), OperandType::F16 | OperandType::Bf16 | OperandType::Tf32) => {
                number.parse::<u32>().is_ok_and(|number| number >= 80)
            }
            (Some(Simt::Host), _) => true,
            (None, _) => false,
        }
    }
}

impl<'ctx> Emitter<'ctx> {
    /// `mma.sync`: computes `left · right + sums` by all threads of a warp. Fragments of the operands are 32-bit
    /// integers, with the first of two elements in the low half; sums are f32.
    pub fn multiply_matrices<'e>(
        &'e self,
        factors: OperandType,
        left: [Lanes<'e, 'ctx>; 4],
        right: [Lanes<'e, 'ctx>; 2],
        sums: [Lanes<'e, 'ctx>; 4],
    ) -> Result<[Lanes<'e, 'ctx>; 4]> {
        match self.target().simt() {
            Some(Simt::Nvptx) => self.matrix_instruction(factors, left, right, sums),
            Some(Simt::Host) => self.matrix_by_shuffles(factors, left, right, sums),
            None => Err(self.no_tensor_cores()),
        }
    }

    /// `cvt.rna.tf32.f32`: rounds lanes of f32 to TF32, which has 10 fraction bits: to nearest, ties away from zero.
    /// Overflow becomes infinity.
    pub fn round_to_tf32<'e>(&'e self, value: Lanes<'e, 'ctx>) -> Result<Lanes<'e, 'ctx>> {
        match self.target().simt() {
            Some(Simt::Nvptx) => {
                let rounded = value.in_parts(1, value, |lane, _| {
                    match self.intrinsic("llvm.nvvm.f2tf32.rna", &[], &[lane.raw()]) {
                        Some(bits) => self.lanes(bits).cast_bits(Scalar::F32),
                        // The emitter has recorded the error.
                        None => lane,
                    }
                });
                Ok(rounded)
            }
            Some(Simt::Host) => {
                const HALF: i64 = 1 << 12;
                let bits = (value.cast_bits(Scalar::Int(32)) + HALF) & !(2 * HALF - 1);
                Ok(value.is_nan().select(value.from_bits(0x7fff_ffff), bits.cast_bits(Scalar::F32)))
            }
            None => Err(self.no_tensor_cores()),
        }
    }

    pub(super) fn no_tensor_cores(&self) -> Error {
        Error::internal(format!("target {} has no tensor cores", self.target().triple()))
    }

    fn matrix_instruction<'e>(
        &'e self,
        factors: OperandType,
        left: [Lanes<'e, 'ctx>; 4],
        right: [Lanes<'e, 'ctx>; 2],
        sums: [Lanes<'e, 'ctx>; 4],
    ) -> Result<[Lanes<'e, 'ctx>; 4]> {
        let name = match factors {
            OperandType::F16 => "llvm.nvvm.mma.m16n8k16.row.col.f32.f32",
            OperandType::Bf16 => "llvm.nvvm.mma.m16n8k16.row.col.bf16",
            OperandType::Tf32 => "llvm.nvvm.mma.m16n8k8.row.col.tf32",
        };
        let missing = || Error::internal(format!("LLVM cannot emit {name}"));
        let pair = self.lane_type(Scalar::F16, 2);
        let fragment = |word: Lanes<'e, 'ctx>| match factors {
            OperandType::F16 => self.record(self.builder().build_bit_cast(word.raw(), pair, "")),
            OperandType::Bf16 | OperandType::Tf32 => Some(word.raw()),
        };
        let fragments = left.into_iter().chain(right).map(fragment).collect::<Option<Vec<_>>>().ok_or_else(missing)?;
        let arguments: Vec<_> = fragments.into_iter().chain(sums.map(Lanes::raw)).collect();
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
        factors: OperandType,
        left: [Lanes<'e, 'ctx>; 4],
        right: [Lanes<'e, 'ctx>; 2],
        mut sums: [Lanes<'e, 'ctx>; 4],
    ) -> Result<[Lanes<'e, 'ctx>; 4]> {
        let both = |low: Lanes<'e, 'ctx>, high: Lanes<'e, 'ctx>| (high.zext(64) << 32) | low.zext(64);
        let [near, far] = [both(left[0], left[1]), both(left[2], left[3])];
        let right = both(right[0], right[1]);
        let count = factors.in_a_fragment() as u32;
        let element = |words: Lanes<'e, 'ctx>, fragment: u32, number: u32| {
            let bits = words.lshr(i64::from(32 / count * (count * fragment + number))).trunc(32 / count);
            factor_of_bits(factors, bits)
        };
        let lane = self.register(Register::Thread)? & i64::from(WARP - 1);
        let (row, column) = (lane & !3, (lane & 3) << 3);
        let rows = [0, 1, 2, 3].map(|other| row + other);
        let (near, far) = (self.host_shuffles(near, rows)?, self.host_shuffles(far, rows)?);
        let columns = self.host_shuffles(right, [0, 1, 2, 3, 4, 5, 6, 7].map(|other| column + other))?;
        for other in 0..4 {
            let (near, far) = (near[other], far[other]);
            for which in 0..2 {
                let column = columns[4 * which + other];
                for number in 0..count {
                    let (below, above) = (element(column, 0, number), element(column, 1, number));
                    for down in 0..2 {
                        let sum = &mut sums[2 * down + which];
                        *sum = element(near, down as u32, number).fma(below, *sum);
                        *sum = element(far, down as u32, number).fma(above, *sum);
                    }
                }
            }
        }
        Ok(sums)
    }
}

/// Returns an f32 element from its bits in memory.
fn factor_of_bits<'e, 'ctx>(factors: OperandType, bits: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    match factors {
        OperandType::F16 | OperandType::Bf16 => Value::stored(factors.element_type(), bits).lanes(),
        OperandType::Tf32 => bits.cast_bits(Scalar::F32),
    }
}
