//! Element types and their arithmetic, rounded after each step.

use half::{bf16, f16};

use super::{Nccl, Status};
use crate::refusal::wrong;

/// Combines integers, which wrap around.
macro_rules! integers {
    ($op:expr, $ty:ty, $total:expr, $other:expr) => {
        each($total, $other, |a, b| {
            let (a, b) = (<$ty>::from_le_bytes(a), <$ty>::from_le_bytes(b));
            let combined = match $op {
                ReduceOp::Sum => a.wrapping_add(b),
                ReduceOp::Product => a.wrapping_mul(b),
                ReduceOp::Max => a.max(b),
                ReduceOp::Min => a.min(b),
            };
            combined.to_le_bytes()
        })
    };
}
/// `ncclDataType_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataType {
    S8,
    U8,
    S32,
    U32,
    S64,
    U64,
    F16,
    F32,
    F64,
    Bf16,
    F8E4M3,
    F8E5M2,
}

/// `ncclRedOp_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReduceOp {
    Sum,
    Product,
    Max,
    Min,
}

impl DataType {
    pub fn of(number: u32) -> Nccl<DataType> {
        use DataType::{Bf16, F8E4M3, F8E5M2, F16, F32, F64, S8, S32, S64, U8, U32, U64};
        let all = [S8, U8, S32, U32, S64, U64, F16, F32, F64, Bf16, F8E4M3, F8E5M2];
        match all.get(number as usize) {
            Some(ty) => Ok(*ty),
            None => wrong(Status::INVALID_ARGUMENT, format!("there is no data type {number}")),
        }
    }

    pub fn bytes(self) -> usize {
        match self {
            DataType::S8 | DataType::U8 | DataType::F8E4M3 | DataType::F8E5M2 => 1,
            DataType::F16 | DataType::Bf16 => 2,
            DataType::S32 | DataType::U32 | DataType::F32 => 4,
            DataType::S64 | DataType::U64 | DataType::F64 => 8,
        }
    }
}

impl ReduceOp {
    pub fn of(number: u32) -> Nccl<ReduceOp> {
        match number {
            0 => Ok(ReduceOp::Sum),
            1 => Ok(ReduceOp::Product),
            2 => Ok(ReduceOp::Max),
            3 => Ok(ReduceOp::Min),
            4 => wrong(Status::INVALID_ARGUMENT, "averages are not simulated"),
            _ => wrong(Status::INVALID_ARGUMENT, format!("there is no operation {number}")),
        }
    }

    /// Returns an error for types that are not reduced here.
    pub fn check(self, ty: DataType) -> Nccl {
        match ty {
            DataType::F8E4M3 | DataType::F8E5M2 => {
                wrong(Status::INVALID_ARGUMENT, "reductions of floats of eight bits are not simulated")
            }
            _ => Ok(()),
        }
    }

    /// Combines the elements of `total` with those of `other`.
    pub fn combine(self, ty: DataType, total: &mut [u8], other: &[u8]) {
        match ty {
            DataType::S8 => integers!(self, i8, total, other),
            DataType::U8 => integers!(self, u8, total, other),
            DataType::S32 => integers!(self, i32, total, other),
            DataType::U32 => integers!(self, u32, total, other),
            DataType::S64 => integers!(self, i64, total, other),
            DataType::U64 => integers!(self, u64, total, other),
            DataType::F32 => {
                each(total, other, |a, b| self.f32(f32::from_le_bytes(a), f32::from_le_bytes(b)).to_le_bytes())
            }
            DataType::F64 => {
                each(total, other, |a, b| self.f64(f64::from_le_bytes(a), f64::from_le_bytes(b)).to_le_bytes())
            }
            DataType::F16 => each(total, other, |a, b| {
                f16::from_f32(self.f32(f16::from_le_bytes(a).to_f32(), f16::from_le_bytes(b).to_f32())).to_le_bytes()
            }),
            DataType::Bf16 => each(total, other, |a, b| {
                bf16::from_f32(self.f32(bf16::from_le_bytes(a).to_f32(), bf16::from_le_bytes(b).to_f32())).to_le_bytes()
            }),
            // `check` refuses them.
            DataType::F8E4M3 | DataType::F8E5M2 => {}
        }
    }

    /// Minimum and maximum ignore a NaN, like `fmin` and `fmax`.
    fn f32(self, a: f32, b: f32) -> f32 {
        match self {
            ReduceOp::Sum => a + b,
            ReduceOp::Product => a * b,
            ReduceOp::Max => a.max(b),
            ReduceOp::Min => a.min(b),
        }
    }

    fn f64(self, a: f64, b: f64) -> f64 {
        match self {
            ReduceOp::Sum => a + b,
            ReduceOp::Product => a * b,
            ReduceOp::Max => a.max(b),
            ReduceOp::Min => a.min(b),
        }
    }
}

/// Applies a function to corresponding elements of `N` bytes.
fn each<const N: usize>(total: &mut [u8], other: &[u8], combine: impl Fn([u8; N], [u8; N]) -> [u8; N]) {
    let (total, _) = total.as_chunks_mut::<N>();
    let (other, _) = other.as_chunks::<N>();
    total.iter_mut().zip(other).for_each(|(total, other)| *total = combine(*total, *other));
}
