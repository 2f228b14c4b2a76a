//! Reader of MLIR's attribute syntax, which frameworks use in backend configurations and frontend attributes.

use crate::{Error, Result};

/// Maximum nesting of lists.
const MAX_DEPTH: usize = 64;

/// Reader of a text from a position on.
pub(crate) struct MlirReader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    /// Name of the text in errors: `typed attributes`.
    what: &'static str,
}

impl<'t> MlirReader<'t> {
    pub fn new(text: &'t str, what: &'static str) -> MlirReader<'t> {
        MlirReader { text, at: 0, depth: 0, what }
    }

    pub fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Returns the position, for [`MlirReader::go_back`].
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns to a position that [`MlirReader::at`] returned.
    pub fn go_back(&mut self, at: usize) {
        self.at = at;
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Returns the next character without consuming it.
    pub fn peek(&mut self) -> Option<char> {
        self.skip_space();
        self.rest().chars().next()
    }

    pub fn expected(&self, what: &str) -> Error {
        let found: String = self.rest().chars().take(20).collect();
        Error::invalid_argument(format!("expected {what} at byte {} of {}, found {found:?}", self.at, self.what))
    }

    /// Returns an error about the item before the current position: `WHAT before byte 3 of typed attributes WHY`.
    pub fn wrong(&self, what: &str, why: impl std::fmt::Display) -> Error {
        Error::invalid_argument(format!("{what} before byte {} of {} {why}", self.at, self.what))
    }

    pub fn accept(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    pub fn expect(&mut self, token: &str) -> Result<()> {
        if self.accept(token) { Ok(()) } else { Err(self.expected(&format!("`{token}`"))) }
    }

    /// Checks that the whole text is consumed.
    pub fn end(&mut self) -> Result<()> {
        self.skip_space();
        if self.at == self.text.len() { Ok(()) } else { Err(self.expected("the end of the text")) }
    }

    /// Consumes the characters from here on that belong to a name or a number.
    pub fn word(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        self.skip_space();
        let rest = self.rest();
        let word = &rest[..rest.find(|c| !belongs(c)).unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    /// Reads comma-separated items up to `end`.
    pub fn list(&mut self, end: &str, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        if self.accept(end) {
            return Ok(());
        }
        if self.depth == MAX_DEPTH {
            return Err(Error::resource_exhausted(format!("{} nest deeper than {MAX_DEPTH}", self.what)));
        }
        self.depth += 1;
        loop {
            item(self)?;
            if !self.accept(",") {
                break;
            }
        }
        self.depth -= 1;
        self.expect(end)
    }

    /// Reads an integer of any type that fits.
    pub fn integer<T: std::str::FromStr>(&mut self, what: &str) -> Result<T> {
        let start = self.at;
        let word = self.word(|c| c.is_ascii_digit() || c == '-');
        word.parse().map_err(|_| {
            self.at = start;
            self.expected(what)
        })
    }

    /// Reads a name with or without quotes.
    pub fn name(&mut self) -> Result<String> {
        if self.peek() == Some('"') {
            return self.string();
        }
        match self.word(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '$' | '-')) {
            "" => Err(self.expected("a name")),
            name => Ok(name.to_string()),
        }
    }

    /// Reads a quoted string with MLIR's escapes: `\"`, `\\`, `\n`, `\t` and two hexadecimal digits.
    pub fn string(&mut self) -> Result<String> {
        self.skip_space();
        let (start, what) = (self.at, self.what);
        String::from_utf8(self.bytes()?).map_err(|e| {
            Error::invalid_argument(format!("the string at byte {start} of {what} is not UTF-8")).with_source(e)
        })
    }

    /// Reads the bytes of a quoted string with MLIR's escapes.
    pub fn bytes(&mut self) -> Result<Vec<u8>> {
        self.skip_space();
        let start = self.at;
        let what = self.what;
        let mut bytes = Vec::new();
        let mut rest = self.rest().bytes().enumerate();
        if rest.next().map(|(_, byte)| byte) != Some(b'"') {
            return Err(self.expected("a string in quotes"));
        }
        let unterminated = || Error::invalid_argument(format!("the string at byte {start} of {what} is broken"));
        loop {
            match rest.next().ok_or_else(unterminated)? {
                (i, b'"') => {
                    self.at = start + i + 1;
                    return Ok(bytes);
                }
                (_, b'\\') => {
                    let first = rest.next().ok_or_else(unterminated)?.1;
                    bytes.push(match first {
                        b'"' | b'\\' => first,
                        b'n' => b'\n',
                        b't' => b'\t',
                        _ => {
                            let second = rest.next().ok_or_else(unterminated)?.1;
                            let digits = [first, second].map(|b| char::from(b).to_digit(16));
                            let [Some(high), Some(low)] = digits else { return Err(unterminated()) };
                            (16 * high + low) as u8
                        }
                    });
                }
                (_, byte) => bytes.push(byte),
            }
        }
    }
}

/// Quotes a string with MLIR's escapes.
pub fn quoted(text: &str) -> String {
    quoted_bytes(text.as_bytes())
}

/// Quotes bytes with MLIR's escapes.
pub fn quoted_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for &byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b' '..=b'~' if byte != b'"' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\{byte:02X}")),
        }
    }
    out.push('"');
    out
}

/// Returns a name unchanged, or in quotes if MLIR requires them.
pub fn name(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$'));
    if is_plain { text.to_string() } else { quoted(text) }
}
