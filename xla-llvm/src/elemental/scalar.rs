//! LLVM scalar types of elements in registers.

use xla_hlo::{ElementKind, ElementType};

use crate::lanes::Scalar;

/// Returns the lane type of the stored form; for complex types, that of one part.
pub(crate) fn stored_scalar(ty: ElementType) -> Scalar {
    match ty.real_part() {
        ElementType::F32 => Scalar::F32,
        ElementType::F64 => Scalar::F64,
        other => Scalar::Int(8 * other.byte_width() as u32),
    }
}

/// Returns the lane type of the computed form; for complex types, that of one part.
pub(crate) fn computed_scalar(ty: ElementType) -> Scalar {
    match ty.kind() {
        ElementKind::Pred => Scalar::Int(1),
        ElementKind::Float if ty != ElementType::F64 => Scalar::F32,
        ElementKind::Float | ElementKind::Complex | ElementKind::Signed | ElementKind::Unsigned => stored_scalar(ty),
    }
}
