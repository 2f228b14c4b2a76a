//! Output of results to standard output, and of arrays in readable form.

use std::fmt::Write as _;
use std::io::{ErrorKind, Write};
use std::path::Path;

use xla::compare::scalar;
use xla::hlo::{Error, Literal, Result};
use xla::service::write_file;

/// Limit on the elements of an array that is printed completely.
const SHOWN: usize = 64;

/// Writes text to standard output. A closed pipe is not an error.
pub fn print(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
}

fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Error::failed_precondition(format!("cannot write to standard output: {e}")).with_source(e))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes bytes to a file, atomically, or to standard output without a path.
pub fn write(path: Option<&Path>, bytes: &[u8]) -> Result<()> {
    path.map_or_else(|| print_bytes(bytes), |path| write_file(path, bytes))
}

/// Replaces control characters other than line feed and tab by escapes such as `\u{1b}`, so that names in a program
/// cannot send commands to the terminal.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && !['\n', '\t'].contains(&c) || is_bidirectional(c) {
            escaped.extend(c.escape_unicode());
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Whether a character changes the display order of others.
fn is_bidirectional(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Formats an array as in HLO text, `f32[2,2] { { 1, 2 }, { 3, 4 } }`; a large one is abbreviated.
pub fn show(literal: &Literal) -> String {
    let shape = literal.array_shape();
    let count = shape.element_count();
    let mut text = format!("{shape} ");
    if count == 0 {
        text.push_str("{}");
    } else if count > SHOWN {
        let first: Vec<String> = (0..8).map(|i| scalar(literal.get(i))).collect();
        let last = scalar(literal.get(count - 1));
        let _ = write!(text, "row major: {}, ... {last}", first.join(", "));
    } else {
        nested(literal, shape.dims(), 0, count, &mut text);
    }
    text
}

/// Appends the `count` elements from `start` on as an array of these dimensions.
fn nested(literal: &Literal, dims: &[usize], start: usize, count: usize, text: &mut String) {
    let Some((&size, inner)) = dims.split_first() else {
        text.push_str(&scalar(literal.get(start)));
        return;
    };
    let step = count / size.max(1);
    text.push_str("{ ");
    for i in 0..size {
        if i > 0 {
            text.push_str(", ");
        }
        nested(literal, inner, start + i * step, step, text);
    }
    text.push_str(" }");
}

#[cfg(test)]
mod tests {
    use super::*;
    use xla::hlo::{ArrayShape, ElementType, Scalar};

    fn shown(ty: ElementType, dims: &[usize]) -> String {
        show(&Literal::from_fn(&ArrayShape::new(ty, dims), |i| Scalar::from_i64(ty, i as i64)).unwrap())
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escape("a\u{1b}[31m\r\u{9b}b\u{202e}"), "a\\u{1b}[31m\\u{d}\\u{9b}b\\u{202e}");
        assert_eq!(escape("two\n\tlines, é"), "two\n\tlines, é");
    }

    #[test]
    fn arrays_are_shown() {
        assert_eq!(shown(ElementType::F32, &[]), "f32[] 0");
        assert_eq!(shown(ElementType::F32, &[2, 2]), "f32[2,2] { { 0, 1 }, { 2, 3 } }");
        assert_eq!(shown(ElementType::S8, &[0]), "s8[0] {}");
        assert_eq!(shown(ElementType::S8, &[2, 0]), "s8[2,0] {}");
        assert_eq!(shown(ElementType::C64, &[1]), "c64[1] { (0, 0) }");
        assert_eq!(shown(ElementType::S32, &[100]), "s32[100] row major: 0, 1, 2, 3, 4, 5, 6, 7, ... 99");
    }
}
