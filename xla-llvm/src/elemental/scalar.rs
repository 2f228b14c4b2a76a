//! Scalars of LLVM that elements are in registers.

use xla_hlo::{ElementKind, ElementType};

use crate::lanes::Scalar;

/// The lanes of the stored form; of one part for complex types.
pub(crate) fn stored_scalar(ty: ElementType) -> Scalar {
    match ty.real_part() {
        ElementType::F32 => Scalar::F32,
        ElementType::F64 => Scalar::F64,
        other => Scalar::Int(8 * other.byte_width() as u32),
    }
}

/// The lanes of the computed form; of one part for complex types.
pub(crate) fn computed_scalar(ty: ElementType) -> Scalar {
    match ty.kind() {
        ElementKind::Pred => Scalar::Int(1),
        ElementKind::Float if ty != ElementType::F64 => Scalar::F32,
        ElementKind::Float | ElementKind::Complex | ElementKind::Signed | ElementKind::Unsigned => stored_scalar(ty),
    }
}
