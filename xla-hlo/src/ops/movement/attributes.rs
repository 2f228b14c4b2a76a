//! Text form of slices and paddings.

use super::{PadDim, SliceRange};
use crate::text::{AttributeCursor, AttributeValue, AttributeWriter, TokenKind};
use crate::{Error, Result};

impl AttributeValue for Vec<SliceRange> {
    const WHAT: &'static str = "ranges such as {[0:4], [0:8:2]}";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        cursor.braced(|c| {
            c.expect(TokenKind::LeftBracket, "`[`")?;
            let start = c.unsigned()?;
            c.expect(TokenKind::Colon, "`:`")?;
            let limit = c.unsigned()?;
            let stride = if c.accept(TokenKind::Colon) { c.unsigned()? } else { 1 };
            c.expect(TokenKind::RightBracket, "`]`")?;
            Ok(SliceRange { start, limit, stride })
        })
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        let strided = self.iter().any(|r| r.stride != 1);
        w.push("{");
        w.join(self, ", ", |w, r| {
            w.display(format_args!("[{}:{}", r.start, r.limit));
            if strided {
                w.display(format_args!(":{}", r.stride));
            }
            w.push("]");
        });
        w.push("}");
    }
}

impl AttributeValue for Vec<PadDim> {
    const WHAT: &'static str = "padding such as 0_1x2_2_1, low_high or low_high_interior for each dimension";

    /// Reads the padding of each dimension; the padding of a scalar is the empty string.
    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        if cursor.kind() == TokenKind::End {
            return Ok(Vec::new());
        }
        let text = cursor.expect(TokenKind::Padding, "padding such as 0_1x2_2_1")?;
        text.split('x').map(|dim| parse_dim(dim).ok_or_else(|| out_of_range(dim))).collect()
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        let interior = self.iter().any(|d| d.interior != 0);
        w.join(self, "x", |w, d| {
            w.display(format_args!("{}_{}", d.low, d.high));
            if interior {
                w.display(format_args!("_{}", d.interior));
            }
        });
    }
}

fn parse_dim(text: &str) -> Option<PadDim> {
    let mut numbers = text.split('_');
    let low = numbers.next()?.parse().ok()?;
    let high = numbers.next()?.parse().ok()?;
    let interior = numbers.next().map_or(Some(0), |n| n.parse().ok())?;
    Some(PadDim { low, high, interior })
}

fn out_of_range(text: &str) -> Error {
    Error::invalid_argument(format!("`{text}` does not fit 64 bits"))
}
