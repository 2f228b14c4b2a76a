//! Diagnostics for malformed text: line, column, an excerpt of the line and a caret.

use crate::Error;

/// Error with the byte offset in the text that it refers to.
#[derive(Debug)]
pub(crate) struct Failure(Box<Inner>);

#[derive(Debug)]
struct Inner {
    at: usize,
    error: Error,
}

/// Result of parsing a piece of text.
pub(crate) type Parse<T> = Result<T, Failure>;

impl Failure {
    pub fn new(at: usize, error: Error) -> Failure {
        Failure(Box::new(Inner { at, error }))
    }

    /// Creates an error for invalid text at offset `at`.
    pub fn invalid(at: usize, message: impl Into<String>) -> Failure {
        Failure::new(at, Error::invalid_argument(message))
    }

    /// Splits the failure into its offset and its error.
    pub fn into_parts(self) -> (usize, Error) {
        (self.0.at, self.0.error)
    }

    /// Returns the error as users see it: `error at 3:14: expected ...`, then the line with a caret.
    pub fn into_error(self, text: &str) -> Error {
        let Inner { at, error } = *self.0;
        let place = Place::of(text, at);
        error.context(format!("error at {}:{}", place.line, place.column)).note(place.excerpt())
    }
}

/// Adds line and column of the offset `at` of a text to an error, and the line with a caret below as a note.
///
/// Intended for parsers of other languages, whose errors should look like those of HLO text.
pub fn error_at(text: &str, at: usize, error: Error) -> Error {
    Failure::new(at, error).into_error(text)
}

/// Returns the beginning of a piece of text that an error cites.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

/// Line of the text with a position in it.
struct Place<'t> {
    line: usize,
    column: usize,
    text: &'t str,
}

/// Maximum number of characters of a line that are shown.
const SHOWN: usize = 120;

impl<'t> Place<'t> {
    fn of(text: &'t str, at: usize) -> Place<'t> {
        let at = floor_char_boundary(text, at.min(text.len()));
        let before = &text[..at];
        let start = before.rfind('\n').map_or(0, |i| i + 1);
        let end = text[at..].find('\n').map_or(text.len(), |i| at + i);
        let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
        Place { line, column: text[start..at].chars().count() + 1, text: text[start..end].trim_end() }
    }

    /// Returns the line, cut around the caret, with the caret below.
    fn excerpt(&self) -> String {
        let caret = self.column - 1;
        let from = caret.saturating_sub(SHOWN / 2);
        let shown: String = self.text.chars().skip(from).take(SHOWN).map(printable).collect();
        let head = if from > 0 { "..." } else { "" };
        let tail = if self.text.chars().nth(from + SHOWN).is_some() { "..." } else { "" };
        let gutter = self.line.to_string();
        let blank = " ".repeat(gutter.len());
        let indent = " ".repeat(head.len() + caret - from);
        format!("{gutter} | {head}{shown}{tail}\n{blank} | {indent}^")
    }
}

/// Replaces a character by one that takes exactly one column.
fn printable(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() => '.',
        c => c,
    }
}

fn floor_char_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
