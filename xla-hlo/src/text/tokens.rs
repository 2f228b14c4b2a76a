//! Token cursor: the steps of grammar rules, which peek, accept, expect, and parse lists, numbers and strings.

use super::diagnostic::{Failure, Parse, shown};
use super::lexer::{Lexer, Token, TokenKind};
use super::strings;
use crate::Error;

/// Maximum nesting of tuples, nested instructions and inline computations. Parsing and dropping them recurses, and this
/// depth fits a thread's stack of 2 MiB even in debug builds.
pub(super) const MAX_DEPTH: usize = 200;

/// Cursor in a stream of tokens.
#[derive(Clone, Debug)]
pub(crate) struct Tokens<'t> {
    lexer: Lexer<'t>,
    token: Token,
    depth: usize,
}

impl<'t> Tokens<'t> {
    /// Creates a cursor at the first token of `text[start..end]`.
    pub fn over(text: &'t str, start: usize, end: usize) -> Tokens<'t> {
        let mut lexer = Lexer::over(text, start, end);
        let token = lexer.next_token();
        Tokens { lexer, token, depth: 0 }
    }

    /// Returns the next token without consuming it.
    pub fn peek(&self) -> Token {
        self.token
    }

    /// Returns the kind of the next token.
    pub fn kind(&self) -> TokenKind {
        self.token.kind
    }

    /// Returns the offset of the next token.
    pub fn at(&self) -> usize {
        self.token.start
    }

    /// Returns the number of bytes from the next token on.
    pub fn bytes_left(&self) -> usize {
        self.lexer.bytes().len() - self.token.start
    }

    /// Returns the text of a token.
    pub fn text(&self, token: Token) -> &'t str {
        &self.lexer.text()[token.start..token.end]
    }

