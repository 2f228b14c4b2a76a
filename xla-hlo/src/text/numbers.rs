//! Printing and parsing of numbers, including floats of every type and NaN payloads.

use super::diagnostic::shown;
use crate::{ElementType, Scalar};

/// Returns the width of the NaN payload in bits (the mantissa field with the quiet bit), for types whose NaNs have one.
pub(super) fn payload_bits(ty: ElementType) -> Option<u32> {
    match ty {
        ElementType::F64 => Some(52),
        ElementType::F32 => Some(23),
        ElementType::F16 => Some(10),
        ElementType::BF16 => Some(7),
        ElementType::F8E3M4 => Some(4),
        ElementType::F8E4M3 => Some(3),
        ElementType::F8E5M2 => Some(2),
        _ => None,
    }
}

/// Returns the number of decimal digits that distinguish any two values of the type.
fn digits(ty: ElementType) -> usize {
    match ty {
        ElementType::F64 => 17,
        ElementType::F32 => 9,
        ElementType::F16 => 5,
        ElementType::BF16 => 4,
        ElementType::F8E3M4 | ElementType::F8E4M3 | ElementType::F8E4M3FN => 3,
        ElementType::F8E4M3FNUZ | ElementType::F8E4M3B11FNUZ | ElementType::F6E2M3FN => 3,
        // Types with at most two mantissa bits.
        _ => 2,
    }
}

/// Parses a float from a token's text; returns its bit pattern or an error message.
pub(super) fn parse_float(ty: ElementType, text: &str) -> Result<u64, String> {
    if let Some(rest) = text.trim_start_matches('-').strip_prefix("nan") {
        return parse_nan(ty, text.starts_with('-'), rest);
    }
    let value: f64 = text.parse().map_err(|_| format!("`{}` is not a number", shown(text)))?;
    if value.is_infinite() {
        if !text.ends_with("inf") {
            return Err(format!("`{}` is too large for any type", shown(text)));
        }
        let bits = encode(ty, value);
        return if decode(ty, bits).is_infinite() { Ok(bits) } else { Err(format!("{ty} has no infinity")) };
    }
    let bits = encode(ty, value);
    if fits(ty, value, bits) { Ok(bits) } else { Err(format!("`{}` is out of the range of {ty}", shown(text))) }
}

/// Whether a finite value rounds to the finite pattern `bits` without clamping.
fn fits(ty: ElementType, value: f64, bits: u64) -> bool {
    let rounded = decode(ty, bits);
    match ty {
        ElementType::F8E8M0FNU => value > 0.0 && rounded.is_finite(),
        // Formats without NaN clamp. Reject values that exceed the greatest value by half a step or more.
        ElementType::F4E2M1FN | ElementType::F6E2M3FN | ElementType::F6E3M2FN => {
            let excess = value.abs() - rounded.abs();
            bits == 0 || excess <= 0.0 || excess < (rounded.abs() - decode(ty, bits - 1).abs()).abs() / 2.0
        }
        _ => rounded.is_finite(),
    }
}

fn parse_nan(ty: ElementType, negative: bool, payload: &str) -> Result<u64, String> {
    let payload = payload.strip_prefix("(0x").and_then(|p| p.strip_suffix(')'));
    let Some(bits) = payload_bits(ty) else {
        if payload.is_some() {
            return Err(format!("NaN has no payload in {ty}"));
        }
        let nan = encode(ty, f64::NAN.copysign(if negative { -1.0 } else { 1.0 }));
        return if decode(ty, nan).is_nan() { Ok(nan) } else { Err(format!("{ty} has no NaN")) };
    };
    let quiet = 1 << (bits - 1);
    let payload = payload.map_or(Some(quiet), |p| u64::from_str_radix(p, 16).ok());
    let payload = payload.filter(|p| (1..1 << bits).contains(p));
    let payload =
        payload.ok_or_else(|| format!("the payload of a NaN of {ty} is from 0x1 to {:#x}", (1u64 << bits) - 1))?;
    let infinity = encode(ty, if negative { f64::NEG_INFINITY } else { f64::INFINITY });
    Ok(infinity | payload)
}

