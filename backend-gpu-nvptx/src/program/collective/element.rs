//! Element types and combiners of NCCL.

use xla_hlo::ElementType;
use xla_hlo::ops::BinaryOp;
use xla_service::collective::Reduction;

use super::declined::Declined;

/// `ncclDataType_t`: element type, by its number in NVIDIA's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum NcclType {
    S8 = 0,
    U8 = 1,
    S32 = 2,
    U32 = 3,
    S64 = 4,
    U64 = 5,
    F16 = 6,
    F32 = 7,
    F64 = 8,
    Bf16 = 9,
}

/// `ncclRedOp_t`: combiner, by its number in NVIDIA's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum NcclOp {
    Sum = 0,
    Product = 1,
    Max = 2,
    Min = 3,
}

/// Reduction by NCCL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NcclReduction {
    pub ty: NcclType,
    pub op: NcclOp,
}

impl NcclType {
    /// Returns the size of an element in bytes.
    pub fn bytes(self) -> usize {
        match self {
            NcclType::S8 | NcclType::U8 => 1,
            NcclType::F16 | NcclType::Bf16 => 2,
            NcclType::S32 | NcclType::U32 | NcclType::F32 => 4,
            NcclType::S64 | NcclType::U64 | NcclType::F64 => 8,
        }
    }
}

impl NcclReduction {
    /// Returns the reduction of elements of a type, or the reason why NCCL does not compute it.
    ///
    /// Minimum and maximum of floats are declined: NCCL ignores a NaN, like `fmin`, but HLO returns it. NCCL rounds
    /// each step to the element type, so combiners with a wider type are declined. Sums and products of floats are in
    /// an order that NCCL chooses.
    pub fn of(reduction: &Reduction, ty: ElementType) -> Result<NcclReduction, Declined> {
        use ElementType::{BF16, C64, C128, F16, F32, F64, Pred, S8, S32, S64, U8, U32, U64};
        let Some(operation) = reduction.operation else { return Err(Declined::Combiner(None, ty)) };
        if reduction.accumulator != ty {
            return Err(Declined::Accumulator(reduction.accumulator, ty));
        }
        let declined = || Declined::Combiner(Some(operation), ty);
        let op = match operation {
            BinaryOp::Add => NcclOp::Sum,
            BinaryOp::Multiply => NcclOp::Product,
            BinaryOp::Maximum => NcclOp::Max,
            BinaryOp::Minimum => NcclOp::Min,
            // A predicate is a byte that is 0 or 1.
            BinaryOp::And if ty == Pred => NcclOp::Min,
            BinaryOp::Or if ty == Pred => NcclOp::Max,
            _ => return Err(declined()),
        };
        let is_order = matches!(op, NcclOp::Min | NcclOp::Max);
        let ty = match ty {
            Pred if is_order => NcclType::U8,
            S8 => NcclType::S8,
            U8 => NcclType::U8,
            S32 => NcclType::S32,
            U32 => NcclType::U32,
            S64 => NcclType::S64,
            U64 => NcclType::U64,
            F16 if !is_order => NcclType::F16,
            BF16 if !is_order => NcclType::Bf16,
            F32 if !is_order => NcclType::F32,
            F64 if !is_order => NcclType::F64,
            // The parts of complex numbers are summed separately.
            C64 if op == NcclOp::Sum => NcclType::F32,
            C128 if op == NcclOp::Sum => NcclType::F64,
            _ => return Err(declined()),
        };
        Ok(NcclReduction { ty, op })
    }
}
