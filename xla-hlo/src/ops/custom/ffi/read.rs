//! Parser of typed attributes.

use std::collections::BTreeMap;

use super::{FfiAttributes, FfiValue};
use crate::text::{MlirReader, quoted};
use crate::{ArrayShape, ElementKind, ElementType, Error, Literal, Result, Scalar};

pub(super) fn attributes(text: &str) -> Result<FfiAttributes> {
    if text.trim().is_empty() {
        return Ok(FfiAttributes::default());
    }
    let mut reader = MlirReader::new(text, "typed attributes");
    let attributes = dictionary(&mut reader)?;
    reader.end()?;
    Ok(attributes)
}

fn dictionary(r: &mut MlirReader<'_>) -> Result<FfiAttributes> {
    let mut attributes = BTreeMap::new();
    r.expect("{")?;
    r.list("}", |r| {
        let name = r.name()?;
        let value = if r.accept("=") { value(r)? } else { FfiValue::Unit };
        match attributes.insert(name.clone(), value) {
            None => Ok(()),
            Some(_) => Err(Error::invalid_argument(format!("attribute {name} is given twice"))),
        }
    })?;
    Ok(FfiAttributes(attributes))
}

fn value(r: &mut MlirReader<'_>) -> Result<FfiValue> {
    match r.peek() {
        Some('"') => r.bytes().map(FfiValue::Text),
        Some('{') => dictionary(r).map(FfiValue::Dictionary),
        Some('@') => symbol(r).map(FfiValue::Symbol),
        Some('[') => {
            r.expect("[")?;
            let mut items = Vec::new();
            r.list("]", |r| {
                items.push(value(r)?);
                Ok(())
            })?;
            Ok(FfiValue::List(items))
        }
        Some(c) if c.is_alphabetic() => keyword(r),
        _ => {
            let number = number(r)?;
            let ty = if r.accept(":") { Some(element_type(r)?) } else { None };
            let ty = ty.unwrap_or_else(|| number_type(number));
            typed(r, number, ty).map(|value| FfiValue::Number(ty, value))
        }
    }
}

fn symbol(r: &mut MlirReader<'_>) -> Result<Vec<String>> {
    let mut path = Vec::new();
    loop {
        r.expect("@")?;
        path.push(r.name()?);
        if !r.accept("::") {
            return Ok(path);
        }
    }
}

fn keyword(r: &mut MlirReader<'_>) -> Result<FfiValue> {
    let start = r.at();
    match r.word(char::is_alphanumeric) {
        "true" => Ok(FfiValue::Boolean(true)),
        "false" => Ok(FfiValue::Boolean(false)),
        "unit" => Ok(FfiValue::Unit),
        "array" => {
            r.expect("<")?;
            let ty = element_type(r)?;
            let mut numbers = Vec::new();
            if r.accept(":") {
                r.list(">", |r| {
                    let number = element(r)?;
                    numbers.push(typed(r, number, ty)?);
                    Ok(())
                })?;
            } else {
                r.expect(">")?;
            }
            Ok(FfiValue::Numbers(ty, numbers))
        }
        "dense" => elements(r).map(FfiValue::Elements),
        _ => {
            r.go_back(start);
            let ty = element_type(r).map_err(|_| {
                r.go_back(start);
                r.expected("a number, a string, true, false, unit, array<..>, dense<..>, a type, @name, [..] or {..}")
            });
            ty.map(FfiValue::Type)
        }
    }
}

