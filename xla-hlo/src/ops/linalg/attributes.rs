//! Text form of linear algebra attributes.

use super::TransposeKind;
use crate::text::attribute_words;

attribute_words! {
    TransposeKind, "NO_TRANSPOSE, TRANSPOSE or ADJOINT":
    "NO_TRANSPOSE" => TransposeKind::NoTranspose,
    "TRANSPOSE" => TransposeKind::Transpose,
    "ADJOINT" => TransposeKind::Adjoint,
}
