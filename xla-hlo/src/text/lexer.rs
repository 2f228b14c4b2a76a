//! Lexer of HLO text: byte spans, one pass, no allocation, no recursion.

/// Kind of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TokenKind {
    /// End of the text, or of the range that is being read.
    End,
    /// Bytes that are not a token; [`Lexer::complaint`] returns the reason.
    Bad,
    /// Word: keyword, opcode, element type, or a name without `%`.
    Word,
    /// Name after `%`, or a word directly followed by `:`; the span covers only the name.
    Name,
    /// Word directly followed by `=`; the span covers only the word.
    AttributeName,
    /// `12`, `-3`.
    Integer,
    /// `1.`, `.5`, `1e-3`, `inf`, `-nan`, `nan(0x1234)`.
    Decimal,
    /// Quoted text with its quotes and escapes.
    String,
    /// `b01f_01io->b01f`.
    DimLabels,
    /// `2x3x4`.
    Sizes,
    /// `0_1`, `0_1x-2_2_1`.
    Padding,
    /// `=`
    Equals,
    /// `,`
    Comma,
    /// `:`
    Colon,
    /// `*`
    Star,
    /// `#`
    Hash,
    /// `+`
    Plus,
    /// `~`
    Tilde,
    /// `?`
    Question,
    /// `[`
    LeftBracket,
    /// `]`
    RightBracket,
    /// `{`
    LeftBrace,
    /// `}`
    RightBrace,
    /// `(`
    LeftParen,
    /// `)`
    RightParen,
    /// `->`
    Arrow,
    /// `<=`
    LessEqual,
    /// `...`
    Dots,
}

/// Token with its byte range in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub kind: TokenKind,
    pub start: usize,
    pub end: usize,
}

/// Lexer of HLO text. Clone it to look ahead.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    pos: usize,
}

const fn word_table() -> [bool; 256] {
    let mut table = [false; 256];
    let mut b = 0;
    while b < 256 {
        table[b] = (b as u8).is_ascii_alphanumeric() || matches!(b as u8, b'_' | b'.' | b'-');
        b += 1;
    }
    table
}

/// Bytes that may continue a word.
static IN_WORD: [bool; 256] = word_table();

impl<'t> Lexer<'t> {
    /// Creates a lexer over `text[start..end]` whose spans are relative to the start of `text`.
    pub fn over(text: &'t str, start: usize, end: usize) -> Lexer<'t> {
        Lexer { text, bytes: &text.as_bytes()[..end], pos: start }
    }

    /// Returns the whole text, which spans refer to.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// Returns the bytes up to the end of the lexer's range.
    pub fn bytes(&self) -> &'t [u8] {
        self.bytes
    }

    /// Continues at another offset, which must be the start or the end of a token.
    pub fn seek(&mut self, pos: usize) {
        self.pos = pos;
    }

