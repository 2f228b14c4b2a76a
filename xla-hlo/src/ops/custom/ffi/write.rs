//! Printer of typed attributes in MLIR's format.

use std::fmt;

use super::{FfiAttributes, FfiValue};
use crate::text::{mlir_name, mlir_quoted_bytes};
use crate::{ElementKind, ElementType, Literal, Scalar};

/// Tensors with more elements are printed as the hexadecimal digits of their bytes.
const MOST_ELEMENTS: usize = 100;

impl fmt::Display for FfiAttributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{")?;
        for (i, (name, value)) in self.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{}", mlir_name(name))?;
            if *value != FfiValue::Unit {
                write!(f, " = {value}")?;
            }
        }
        write!(f, "}}")
    }
}

impl fmt::Display for FfiValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FfiValue::Unit => write!(f, "unit"),
            FfiValue::Boolean(value) => write!(f, "{value}"),
            FfiValue::Number(ty, value) => write!(f, "{} : {}", number(*ty, *value), type_name(*ty)),
            FfiValue::Numbers(ty, values) if values.is_empty() => write!(f, "array<{}>", type_name(*ty)),
            FfiValue::Numbers(ty, values) => {
                let values: Vec<String> = values.iter().map(|&value| number(*ty, value)).collect();
                write!(f, "array<{}: {}>", type_name(*ty), values.join(", "))
            }
            FfiValue::Elements(literal) => elements(literal, f),
            FfiValue::Symbol(path) => {
                let path: Vec<String> = path.iter().map(|name| format!("@{}", mlir_name(name))).collect();
                write!(f, "{}", path.join("::"))
            }
            FfiValue::Type(ty) => write!(f, "{}", type_name(*ty)),
            FfiValue::Text(text) => write!(f, "{}", mlir_quoted_bytes(text)),
            FfiValue::List(items) => {
                let items: Vec<String> = items.iter().map(item).collect();
                write!(f, "[{}]", items.join(", "))
            }
            FfiValue::Dictionary(attributes) => write!(f, "{attributes}"),
        }
    }
}

/// Formats an item of a list. The type of a number is omitted if it is the default.
fn item(value: &FfiValue) -> String {
    match value {
        FfiValue::Number(ty @ (ElementType::S64 | ElementType::F64), value) => number(*ty, *value),
        value => value.to_string(),
    }
}

/// Returns MLIR's name of a type. HLO's signed integers are signless integers in MLIR.
fn type_name(ty: ElementType) -> String {
    match ty.kind() {
        ElementKind::Pred => "i1".to_string(),
        ElementKind::Signed => format!("i{}", ty.bit_width()),
        ElementKind::Unsigned => format!("ui{}", ty.bit_width()),
        ElementKind::Complex if ty == ElementType::C64 => "complex<f32>".to_string(),
        ElementKind::Complex => "complex<f64>".to_string(),
        ElementKind::Float if ty.bit_width() < 16 => {
            // All letters but the first are upper case: `f8E4M3FN`.
            let name = ty.name().to_uppercase();
            name.replacen('F', "f", 1)
        }
        ElementKind::Float => ty.name().to_string(),
    }
}

fn elements(literal: &Literal, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let shape = literal.array_shape();
    let ty = shape.element_type();
    write!(f, "dense<")?;
    if let Some(value) = literal.uniform() {
        write!(f, "{}", number(ty, value))?;
    } else if shape.element_count() > MOST_ELEMENTS {
        write!(f, "\"0x")?;
        literal.bytes().iter().try_for_each(|byte| write!(f, "{byte:02X}"))?;
        write!(f, "\"")?;
    } else if shape.element_count() > 0 {
        let dims = shape.dims();
        for i in 0..shape.element_count() {
            // Brackets open and close at the boundaries of each dimension.
            let rows = |from: usize| {
                dims.iter()
                    .rev()
                    .scan(1, |n, &d| {
                        *n *= d;
                        Some(*n)
                    })
                    .filter(|&n| from.is_multiple_of(n))
                    .count()
            };
            let opened = if i == 0 { dims.len() } else { rows(i) };
            write!(f, "{}{}", if i == 0 { "" } else { ", " }, "[".repeat(opened))?;
            write!(f, "{}{}", number(ty, literal.get(i)), "]".repeat(rows(i + 1)))?;
        }
    }
    write!(f, "> : tensor<")?;
    shape.dims().iter().try_for_each(|d| write!(f, "{d}x"))?;
    write!(f, "{}>", type_name(ty))
}

fn number(ty: ElementType, value: Scalar) -> String {
    match value {
        Scalar::Pred(value) => value.to_string(),
        Scalar::Signed(value) => value.to_string(),
        Scalar::Unsigned(value) => value.to_string(),
        Scalar::Float(value) => float(ty, value),
        Scalar::Complex(re, im) => {
            let part = if ty == ElementType::C64 { ElementType::F32 } else { ElementType::F64 };
            format!("({},{})", float(part, re), float(part, im))
        }
    }
}

/// Formats a float with six digits if these identify it uniquely, otherwise with the necessary number of digits. Uses
/// hexadecimal bits if the result is not a decimal fraction.
fn float(ty: ElementType, value: f64) -> String {
    let bits = |value: f64| Scalar::Float(value).rounded(ty).to_bits(ty);
    let short = six_digits(value);
    if value.is_finite() && short.parse().is_ok_and(|read: f64| bits(read) == bits(value)) {
        return short;
    }
    match decimal(ty, value) {
        Some(text) if text.contains('.') => text,
        _ => {
            let digits = ty.bit_width().div_ceil(4);
            format!("0x{:0digits$X}", bits(value))
        }
    }
}

/// Formats a float like `1.500000e+00`.
fn six_digits(value: f64) -> String {
    let text = format!("{value:.5e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    format!("{mantissa}0e{sign}{exponent:0>2}")
}

/// Formats a float with sufficient decimal digits for its type, without trailing zeros. Uses an exponent only in place
/// of more than three zeros.
fn decimal(ty: ElementType, value: f64) -> Option<String> {
    const MOST_ZEROS: i32 = 3;
    if !value.is_finite() {
        return None;
    }
    let precision = match ty {
        ElementType::F64 => 17,
        ElementType::F32 => 9,
        ElementType::F16 => 5,
        ElementType::BF16 => 4,
        _ => 3,
    };
    let text = format!("{:.*e}", precision - 1, value.abs());
    let (mantissa, exponent) = text.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_end_matches('0');
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let count = digits.len() as i32;
    // The number is `digits` times ten to the power of `power`.
    let power = exponent - (count - 1);
    let is_scientific = match power {
        0.. => power > MOST_ZEROS || count + power > precision as i32,
        _ => exponent < -MOST_ZEROS,
    };
    Some(if is_scientific {
        let (first, rest) = digits.split_at(1);
        let rest = if rest.is_empty() { "0" } else { rest };
        format!("{sign}{first}.{rest}E{exponent:+}")
    } else if power >= 0 {
        format!("{sign}{digits}{}", "0".repeat(power as usize))
    } else if exponent >= 0 {
        let (whole, fraction) = digits.split_at((exponent + 1) as usize);
        format!("{sign}{whole}.{fraction}")
    } else {
        format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize))
    })
}
