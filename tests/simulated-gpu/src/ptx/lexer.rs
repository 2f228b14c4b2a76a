//! Lexer of PTX text: words, numbers and punctuation.

use super::SyntaxError;

/// Token of the text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// Opcode, directive with its dot, or name.
    Word(&'a str),
    Integer(u64),
    Single(u32),
    Double(u64),
    /// Text between double quotes.
    Text(&'a str),
    Sign(char),
}

/// Returns all tokens of a text, each with its line.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token<'_>, u32)>, SyntaxError> {
    let mut lexer = Lexer { text, at: 0, line: 1 };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next()? {
        tokens.push((token, lexer.line));
    }
    Ok(tokens)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
}

/// Whether a character may be part of a name or an opcode.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | '.')
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn error(&self, message: impl Into<String>) -> SyntaxError {
        SyntaxError::new(self.line, message)
    }

    fn next(&mut self) -> Result<Option<Token<'a>>, SyntaxError> {
        self.skip_space()?;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(None) };
        let token = match first {
            '0'..='9' => self.number()?,
            '"' => {
                let end = rest[1..].find('"').ok_or_else(|| self.error("a text without end"))?;
                self.at += end + 2;
                Token::Text(&rest[1..=end])
            }
            _ if is_word(first) => Token::Word(self.word()),
            _ => {
                self.at += first.len_utf8();
                Token::Sign(first)
            }
        };
        Ok(Some(token))
    }

    /// Skips whitespace and comments.
    fn skip_space(&mut self) -> Result<(), SyntaxError> {
        loop {
            let rest = self.rest();
            let length = if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").ok_or_else(|| self.error("a comment without end"))? + 2
            } else {
                rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len())
            };
            if length == 0 {
                return Ok(());
            }
            self.line += rest[..length].bytes().filter(|&byte| byte == b'\n').count() as u32;
            self.at += length;
        }
    }

    /// Returns a word, which may contain `::`, as in `.shared::cta`.
    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let mut length = 0;
        loop {
            length += rest[length..].find(|c| !is_word(c)).unwrap_or(rest.len() - length);
            if !rest[length..].starts_with("::") {
                self.at += length;
                return &rest[..length];
            }
            length += 2;
        }
    }

    fn number(&mut self) -> Result<Token<'a>, SyntaxError> {
        let word = self.word();
        let bad = || SyntaxError::new(self.line, format!("`{word}` is not a number"));
        let bits = |digits: &str| u64::from_str_radix(digits, 16).map_err(|_| bad());
        let lower = |prefix: [&str; 2]| prefix.iter().find_map(|prefix| word.strip_prefix(prefix));
        if let Some(digits) = lower(["0f", "0F"]) {
            return Ok(Token::Single(u32::try_from(bits(digits)?).map_err(|_| bad())?));
        }
        if let Some(digits) = lower(["0d", "0D"]) {
            return Ok(Token::Double(bits(digits)?));
        }
        let plain = word.trim_end_matches('U');
        if let Some(digits) = lower(["0x", "0X"]) {
            return Ok(Token::Integer(bits(digits.trim_end_matches('U'))?));
        }
        if plain.contains('.') {
            return plain.parse::<f64>().map(|value| Token::Double(value.to_bits())).map_err(|_| bad());
        }
        let radix = if plain.len() > 1 && plain.starts_with('0') { 8 } else { 10 };
        u64::from_str_radix(plain, radix).map(Token::Integer).map_err(|_| bad())
    }
}