    /// Returns the next token; always [`TokenKind::End`] at the end.
    pub fn next_token(&mut self) -> Token {
        if let Some(bad) = self.skip_blanks() {
            return bad;
        }
        let start = self.pos;
        let Some(&byte) = self.bytes.get(start) else {
            return Token { kind: TokenKind::End, start, end: start };
        };
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(start),
            b'0'..=b'9' | b'-' | b'.' => self.number(start),
            b'%' => self.percent(start),
            b'"' | b'\'' => self.string(start, byte),
            b'?' => match dim_labels_end(self.bytes, start) {
                Some(end) => self.token(TokenKind::DimLabels, start, end),
                None => self.token(TokenKind::Question, start, start + 1),
            },
            b'<' if self.peek(start + 1) == b'=' => self.token(TokenKind::LessEqual, start, start + 2),
            _ => match punctuation(byte) {
                Some(kind) => self.token(kind, start, start + 1),
                None => self.bad(start),
            },
        }
    }

    /// Returns the reason why the bytes of a [`TokenKind::Bad`] token are not a token.
    pub fn complaint(&self, bad: Token) -> String {
        let rest = &self.text[bad.start..];
        match rest.chars().next() {
            Some('/') if rest.starts_with("/*") => "this comment is not closed".to_string(),
            Some('"' | '\'') => "this string is not closed".to_string(),
            Some('%') => "a name must follow `%`".to_string(),
            Some(c) => format!("the character `{}` has no meaning here", c.escape_debug()),
            None => "the text ends too early".to_string(),
        }
    }

    fn peek(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    fn token(&mut self, kind: TokenKind, start: usize, end: usize) -> Token {
        self.pos = end;
        Token { kind, start, end }
    }

    /// Returns a bad token that extends to the end of the text, so that parsing stops.
    fn bad(&mut self, start: usize) -> Token {
        self.token(TokenKind::Bad, start, self.bytes.len())
    }

    /// Skips white space and comments; returns a bad token for an unterminated comment.
    fn skip_blanks(&mut self) -> Option<Token> {
        loop {
            match self.peek(self.pos) {
                b' ' | b'\t' | b'\r' | b'\n' => self.pos += 1,
                b'/' if self.peek(self.pos + 1) == b'/' => {
                    self.pos = find(self.bytes, self.pos, b"\n").unwrap_or(self.bytes.len());
                }
                b'/' if self.peek(self.pos + 1) == b'*' => match find(self.bytes, self.pos + 2, b"*/") {
                    Some(end) => self.pos = end + 2,
                    None => return Some(self.bad(self.pos)),
                },
                _ => return None,
            }
        }
    }

    fn word_end(&self, from: usize) -> usize {
        let rest = &self.bytes[from..];
        from + rest.iter().position(|&b| !IN_WORD[usize::from(b)]).unwrap_or(rest.len())
    }

    fn word(&mut self, start: usize) -> Token {
        if let b'b' | b'f' = self.bytes[start]
            && let Some(end) = dim_labels_end(self.bytes, start)
        {
            return self.token(TokenKind::DimLabels, start, end);
        }
        let end = self.word_end(start);
        let kind = match self.peek(end) {
            b'=' => TokenKind::AttributeName,
            b':' => TokenKind::Name,
            _ => return self.plain_word(start, end),
        };
        self.pos = end + 1;
        Token { kind, start, end }
    }

    fn plain_word(&mut self, start: usize, end: usize) -> Token {
        match &self.bytes[start..end] {
            b"inf" => self.token(TokenKind::Decimal, start, end),
            b"nan" => {
                let end = self.payload_end(end);
                self.token(TokenKind::Decimal, start, end)
            }
            _ => self.token(TokenKind::Word, start, end),
        }
    }

    /// Returns the end of `(0x1234)` if the text at `from` has this form, otherwise `from`.
    fn payload_end(&self, from: usize) -> usize {
        let Some(digits) = self.bytes[from..].strip_prefix(b"(0x") else { return from };
        let count = digits.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        if count > 0 && digits.get(count) == Some(&b')') { from + 3 + count + 1 } else { from }
    }

    fn percent(&mut self, start: usize) -> Token {
        let first = self.peek(start + 1);
        if !(first.is_ascii_alphabetic() || first == b'_') {
            return self.bad(start);
        }
        let end = self.word_end(start + 1);
        self.token(TokenKind::Name, start + 1, end)
    }

    fn string(&mut self, start: usize, quote: u8) -> Token {
        match string_end(self.bytes, start, quote) {
            Some(end) => self.token(TokenKind::String, start, end),
            None => self.bad(start),
        }
    }

    fn number(&mut self, start: usize) -> Token {
        let mut at = start + usize::from(self.bytes[start] == b'-');
        let digits = self.digits_end(at) - at;
        at += digits;
        match self.peek(at) {
            b'.' if self.peek(at + 1) != b'.' && (digits > 0 || self.peek(at + 1).is_ascii_digit()) => {
                let end = self.exponent_end(self.digits_end(at + 1));
                self.token(TokenKind::Decimal, start, end)
            }
            b'e' | b'E' if digits > 0 && self.exponent_end(at) > at => {
                let end = self.exponent_end(at);
                self.token(TokenKind::Decimal, start, end)
            }
            b'b' | b'f' | b'?' | b'_' | b'x' if digits > 0 => self.pattern(start, at),
            _ if digits > 0 => self.token(TokenKind::Integer, start, at),
            _ => self.no_digits(start),
        }
    }

    /// Lexes a token that begins with `-` or `.` without a digit after it.
    fn no_digits(&mut self, start: usize) -> Token {
        let rest = &self.bytes[start..];
        if rest.starts_with(b"...") {
            return self.token(TokenKind::Dots, start, start + 3);
        }
        if rest.starts_with(b"->") {
            return self.token(TokenKind::Arrow, start, start + 2);
        }
        let end = if rest.starts_with(b"-") { self.word_end(start + 1) } else { start };
        match &self.bytes[start..end] {
            b"-inf" => self.token(TokenKind::Decimal, start, end),
            b"-nan" => {
                let end = self.payload_end(end);
                self.token(TokenKind::Decimal, start, end)
            }
            _ => self.bad(start),
        }
    }

    /// Lexes dimension labels, sizes or a padding that starts with the integer `start..at`; otherwise that integer.
    fn pattern(&mut self, start: usize, at: usize) -> Token {
        if let Some(end) = dim_labels_end(self.bytes, start) {
            return self.token(TokenKind::DimLabels, start, end);
        }
        if let Some(end) = self.sizes_end(start, at) {
            return self.token(TokenKind::Sizes, start, end);
        }
        if let Some(end) = self.padding_end(start) {
            return self.token(TokenKind::Padding, start, end);
        }
        self.token(TokenKind::Integer, start, at)
    }

    fn sizes_end(&self, start: usize, at: usize) -> Option<usize> {
        let mut end = at;
        while self.bytes[start] != b'-' && self.peek(end) == b'x' && self.peek(end + 1).is_ascii_digit() {
            end = self.digits_end(end + 1);
        }
        (end > at).then_some(end)
    }

    fn padding_end(&self, start: usize) -> Option<usize> {
        let mut end = self.pad_group_end(start)?;
        while self.peek(end) == b'x' {
            match self.pad_group_end(end + 1) {
                Some(next) => end = next,
                None => break,
            }
        }
        Some(end)
    }

    /// Returns the end of `low_high` or `low_high_interior` at `from`.
    fn pad_group_end(&self, from: usize) -> Option<usize> {
        let low = self.signed_end(from)?;
        let high = self.signed_end((self.peek(low) == b'_').then_some(low + 1)?)?;
        let interior = if self.peek(high) == b'_' { self.digits_end(high + 1) } else { high };
        Some(if interior > high + 1 { interior } else { high })
    }

    fn signed_end(&self, from: usize) -> Option<usize> {
        let digits = from + usize::from(self.peek(from) == b'-');
        let end = self.digits_end(digits);
        (end > digits).then_some(end)
    }

    fn digits_end(&self, from: usize) -> usize {
        let rest = self.bytes.get(from..).unwrap_or(&[]);
        from + rest.iter().take_while(|b| b.is_ascii_digit()).count()
    }

    /// Returns the end of an exponent such as `e-3` if the text at `from` has this form, otherwise `from`.
    fn exponent_end(&self, from: usize) -> usize {
        if !matches!(self.peek(from), b'e' | b'E') {
            return from;
        }
        let digits = from + 1 + usize::from(matches!(self.peek(from + 1), b'+' | b'-'));
        let end = self.digits_end(digits);
        if end > digits { end } else { from }
    }
}

