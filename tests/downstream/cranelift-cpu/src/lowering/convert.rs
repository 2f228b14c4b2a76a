//! Conversions between element types: inline between booleans, integers of whole bytes, f32 and f64, otherwise by the
//! evaluator's function.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value, types};
use xla::hlo::ops::{Convert, Op};
use xla::hlo::{ElementKind, ElementType, Scalar};

use crate::builder::{KernelBuilder, as_bits, value_type};

/// Converts an element to another type.
pub(super) fn convert(k: &mut KernelBuilder<'_>, x: Value, from: ElementType, to: ElementType) -> Option<Value> {
    inline(k, x, from, to).or_else(|| k.apply(&Op::from(Convert), &[(x, from)], to))
}

/// Converts an element inline; `None` if that is not supported.
pub(super) fn inline(k: &mut KernelBuilder<'_>, x: Value, from: ElementType, to: ElementType) -> Option<Value> {
    use ElementType::{BF16, F32, F64, Pred};
    let is_float = |ty| matches!(ty, F32 | F64);
    let is_signed = |ty: ElementType| ty.kind() == ElementKind::Signed;
    match (from, to) {
        _ if from == to => Some(x),
        (F32, F64) => Some(k.f.ins().fpromote(types::F64, x)),
        (F64, F32) => Some(k.f.ins().fdemote(types::F32, x)),
        (BF16, F32) => {
            let wide = k.f.ins().uextend(types::I32, x);
            let bits = k.f.ins().ishl_imm_u(wide, 16);
            Some(as_bits(k, bits, types::F32))
        }
        (_, Pred) if is_float(from) => {
            let zero = k.constant(from, Scalar::Float(0.0));
            Some(k.f.ins().fcmp(FloatCC::NotEqual, x, zero))
        }
        (_, Pred) if is_integer(from) => Some(k.f.ins().icmp_imm_s(IntCC::NotEqual, x, 0)),
        _ if is_integer(to) && (from == Pred || is_integer(from)) => Some(resized(k, x, is_signed(from), to)),
        _ if is_float(to) && (from == Pred || is_integer(from)) => {
            let wide = resized(k, x, is_signed(from), ElementType::S64);
            Some(match is_signed(from) || from.bit_width() < 64 {
                true => k.f.ins().fcvt_from_sint(value_type(to), wide),
                false => k.f.ins().fcvt_from_uint(value_type(to), wide),
            })
        }
        // Rounds towards zero; floats out of range saturate, and NaN becomes zero.
        _ if is_float(from) && is_integer(to) && to.bit_width() >= 32 => Some(match is_signed(to) {
            true => k.f.ins().fcvt_to_sint_sat(value_type(to), x),
            false => k.f.ins().fcvt_to_uint_sat(value_type(to), x),
        }),
        _ => None,
    }
}

/// Whether the type is an integer of whole bytes.
pub(super) fn is_integer(ty: ElementType) -> bool {
    ty.is_integer() && ty.bit_width() >= 8
}

/// Extends or truncates an integer.
fn resized(k: &mut KernelBuilder<'_>, x: Value, is_signed: bool, to: ElementType) -> Value {
    let (from, to) = (k.f.func.dfg.value_type(x), value_type(to));
    match from.bits().cmp(&to.bits()) {
        std::cmp::Ordering::Equal => x,
        std::cmp::Ordering::Greater => k.f.ins().ireduce(to, x),
        std::cmp::Ordering::Less if is_signed => k.f.ins().sextend(to, x),
        std::cmp::Ordering::Less => k.f.ins().uextend(to, x),
    }
}
