//! Rounding a float in lanes to a type or to fewer bits.

use xla_hlo::{ElementType, Result};

use super::narrow_float;
use super::value::Value;
use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};

/// Lanes of a narrow float type after an operation, rounded to the type.
pub(super) fn rounded<'e, 'ctx>(ty: ElementType, lanes: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    match ty {
        ElementType::F32 | ElementType::F64 | ElementType::C64 | ElementType::C128 => lanes,
        narrow => narrow_float::decode(narrow, narrow_float::encode(narrow, lanes)),
    }
}

/// A float rounded (to nearest even) as if its type had so many bits: overflow gives infinity, what is below the least
/// normal number gives zero, NaN stays.
pub fn reduce_precision<'e, 'ctx>(
    _: &'e Emitter<'ctx>,
    x: Value<'e, 'ctx>,
    exponent_bits: u32,
    mantissa_bits: u32,
) -> Result<Value<'e, 'ctx>> {
    let ty = x.element_type();
    Ok(x.map(|lanes| rounded(ty, reduced(lanes, exponent_bits, mantissa_bits))))
}

fn reduced<'e, 'ctx>(x: Lanes<'e, 'ctx>, exponent_bits: u32, mantissa_bits: u32) -> Lanes<'e, 'ctx> {
    let (own_exponent, own_mantissa) = if x.scalar() == Scalar::F64 { (11u32, 52u32) } else { (8, 23) };
    let mut bits = x.bits();
    let sign_mask = 1i64 << (own_exponent + own_mantissa);
    if mantissa_bits < own_mantissa {
        let cut = i64::from(own_mantissa - mantissa_bits);
        let odd = bits.lshr(cut) & 1;
        bits = (bits + odd + ((1i64 << (cut - 1)) - 1)) & !((1i64 << cut) - 1);
    }
    if exponent_bits < own_exponent {
        let bias = (1i64 << (own_exponent - 1)) - 1;
        let reduced_bias = (1i64 << (exponent_bits - 1)) - 1;
        let greatest = bias + reduced_bias;
        let least = bias - reduced_bias + 1;
        let sign = bits & sign_mask;
        let exponent = (bits & !sign_mask).lshr(i64::from(own_mantissa));
        let infinity = ((1i64 << own_exponent) - 1) << own_mantissa;
        let overflowed = exponent.ugt(greatest).select(sign | infinity, bits);
        bits = exponent.ult(least).select(sign, overflowed);
    }
    x.is_nan().select(x, bits.as_float())
}
