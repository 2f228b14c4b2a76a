//! Text form of windows.

use super::{Window, WindowDim};
use crate::text::{AttributeCursor, AttributeValue, AttributeWriter, TokenKind};
use crate::{Error, Result};

impl AttributeValue for Window {
    const WHAT: &'static str = "a window such as {size=2x3 stride=1x2 pad=0_0x1_1 lhs_dilate=1x1 rhs_dilate=1x1 \
        rhs_reversal=0x1} of which all but the size may be left out";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        cursor.expect(TokenKind::LeftBrace, "`{`")?;
        if cursor.accept(TokenKind::RightBrace) {
            return Ok(Window::default());
        }
        let mut fields = Fields::default();
        while !cursor.accept(TokenKind::RightBrace) {
            fields.read_one(cursor)?;
        }
        fields.into_window()
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        if self.dims.is_empty() {
            return w.push("{}");
        }
        let mut separator = "{";
        let mut field = |name: &str, needed: bool, dim: &dyn Fn(&WindowDim) -> String| {
            if needed {
                w.display(format_args!("{separator}{name}="));
                w.join(&self.dims, "x", |w, d| w.push(&dim(d)));
                separator = " ";
            }
        };
        let any = |differs: &dyn Fn(&WindowDim) -> bool| self.dims.iter().any(differs);
        field("size", true, &|d| d.size.to_string());
        field("stride", any(&|d| d.stride != 1), &|d| d.stride.to_string());
        field("pad", any(&|d| (d.pad_low, d.pad_high) != (0, 0)), &|d| format!("{}_{}", d.pad_low, d.pad_high));
        field("lhs_dilate", any(&|d| d.base_dilation != 1), &|d| d.base_dilation.to_string());
        field("rhs_dilate", any(&|d| d.window_dilation != 1), &|d| d.window_dilation.to_string());
        field("rhs_reversal", any(&|d| d.reversal), &|d| u8::from(d.reversal).to_string());
        w.push("}");
    }
}

/// Lists of a window as written in text; empty if absent.
#[derive(Default)]
struct Fields {
    size: Vec<usize>,
    stride: Vec<usize>,
    pad: Vec<(i64, i64)>,
    base_dilation: Vec<usize>,
    window_dilation: Vec<usize>,
    reversal: Vec<usize>,
}

impl Fields {
    fn read_one(&mut self, cursor: &mut AttributeCursor<'_>) -> Result<()> {
        const FIELD: &str = "`}` or one of size=, stride=, pad=, lhs_dilate=, rhs_dilate=, rhs_reversal=";
        match cursor.expect(TokenKind::AttributeName, FIELD)? {
            "size" => self.size = sizes(cursor)?,
            "stride" => self.stride = sizes(cursor)?,
            "pad" => self.pad = padding(cursor)?,
            "lhs_dilate" => self.base_dilation = sizes(cursor)?,
            "rhs_dilate" => self.window_dilation = sizes(cursor)?,
            "rhs_reversal" => self.reversal = sizes(cursor)?,
            other => {
                let message = format!("expected {FIELD}, found {other}=");
                return Err(Error::invalid_argument(message));
            }
        }
        Ok(())
    }

    fn into_window(self) -> Result<Window> {
        let rank = self.size.len();
        let lengths = [
            ("stride", self.stride.len()),
            ("pad", self.pad.len()),
            ("lhs_dilate", self.base_dilation.len()),
            ("rhs_dilate", self.window_dilation.len()),
            ("rhs_reversal", self.reversal.len()),
        ];
        if let Some((name, length)) = lengths.iter().find(|(_, length)| *length != 0 && *length != rank) {
            let message = format!("{name}= has {length} dimensions, size= has {rank}");
            return Err(Error::invalid_argument(message));
        }
        let at = |list: &[usize], d: usize| list.get(d).copied().unwrap_or(1);
        let dims = (0..rank).map(|d| {
            let (pad_low, pad_high) = self.pad.get(d).copied().unwrap_or_default();
            WindowDim {
                size: self.size[d],
                stride: at(&self.stride, d),
                pad_low,
                pad_high,
                window_dilation: at(&self.window_dilation, d),
                base_dilation: at(&self.base_dilation, d),
                reversal: self.reversal.get(d).is_some_and(|&r| r != 0),
            }
        });
        Ok(Window { dims: dims.collect() })
    }
}

/// Reads sizes such as `2x3`, or a single integer.
fn sizes(cursor: &mut AttributeCursor<'_>) -> Result<Vec<usize>> {
    if cursor.kind() == TokenKind::Integer {
        return Ok(vec![cursor.unsigned()?]);
    }
    let text = cursor.expect(TokenKind::Sizes, "sizes such as 2x3")?;
    text.split('x').map(|n| n.parse().map_err(|_| out_of_range(n))).collect()
}

/// Reads paddings such as `0_1x2_2`.
fn padding(cursor: &mut AttributeCursor<'_>) -> Result<Vec<(i64, i64)>> {
    let text = cursor.expect(TokenKind::Padding, "paddings such as 0_1x2_2")?;
    let dim = |dim: &str| {
        let (low, high) = dim.split_once('_')?;
        Some((low.parse().ok()?, high.parse().ok()?))
    };
    text.split('x').map(|d| dim(d).ok_or_else(|| out_of_range(d))).collect()
}

fn out_of_range(text: &str) -> Error {
    Error::invalid_argument(format!("`{text}` does not fit here"))
}
