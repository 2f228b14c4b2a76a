//! Type combinations that cuBLASLt supports on each GPU, from the tables under `cublasLtMatmul` in NVIDIA's cuBLAS
//! documentation.

use super::descriptors::{Activation, MatmulDescriptor, Transpose};
use super::matmul::Matmul;
use super::{Blas, Status};
use crate::element::Element;
use crate::refusal::wrong;

/// `cublasComputeType_t`.
const F16: u32 = 64;
const F16_PEDANTIC: u32 = 65;
const F32: u32 = 68;
const F32_PEDANTIC: u32 = 69;
const F64: u32 = 70;
const F64_PEDANTIC: u32 = 71;
const S32: u32 = 72;
const S32_PEDANTIC: u32 = 73;
const F32_FAST_F16: u32 = 74;
const F32_FAST_BF16: u32 = 75;
pub(super) const F32_FAST_TF32: u32 = 77;

/// Returns the type of the bias for supported types of A, B, C and D; `Some(None)` if no epilogue is supported.
fn bias_type(operation: &MatmulDescriptor, types: [Element; 4]) -> Option<Option<Element>> {
    use Element::{Bf16, C64, C128, F8E4M3, F8E5M2, F16 as Half, F32 as Single, F64 as Double, S8, S32 as Int};
    let [a, b, c, d] = types;
    if c != d {
        return None;
    }
    Some(match (operation.compute, operation.scale, a, b, d) {
        (F16 | F16_PEDANTIC, Half, Half, Half, Half) => Some(Half),
        (S32 | S32_PEDANTIC, Int, S8, S8, Int) => None,
        (F32 | F32_PEDANTIC, Single, Bf16, Bf16, Bf16) => Some(Bf16),
        (F32 | F32_PEDANTIC, Single, Half, Half, Half) => Some(Half),
        (F32 | F32_PEDANTIC, Single, S8, S8, Single) => None,
        (F32 | F32_PEDANTIC, Single, Bf16, Bf16, Single) => Some(Single),
        (F32 | F32_PEDANTIC, Single, Half, Half, Single) => Some(Single),
        (F32 | F32_PEDANTIC | F32_FAST_F16 | F32_FAST_BF16 | F32_FAST_TF32, Single, Single, Single, Single) => {
            Some(Single)
        }
        (F32 | F32_PEDANTIC | F32_FAST_F16 | F32_FAST_BF16 | F32_FAST_TF32, C64, C64, C64, C64) => None,
        (F64 | F64_PEDANTIC, Double, Double, Double, Double) => Some(Double),
        (F64 | F64_PEDANTIC, C128, C128, C128, C128) => None,
        (F32, Single, F8E4M3, F8E4M3 | F8E5M2, _) | (F32, Single, F8E5M2, F8E4M3, _) => match d {
            Half => Some(Half),
            Bf16 | Single => Some(Bf16),
            _ => return None,
        },
        _ => return None,
    })
}

/// Checks that the library supports a matmul on a GPU of a compute capability.
pub(super) fn check(matmul: &Matmul, capability: u32) -> Blas {
    let operation = &matmul.operation;
    let types = matmul.layouts().map(|layout| layout.element);
    let no = |why: &str| wrong(Status::NOT_SUPPORTED, format!("{why}: {matmul:?}"));
    let Some(bias) = bias_type(operation, types) else { return no("no such combination of types") };
    let epilogue = operation.epilogue;
    match bias {
        None if epilogue.has_bias || epilogue.activation != Activation::None => {
            return no("an epilogue for types that have none");
        }
        Some(bias) if epilogue.has_bias && operation.bias_element.is_some_and(|given| given != bias) => {
            return no("a bias of a type that is not this matmul's");
        }
        _ => {}
    }
    let first = types[0];
    let oldest = match first {
        Element::F8E4M3 | Element::F8E5M2 => 89,
        Element::Bf16 => 80,
        Element::S8 => 75,
        _ => 0,
    };
    if capability < oldest {
        return no("types that this GPU does not have");
    }
    match first {
        Element::F8E4M3 | Element::F8E5M2 => narrow(matmul, 16),
        Element::S8 => narrow(matmul, 4),
        _ => Ok(()),
    }
}

/// Checks the rules for types that only tensor cores support: A transposed and B not, pointers and dimensions multiples
/// of `unit` bytes.
fn narrow(matmul: &Matmul, unit: u64) -> Blas {
    let no = |why: &str| wrong(Status::NOT_SUPPORTED, format!("{why}: {matmul:?}"));
    if (matmul.operation.turn_a, matmul.operation.turn_b) != (Transpose::Transposed, Transpose::None) {
        return no("narrow types with A not transposed, or B transposed");
    }
    let [m, _, k] = matmul.sizes()?;
    if !m.is_multiple_of(unit) || !k.is_multiple_of(unit) {
        return no(&format!("narrow types with m or k that is not a multiple of {unit}"));
    }
    let is_uneven = |leading: i64| !leading.unsigned_abs().is_multiple_of(unit);
    if matmul.layouts().into_iter().any(|layout| is_uneven(layout.leading) || is_uneven(layout.stride)) {
        return no(&format!("narrow types with a leading dimension or a stride that is not a multiple of {unit}"));
    }
    Ok(())
}