fn punctuation(byte: u8) -> Option<TokenKind> {
    Some(match byte {
        b'=' => TokenKind::Equals,
        b',' => TokenKind::Comma,
        b':' => TokenKind::Colon,
        b'*' => TokenKind::Star,
        b'#' => TokenKind::Hash,
        b'+' => TokenKind::Plus,
        b'~' => TokenKind::Tilde,
        b'[' => TokenKind::LeftBracket,
        b']' => TokenKind::RightBracket,
        b'{' => TokenKind::LeftBrace,
        b'}' => TokenKind::RightBrace,
        b'(' => TokenKind::LeftParen,
        b')' => TokenKind::RightParen,
        _ => return None,
    })
}

/// Returns the end of the quoted text that begins at `start`, or `None` if it is unterminated.
pub(super) fn string_end(bytes: &[u8], start: usize, quote: u8) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match *bytes.get(at)? {
            b'\\' => at += 2,
            b if b == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// Returns the end of the dimension labels that begin at `start`, or `None` if there are none.
fn dim_labels_end(bytes: &[u8], start: usize) -> Option<usize> {
    let run = |from: usize, letters: &[u8]| {
        let rest = bytes.get(from..)?;
        let count = rest.iter().take_while(|b| b.is_ascii_digit() || **b == b'?' || letters.contains(b)).count();
        (count >= 2).then_some(from + count)
    };
    let input = run(start, b"bf")?;
    let kernel = run((bytes.get(input) == Some(&b'_')).then_some(input + 1)?, b"io")?;
    run(bytes[kernel..].starts_with(b"->").then_some(kernel + 2)?, b"bf")
}

fn find(bytes: &[u8], from: usize, needle: &[u8]) -> Option<usize> {
    bytes.get(from..)?.windows(needle.len()).position(|w| w == needle).map(|i| from + i)
}
