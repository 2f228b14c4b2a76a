//! Text form of comparisons and accuracies.

use super::{CompareDirection, CompareType, ResultAccuracy};
use crate::Result;
use crate::text::{AttributeCursor, AttributeValue, AttributeWriter, TokenKind, attribute_words};

attribute_words! {
    CompareDirection, "EQ, NE, GE, GT, LE or LT":
    "EQ" => CompareDirection::Eq,
    "NE" => CompareDirection::Ne,
    "GE" => CompareDirection::Ge,
    "GT" => CompareDirection::Gt,
    "LE" => CompareDirection::Le,
    "LT" => CompareDirection::Lt,
}

attribute_words! {
    CompareType, "FLOAT, TOTALORDER, SIGNED or UNSIGNED":
    "FLOAT" => CompareType::Float,
    "TOTALORDER" => CompareType::TotalOrder,
    "SIGNED" => CompareType::Signed,
    "UNSIGNED" => CompareType::Unsigned,
}

const MODES: &[(&str, ResultAccuracy)] =
    &[("default", ResultAccuracy::Default), ("high", ResultAccuracy::High), ("highest", ResultAccuracy::Highest)];

impl AttributeValue for ResultAccuracy {
    const WHAT: &'static str = "an accuracy such as {mode=highest} or {tolerance={atol=1,rtol=0.5,ulps=2}}";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        cursor.expect(TokenKind::LeftBrace, "`{`")?;
        let accuracy = match cursor.expect(TokenKind::AttributeName, "`mode=` or `tolerance=`")? {
            "mode" => cursor.choice_in_any_case(MODES)?,
            "tolerance" => read_tolerance(cursor)?,
            _ => return Err(cursor.unexpected("the value of `mode=` or `tolerance=`")),
        };
        cursor.expect(TokenKind::RightBrace, "`}`")?;
        Ok(accuracy)
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        if let ResultAccuracy::Tolerance { atol, rtol, ulps } = *self {
            let (atol, rtol) = (f64::from_bits(atol), f64::from_bits(rtol));
            return w.display(format_args!("{{tolerance={{atol={atol:?},rtol={rtol:?},ulps={ulps}}}}}"));
        }
        for (name, _) in MODES.iter().filter(|(_, mode)| mode == self) {
            w.display(format_args!("{{mode={name}}}"));
        }
    }
}

/// Reads `{atol=1,rtol=0.5,ulps=2}`; omitted fields are 0.
fn read_tolerance(cursor: &mut AttributeCursor<'_>) -> Result<ResultAccuracy> {
    let (mut atol, mut rtol, mut ulps) = (0.0f64, 0.0f64, 0);
    cursor.braced(|c| {
        match c.expect(TokenKind::AttributeName, "`atol=`, `rtol=` or `ulps=`")? {
            "atol" => atol = c.number()?,
            "rtol" => rtol = c.number()?,
            "ulps" => ulps = c.integer()?,
            _ => return Err(c.unexpected("the value of `atol=`, `rtol=` or `ulps=`")),
        }
        Ok(())
    })?;
    Ok(ResultAccuracy::Tolerance { atol: atol.to_bits(), rtol: rtol.to_bits(), ulps })
}