/// Parses a tensor: `<[[1, 2], [3, 4]]> : tensor<2x2xi32>`, `<1> : ...` for equal elements, or their bytes as
/// hexadecimal digits.
fn elements(r: &mut MlirReader<'_>) -> Result<Literal> {
    r.expect("<")?;
    let mut texts = Vec::new();
    let bytes = if r.peek() == Some('"') { Some(r.string()?) } else { None };
    if bytes.is_none() && r.peek() != Some('>') {
        nested_elements(r, &mut texts)?;
    }
    r.expect(">")?;
    r.expect(":")?;
    r.expect("tensor")?;
    r.expect("<")?;
    let mut dims = Vec::new();
    while r.peek().is_some_and(|c| c.is_ascii_digit()) {
        dims.push(r.integer::<usize>("an extent")?);
        r.expect("x")?;
    }
    let ty = element_type(r)?;
    r.expect(">")?;
    let shape = ArrayShape::new(ty, dims);
    let count = shape.checked_element_count()?;
    if let Some(text) = bytes {
        let digits = text.strip_prefix("0x").filter(|digits| digits.len().is_multiple_of(2));
        let bytes = digits.and_then(|digits| {
            (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(digits.get(i..i + 2)?, 16).ok()).collect()
        });
        let bytes: Vec<u8> =
            bytes.ok_or_else(|| r.wrong(&quoted(&text), "is not a list of bytes in hexadecimal digits"))?;
        return Literal::from_bytes(&shape, bytes);
    }
    let values = texts.into_iter().map(|text| typed(r, text, ty)).collect::<Result<Vec<Scalar>>>()?;
    match values[..] {
        [one] => Literal::splat(&shape, one),
        _ if values.len() == count => Literal::from_fn(&shape, |i| values[i]),
        _ => Err(r.wrong("a tensor", format!("has {} elements, which does not fit {shape}", values.len()))),
    }
}

fn nested_elements<'t>(r: &mut MlirReader<'t>, out: &mut Vec<&'t str>) -> Result<()> {
    if r.accept("[") {
        return r.list("]", |r| nested_elements(r, out));
    }
    out.push(element(r)?);
    Ok(())
}

/// Parses an element of an array: a number or a boolean.
fn element<'t>(r: &mut MlirReader<'t>) -> Result<&'t str> {
    if r.accept("true") {
        return Ok("1");
    }
    if r.accept("false") { Ok("0") } else { number(r) }
}

/// Parses the text of a number.
fn number<'t>(r: &mut MlirReader<'t>) -> Result<&'t str> {
    match r.word(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')) {
        "" => Err(r.expected("a value")),
        number => Ok(number),
    }
}

/// Converts a number to a value of type `ty`. Hexadecimal patterns such as `0x7FC00000` are the bits of a float.
fn typed(r: &MlirReader<'_>, number: &str, ty: ElementType) -> Result<Scalar> {
    let hex = number.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let integer = || hex.map(i128::from).or_else(|| number.parse::<i128>().ok());
    let value = match ty.kind() {
        ElementKind::Pred => integer().map(|n| Scalar::Pred(n != 0)),
        ElementKind::Signed => integer().and_then(|n| i64::try_from(n).ok()).map(Scalar::Signed),
        ElementKind::Unsigned => integer().and_then(|n| u64::try_from(n).ok()).map(Scalar::Unsigned),
        ElementKind::Float => match hex {
            Some(bits) => Some(Scalar::from_bits(ty, bits)),
            None => number.parse().ok().map(Scalar::Float),
        },
        ElementKind::Complex => None,
    };
    // Floats are rounded, but integers must fit.
    let fits = |v: &Scalar| ty.is_float() || v.rounded(ty) == *v;
    value
        .filter(fits)
        .map(|v| v.rounded(ty))
        .ok_or_else(|| r.wrong(&format!("`{number}`"), format!("is not of type {ty}")))
}

/// Parses a number type: `i64` (signed), `si64`, `ui64`, `index`, `f32`, `bf16`.
fn element_type(r: &mut MlirReader<'_>) -> Result<ElementType> {
    r.peek();
    let start = r.at();
    let word = r.word(char::is_alphanumeric).to_lowercase();
    let found = match word.as_str() {
        "i1" => Some(ElementType::Pred),
        "index" => Some(ElementType::S64),
        "bf16" => Some(ElementType::BF16),
        _ => {
            let name = match (word.strip_prefix("ui"), word.strip_prefix("si"), word.strip_prefix('i')) {
                (Some(bits), _, _) => format!("u{bits}"),
                (_, Some(bits), _) | (_, _, Some(bits)) => format!("s{bits}"),
                (None, None, None) => word.clone(),
            };
            ElementType::from_name(&name)
        }
    };
    found.ok_or_else(|| {
        r.go_back(start);
        r.expected("a type such as i64, ui8 or f32")
    })
}

fn number_type(number: &str) -> ElementType {
    if number.parse::<i64>().is_ok() { ElementType::S64 } else { ElementType::F64 }
}
