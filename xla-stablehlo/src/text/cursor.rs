//! Cursor over MLIR text, with the lexical elements: words, numbers, strings, brackets.

use std::borrow::Cow;

use xla_hlo::text::error_at;
use xla_hlo::{Error, Result};

/// Position in a text.
#[derive(Clone)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    pub fn new(text: &'t str) -> Cursor<'t> {
        Cursor { text, at: 0 }
    }

    /// Returns the byte offset of the next token.
    pub fn offset(&mut self) -> usize {
        self.skip_space();
        self.at
    }

    /// Returns the text from offset `start` to the cursor.
    pub fn since(&self, start: usize) -> &'t str {
        &self.text[start..self.at]
    }

    /// Returns a cursor at another offset of the text.
    pub fn at(&self, at: usize) -> Cursor<'t> {
        Cursor { text: self.text, at }
    }

    /// Returns the whole text.
    pub fn text(&self) -> &'t str {
        self.text
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Returns an error for malformed text at an offset.
    pub fn error_at(&self, at: usize, message: impl Into<String>) -> Error {
        error_at(self.text, at, Error::invalid_argument(message))
    }

    /// Returns an error for unsupported text at an offset.
    pub fn unimplemented_at(&self, at: usize, message: impl Into<String>) -> Error {
        error_at(self.text, at, Error::unimplemented(message))
    }

    /// Returns an error for an unexpected token at the cursor.
    pub fn expected(&mut self, what: &str) -> Error {
        self.skip_space();
        let found: String = self.rest().chars().take_while(|c| !c.is_whitespace()).take(24).collect();
        let found = if found.is_empty() { "the end of the text".to_string() } else { format!("`{found}`") };
        self.error_at(self.at, format!("expected {what}, found {found}"))
    }

    /// Skips whitespace and comments.
    fn skip_space(&mut self) {
        while let Some(byte) = self.byte() {
            if byte.is_ascii_whitespace() {
                self.at += 1;
            } else if self.rest().starts_with("//") {
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
            } else {
                break;
            }
        }
    }

    pub fn is_at_end(&mut self) -> bool {
        self.skip_space();
        self.at == self.text.len()
    }

    /// Whether the next token is `text`, or begins with it if `text` is not a word.
    pub fn is(&mut self, text: &str) -> bool {
        self.skip_space();
        let is_whole = |rest: &str| !text.starts_with(is_word) || !rest[text.len()..].starts_with(is_word);
        self.rest().starts_with(text) && is_whole(self.rest())
    }

    /// Skips a token; returns false if another token follows.
    pub fn eat(&mut self, text: &str) -> bool {
        let is = self.is(text);
        if is {
            self.at += text.len();
        }
        is
    }

    /// Skips `text` even if it is only the start of a word.
    pub fn eat_prefix(&mut self, text: &str) -> bool {
        self.skip_space();
        let is = self.rest().starts_with(text);
        if is {
            self.at += text.len();
        }
        is
    }

    /// Skips `text` if it follows without whitespace.
    pub fn eat_directly(&mut self, text: &str) -> bool {
        let is = self.rest().starts_with(text);
        if is {
            self.at += text.len();
        }
        is
    }

    pub fn expect(&mut self, text: &str) -> Result<()> {
        if self.eat(text) { Ok(()) } else { Err(self.expected(&format!("`{text}`"))) }
    }

    /// Whether the next token begins with a digit.
    pub fn is_digit(&mut self) -> bool {
        self.skip_space();
        self.byte().is_some_and(|byte| byte.is_ascii_digit())
    }

    /// Parses an optional word of letters, digits, `_`, `$` and `.`.
    pub fn word_if_any(&mut self) -> Option<&'t str> {
        self.skip_space();
        if self.byte().is_none_or(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let word = self.run(|c| is_word(c) || c == '.');
        (!word.is_empty()).then_some(word)
    }

    pub fn word(&mut self, what: &str) -> Result<&'t str> {
        match self.word_if_any() {
            Some(word) => Ok(word),
            None => Err(self.expected(what)),
        }
    }

    /// Parses the name of a value, symbol, block or alias after its sigil.
    pub fn suffix(&mut self, what: &str) -> Result<&'t str> {
        let name = self.run(|c| is_word(c) || matches!(c, '.' | '-'));
        if name.is_empty() { Err(self.expected(what)) } else { Ok(name) }
    }

    fn run(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Parses a decimal number without a sign.
    pub fn digits(&mut self, what: &str) -> Result<u64> {
        self.skip_space();
        let start = self.at;
        let digits = self.run(|c| c.is_ascii_digit());
        match digits.parse() {
            Ok(number) => Ok(number),
            Err(_) if digits.is_empty() => Err(self.expected(what)),
            Err(_) => Err(self.error_at(start, format!("{digits} is too large"))),
        }
    }

    pub fn integer(&mut self, what: &str) -> Result<i64> {
        self.skip_space();
        let start = self.at;
        let is_negative = self.eat("-");
        let magnitude = i128::from(self.digits(what)?);
        let value = if is_negative { -magnitude } else { magnitude };
        i64::try_from(value).map_err(|_| self.error_at(start, format!("{value} does not fit into 64 bits")))
    }

    /// Returns the text of a number: sign, digits, fraction, exponent, or `0x` and hexadecimal digits.
    pub fn number(&mut self) -> Result<&'t str> {
        self.skip_space();
        let start = self.at;
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        if self.byte().is_none_or(|byte| !byte.is_ascii_digit()) {
            self.at = start;
            return Err(self.expected("a number"));
        }
        if self.rest().starts_with("0x") {
            self.at += 2;
            self.run(|c| c.is_ascii_hexdigit());
            return Ok(self.since(start));
        }
        self.run(|c| c.is_ascii_digit());
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.run(|c| c.is_ascii_digit());
            if matches!(self.byte(), Some(b'e' | b'E')) {
                self.at += 1;
                if matches!(self.byte(), Some(b'+' | b'-')) {
                    self.at += 1;
                }
                self.run(|c| c.is_ascii_digit());
            }
        }
        Ok(self.since(start))
    }

    /// Parses an extent of a shape with the `x` that follows, `?x` or `4x`; `None` if the element type follows.
    pub fn extent(&mut self) -> Result<Option<Option<u64>>> {
        self.skip_space();
        if self.rest().starts_with("?x") {
            self.at += 2;
            return Ok(Some(None));
        }
        if !self.is_digit() {
            return Ok(None);
        }
        let size = self.digits("an extent")?;
        match self.byte() {
            Some(b'x') => self.at += 1,
            _ => return Err(self.expected("`x`")),
        }
        Ok(Some(Some(size)))
    }

    /// Parses a quoted string and resolves its escapes to bytes.
    pub fn string(&mut self, what: &str) -> Result<Cow<'t, [u8]>> {
        if !self.eat("\"") {
            return Err(self.expected(what));
        }
        let start = self.at;
        let length = self.rest().find(['"', '\\', '\n']).unwrap_or(self.rest().len());
        self.at += length;
        if self.byte() == Some(b'"') {
            self.at += 1;
            return Ok(Cow::Borrowed(&self.text.as_bytes()[start..start + length]));
        }
        let mut bytes = self.text.as_bytes()[start..self.at].to_vec();
        loop {
            match self.byte() {
                Some(b'"') => break,
                Some(b'\\') => bytes.push(self.escape()?),
                Some(b'\n') | None => return Err(self.error_at(start - 1, "the string has no closing quote")),
                Some(byte) => bytes.push(byte),
            }
            self.at += 1;
        }
        self.at += 1;
        Ok(Cow::Owned(bytes))
    }

    /// Parses an escape and returns its byte; leaves the cursor at the last byte of the escape.
    fn escape(&mut self) -> Result<u8> {
        let at = self.at;
        self.at += 1;
        match self.byte() {
            Some(byte @ (b'"' | b'\\')) => Ok(byte),
            Some(b'n') => Ok(b'\n'),
            Some(b't') => Ok(b'\t'),
            _ => {
                let byte = self.text.get(self.at..self.at + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
                self.at += 1;
                byte.ok_or_else(|| self.error_at(at, "this escape is unknown; write \\n, \\t, \\\\, \\\" or \\4f"))
            }
        }
    }

    /// Skips to the `>` that closes an already skipped `<`. Nested angle brackets are matched, and strings are skipped.
    pub fn skip_to_closing_angle(&mut self) -> Result<()> {
        let start = self.at;
        let mut open = 1;
        while let Some(byte) = self.byte() {
            match byte {
                b'"' => {
                    self.string("a string")?;
                    continue;
                }
                b'<' => open += 1,
                // Excludes arrows and `>=`, which occurs in integer sets.
                b'>' if self.text.as_bytes()[self.at - 1] != b'-'
                    && self.text.as_bytes().get(self.at + 1) != Some(&b'=') =>
                {
                    open -= 1;
                }
                _ => {}
            }
            if open == 0 {
                return Ok(());
            }
            self.at += 1;
        }
        Err(self.error_at(start, "`<` has no matching `>`"))
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$')
}