    /// Returns the text of the next token.
    pub fn next_text(&self) -> &'t str {
        self.text(self.token)
    }

    /// Returns the token after the next.
    pub fn peek_second(&self) -> Token {
        self.lexer.clone().next_token()
    }

    /// Returns the two tokens after the next.
    pub fn peek_two(&self) -> (Token, Token) {
        let mut ahead = self.lexer.clone();
        (ahead.next_token(), ahead.next_token())
    }

    /// Consumes the next token.
    pub fn bump(&mut self) -> Token {
        std::mem::replace(&mut self.token, self.lexer.next_token())
    }

    /// Continues at offset `pos`.
    pub fn seek(&mut self, pos: usize) {
        self.lexer.seek(pos);
        self.token = self.lexer.next_token();
    }

    /// Consumes the next token if it is of that kind.
    pub fn accept(&mut self, kind: TokenKind) -> bool {
        let there = self.token.kind == kind;
        if there {
            self.bump();
        }
        there
    }

    /// Whether the next token is that word.
    pub fn at_word(&self, word: &str) -> bool {
        self.token.kind == TokenKind::Word && self.next_text() == word
    }

    /// Consumes the next token if it is that word.
    pub fn accept_word(&mut self, word: &str) -> bool {
        let there = self.at_word(word);
        if there {
            self.bump();
        }
        there
    }

    /// Consumes the next token, which must be of that kind; `what` describes it in the error.
    pub fn expect(&mut self, kind: TokenKind, what: &str) -> Parse<Token> {
        if self.token.kind == kind { Ok(self.bump()) } else { Err(self.unexpected(what)) }
    }

    /// Checks that the whole text is consumed.
    pub fn expect_end(&mut self, what: &str) -> Parse<()> {
        self.expect(TokenKind::End, what).map(drop)
    }

    /// Returns the error for an unexpected token.
    pub fn unexpected(&self, expected: &str) -> Failure {
        if self.token.kind == TokenKind::Bad {
            return self.fail(self.lexer.complaint(self.token));
        }
        self.fail(format!("expected {expected}, found {}", self.describe(self.token)))
    }

    /// Returns an error about the next token.
    pub fn fail(&self, message: impl Into<String>) -> Failure {
        Failure::invalid(self.token.start, message)
    }

    fn describe(&self, token: Token) -> String {
        let text = shown(self.text(token));
        match token.kind {
            TokenKind::End => "the end of the text".to_string(),
            TokenKind::AttributeName => format!("`{text}=`"),
            _ => format!("`{text}`"),
        }
    }

    /// Runs `f` one nesting level deeper; fails beyond the maximum depth.
    pub fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        self.enter()?;
        let result = f(self);
        self.leave();
        result
    }

    /// Enters a nesting level; fails beyond the maximum depth.
    pub fn enter(&mut self) -> Parse<()> {
        if self.depth == MAX_DEPTH {
            let message =
                format!("this is nested more than {MAX_DEPTH} levels deep, which is the limit of this parser");
            return Err(Failure::new(self.token.start, Error::resource_exhausted(message)));
        }
        self.depth += 1;
        Ok(())
    }

    /// Leaves the nesting level of [`Tokens::enter`].
    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Parses `open item, item close`, possibly empty.
    pub fn list<T>(
        &mut self,
        open: TokenKind,
        close: TokenKind,
        what: &str,
        mut item: impl FnMut(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        self.expect(open, what)?;
        let mut items = Vec::new();
        if self.accept(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.accept(TokenKind::Comma) {
                break;
            }
        }
        self.expect(close, "`,` or the end of the list")?;
        Ok(items)
    }

    /// Parses `{item, item}`, possibly empty.
    pub fn braced<T>(&mut self, what: &str, item: impl FnMut(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        self.list(TokenKind::LeftBrace, TokenKind::RightBrace, what, item)
    }

    /// Parses integers such as `[1,2]`, possibly empty.
    pub fn bracketed_integers(&mut self, what: &str) -> Parse<Vec<i64>> {
        self.list(TokenKind::LeftBracket, TokenKind::RightBracket, what, |t| t.integer("an integer"))
    }

    /// Parses indices such as `{1,2}`, possibly empty.
    pub fn braced_indices(&mut self, what: &str) -> Parse<Vec<usize>> {
        self.braced(what, |t| t.unsigned("an index"))
    }

    /// Parses a 64-bit integer. Values from 2^63 to 2^64-1 wrap to negative ones.
    pub fn integer(&mut self, what: &str) -> Parse<i64> {
        if self.token.kind != TokenKind::Integer {
            return Err(self.unexpected(what));
        }
        let value = parse_integer(self.next_text())
            .ok_or_else(|| self.fail(format!("`{}` does not fit 64 bits", shown(self.next_text()))))?;
        self.bump();
        Ok(value)
    }

    /// Parses a non-negative integer.
    pub fn unsigned(&mut self, what: &str) -> Parse<usize> {
        let at = self.token.start;
        let value = self.integer(what)?;
        usize::try_from(value).map_err(|_| Failure::invalid(at, format!("expected {what}, found the negative {value}")))
    }

    /// Parses an integer, decimal, infinity or NaN.
    pub fn number(&mut self, what: &str) -> Parse<f64> {
        let (TokenKind::Integer | TokenKind::Decimal) = self.token.kind else { return Err(self.unexpected(what)) };
        let value = self.next_text().parse().map_err(|_| self.unexpected(what))?;
        self.bump();
        Ok(value)
    }

    /// Parses `true` or `false`.
    pub fn boolean(&mut self) -> Parse<bool> {
        if self.accept_word("true") {
            return Ok(true);
        }
        if self.accept_word("false") { Ok(false) } else { Err(self.unexpected("true or false")) }
    }

    /// Parses a quoted string and unescapes it.
    pub fn string(&mut self, what: &str) -> Parse<String> {
        let token = self.expect(TokenKind::String, what)?;
        strings::unescape(self.text(token)).map_err(|complaint| Failure::invalid(token.start, complaint))
    }

    /// Parses a quoted string, or a JSON dictionary that is returned unchanged with its braces.
    pub fn string_or_dictionary(&mut self, what: &str) -> Parse<String> {
        if self.token.kind != TokenKind::LeftBrace { self.string(what) } else { self.dictionary() }
    }

    /// Parses a quoted string of arbitrary bytes, or a JSON dictionary that is returned unchanged with its braces.
    pub fn bytes_or_dictionary(&mut self, what: &str) -> Parse<Vec<u8>> {
        if self.token.kind == TokenKind::LeftBrace {
            return self.dictionary().map(String::into_bytes);
        }
        let token = self.expect(TokenKind::String, what)?;
        strings::unescape_bytes(self.text(token)).map_err(|complaint| Failure::invalid(token.start, complaint))
    }

    /// Parses a JSON dictionary at its opening brace; returns it unchanged with its braces.
    fn dictionary(&mut self) -> Parse<String> {
        let text = self.lexer.text();
        match strings::dictionary_end(self.lexer.bytes(), self.token.start) {
            Some(end) => {
                let raw = text[self.token.start..end].to_string();
                self.seek(end);
                Ok(raw)
            }
            None => Err(self.fail("this dictionary is not closed")),
        }
    }

    /// Parses a name with or without `%`; returns its text.
    pub fn name(&mut self, what: &str) -> Parse<&'t str> {
        match self.token.kind {
            TokenKind::Name | TokenKind::Word => {
                let token = self.bump();
                Ok(self.text(token))
            }
            _ => Err(self.unexpected(what)),
        }
    }

    /// Parses a word that is one of `choices`.
    pub fn choice<T: Copy>(&mut self, choices: &[(&str, T)]) -> Parse<T> {
        self.choice_by(choices, |word, name| word == name)
    }

    /// Parses a word that is one of `choices`, in upper or lower case.
    pub fn choice_in_any_case<T: Copy>(&mut self, choices: &[(&str, T)]) -> Parse<T> {
        self.choice_by(choices, str::eq_ignore_ascii_case)
    }

    fn choice_by<T: Copy>(&mut self, choices: &[(&str, T)], same: fn(&str, &str) -> bool) -> Parse<T> {
        let is_word = self.kind() == TokenKind::Word;
        let found = choices.iter().find(|(name, _)| is_word && same(self.next_text(), name));
        match found {
            Some((_, value)) => {
                self.bump();
                Ok(*value)
            }
            None => {
                let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
                Err(self.unexpected(&either(&names)))
            }
        }
    }

    /// Parses a bracketed group and returns its text in normalized form: without comments, with each run of white space
    /// reduced to one space, and without white space inside the brackets' edges.
    pub fn group_text(&mut self, what: &str) -> Parse<String> {
        if self.token.kind != TokenKind::LeftBrace {
            return Err(self.unexpected(what));
        }
        let whole = self.lexer.text();
        let mut out = String::new();
        let mut depth = 0usize;
        let mut blank = false;
        loop {
            let token = self.token;
            match token.kind {
                TokenKind::LeftBrace | TokenKind::LeftParen | TokenKind::LeftBracket => depth += 1,
                TokenKind::RightBrace | TokenKind::RightParen | TokenKind::RightBracket => depth -= 1,
                TokenKind::End | TokenKind::Bad => return Err(self.unexpected("`}`")),
                _ => {}
            }
            if blank && !closes(token.kind) && !out.ends_with(['{', '(', '[']) {
                out.push(' ');
            }
            self.bump();
            // White space and comments may precede the next token, and the spans of names exclude `%`, `=` and `:`.
            let whole_token = whole[..token.start].ends_with('%');
            if whole_token && token.kind == TokenKind::Name {
                out.push('%');
            }
            out.push_str(&whole[token.start..token.end]);
            match token.kind {
                TokenKind::AttributeName => out.push('='),
                TokenKind::Name if !whole_token => out.push(':'),
                _ => {}
            }
            if depth == 0 {
                return Ok(out);
            }
            blank = whole[token.end..self.token.start].contains(char::is_whitespace);
        }
    }
}

fn closes(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::RightBrace | TokenKind::RightParen | TokenKind::RightBracket | TokenKind::Comma | TokenKind::Colon
    )
}

/// Formats a list as `a, b or c`.
pub(super) fn either(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_string(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// Returns an integer token's value, wrapped to 64 bits; `None` if it is larger.
pub(super) fn parse_integer(text: &str) -> Option<i64> {
    text.parse::<i64>().ok().or_else(|| text.parse::<u64>().ok().map(|v| v as i64))
}