/// Returns the pattern of a value, rounded to nearest even.
fn encode(ty: ElementType, value: f64) -> u64 {
    match ty {
        ElementType::F64 => value.to_bits(),
        ElementType::F32 => u64::from((value as f32).to_bits()),
        _ => {
            let mut bytes = [0; 8];
            Scalar::Float(value).write(ty, &mut bytes[..ty.byte_width()]);
            u64::from_le_bytes(bytes)
        }
    }
}

fn decode(ty: ElementType, bits: u64) -> f64 {
    match ty {
        ElementType::F64 => f64::from_bits(bits),
        ElementType::F32 => f64::from(f32::from_bits(bits as u32)),
        _ => match Scalar::read(ty, &bits.to_le_bytes()) {
            Scalar::Float(value) => value,
            Scalar::Pred(_) | Scalar::Signed(_) | Scalar::Unsigned(_) | Scalar::Complex(..) => f64::NAN,
        },
    }
}

/// Appends a float given by its bit pattern, in a form that reads back as that pattern.
pub(super) fn push_float(out: &mut String, ty: ElementType, bits: u64) {
    let value = decode(ty, bits);
    if value.is_nan() {
        return push_nan(out, ty, bits);
    }
    if value.is_infinite() {
        return out.push_str(if value > 0.0 { "inf" } else { "-inf" });
    }
    if value == 0.0 {
        // As an integer, a negative zero would lose its sign in XLA's parser.
        return out.push_str(if value.is_sign_negative() { "-0.0" } else { "0" });
    }
    if value.fract() == 0.0 && value.abs() < 1000.0 && ty.bit_width() >= 16 {
        return push_display(out, value as i64);
    }
    match ty {
        // Use few digits if they suffice, as they do for most numbers in practice.
        ElementType::F32 => push_shorter(out, value, 6, 9, |v| v as f32 == value as f32),
        ElementType::F64 => push_shorter(out, value, 15, 17, |v| v == value),
        // Only values of at most 2^-127 round to that least `f8e8m0fnu`, so few digits suffice only if they do not
        // exceed it.
        _ => push_shorter(out, value, digits(ty), 17, |v| encode(ty, v) == bits),
    }
}

fn push_nan(out: &mut String, ty: ElementType, bits: u64) {
    let sign = ty != ElementType::F8E8M0FNU && bits >> (ty.bit_width() - 1) & 1 != 0;
    // The only NaN of the `fnuz` types is the pattern of -0; its sign bit has no meaning.
    let fnuz = ty.name().ends_with("fnuz");
    out.push_str(if sign && !fnuz { "-nan" } else { "nan" });
    if let Some(width) = payload_bits(ty) {
        let payload = bits & ((1 << width) - 1);
        if payload != 1 << (width - 1) {
            push_display(out, format_args!("(0x{payload:x})"));
        }
    }
}

fn push_shorter(out: &mut String, value: f64, few: usize, many: usize, same: impl Fn(f64) -> bool) {
    let start = out.len();
    push_general(out, value, few);
    if !out[start..].parse().is_ok_and(same) {
        out.truncate(start);
        push_general(out, value, many);
    }
}

/// Appends `value` with `digits` significant digits, fixed or scientific, without trailing zeros, like C's `%.*g`.
fn push_general(out: &mut String, value: f64, digits: usize) {
    let scientific = format!("{:.*e}", digits - 1, value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (first, rest) = mantissa.split_at(1);
    let rest = rest.trim_start_matches('.').trim_end_matches('0');
    if value < 0.0 {
        out.push('-');
    }
    if exponent < -4 || exponent >= digits as i32 {
        out.push_str(first);
        push_fraction(out, rest);
        let sign = if exponent < 0 { '-' } else { '+' };
        push_display(out, format_args!("e{sign}{:02}", exponent.abs()));
    } else if exponent < 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', (-exponent - 1) as usize));
        out.push_str(first);
        out.push_str(rest);
    } else {
        let (whole, fraction) = rest.split_at(rest.len().min(exponent as usize));
        out.push_str(first);
        out.push_str(whole);
        out.extend(std::iter::repeat_n('0', exponent as usize - whole.len()));
        push_fraction(out, fraction);
    }
}

fn push_fraction(out: &mut String, digits: &str) {
    if !digits.is_empty() {
        out.push('.');
        out.push_str(digits);
    }
}

fn push_display(out: &mut String, value: impl std::fmt::Display) {
    use std::fmt::Write as _;
    // Writing to a `String` cannot fail.
    let _ = write!(out, "{value}");
}
