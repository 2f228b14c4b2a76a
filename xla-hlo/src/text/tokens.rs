//! Token cursor: the steps of every grammar rule, which look, accept, expect, and read lists, numbers and strings.

use super::diagnostic::{Failure, Parse, shown};
use super::lexer::{Lexer, Token, TokenKind};
use super::strings;
use crate::Error;

/// Maximum nesting of tuples, nested instructions and inline computations. Reading and dropping them recurses, and this
/// depth fits a thread's stack of 2 MiB even in debug builds.
pub(super) const MAX_DEPTH: usize = 200;

/// A place in a stream of tokens.
#[derive(Clone, Debug)]
pub(crate) struct Tokens<'t> {
    lexer: Lexer<'t>,
    token: Token,
    depth: usize,
}

impl<'t> Tokens<'t> {
    /// Stands at the first token of `text[start..end]`.
    pub fn over(text: &'t str, start: usize, end: usize) -> Tokens<'t> {
        let mut lexer = Lexer::over(text, start, end);
        let token = lexer.next_token();
        Tokens { lexer, token, depth: 0 }
    }

    /// The token that comes next.
    pub fn peek(&self) -> Token {
        self.token
    }

    /// Kind of the next token.
    pub fn kind(&self) -> TokenKind {
        self.token.kind
    }

    /// Begin of the next token.
    pub fn at(&self) -> usize {
        self.token.start
    }

    /// Number of bytes from the next token on.
    pub fn bytes_left(&self) -> usize {
        self.lexer.bytes().len() - self.token.start
    }

    /// The text of a token; of the next one with [`Tokens::next_text`].
    pub fn text(&self, token: Token) -> &'t str {
        &self.lexer.text()[token.start..token.end]
    }

    /// The text of the token that comes next.
    pub fn next_text(&self) -> &'t str {
        self.text(self.token)
    }

    /// The token after the next.
    pub fn peek_second(&self) -> Token {
        self.lexer.clone().next_token()
    }

    /// The token after the next, and the one after that.
    pub fn peek_two(&self) -> (Token, Token) {
        let mut ahead = self.lexer.clone();
        (ahead.next_token(), ahead.next_token())
    }

    /// Takes the next token.
    pub fn bump(&mut self) -> Token {
        std::mem::replace(&mut self.token, self.lexer.next_token())
    }

    /// Goes on at byte `pos`.
    pub fn seek(&mut self, pos: usize) {
        self.lexer.seek(pos);
        self.token = self.lexer.next_token();
    }

    /// Takes the next token if it is of that kind.
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

    /// Takes the next token if it is that word.
    pub fn accept_word(&mut self, word: &str) -> bool {
        let there = self.at_word(word);
        if there {
            self.bump();
        }
        there
    }

    /// Takes the next token, which must be of that kind; `what` says what it is for.
    pub fn expect(&mut self, kind: TokenKind, what: &str) -> Parse<Token> {
        if self.token.kind == kind { Ok(self.bump()) } else { Err(self.unexpected(what)) }
    }

    /// Demands that nothing is left.
    pub fn expect_end(&mut self, what: &str) -> Parse<()> {
        self.expect(TokenKind::End, what).map(drop)
    }

    /// The error for a token that fits no rule.
    pub fn unexpected(&self, expected: &str) -> Failure {
        if self.token.kind == TokenKind::Bad {
            return self.fail(self.lexer.complaint(self.token));
        }
        self.fail(format!("expected {expected}, found {}", self.describe(self.token)))
    }

    /// An error about the next token.
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

    /// Runs `f` one level deeper; an error when that is too deep.
    pub fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        self.enter()?;
        let result = f(self);
        self.leave();
        result
    }

    /// Goes one level deeper; an error when that is too deep.
    pub fn enter(&mut self) -> Parse<()> {
        if self.depth == MAX_DEPTH {
            let message =
                format!("this is nested more than {MAX_DEPTH} levels deep, which is the limit of this parser");
            return Err(Failure::new(self.token.start, Error::resource_exhausted(message)));
        }
        self.depth += 1;
        Ok(())
    }

    /// Comes back from [`Tokens::enter`].
    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    /// `open item, item close`, perhaps empty.
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

    /// `{item, item}`, perhaps empty.
    pub fn braced<T>(&mut self, what: &str, item: impl FnMut(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        self.list(TokenKind::LeftBrace, TokenKind::RightBrace, what, item)
    }

    /// `[1,2]`, perhaps empty.
    pub fn bracketed_integers(&mut self, what: &str) -> Parse<Vec<i64>> {
        self.list(TokenKind::LeftBracket, TokenKind::RightBracket, what, |t| t.integer("an integer"))
    }

    /// `{1,2}` of indices, perhaps empty.
    pub fn braced_indices(&mut self, what: &str) -> Parse<Vec<usize>> {
        self.braced(what, |t| t.unsigned("an index"))
    }

    /// An integer of 64 bits. Values from 2^63 to 2^64-1 wrap to negative ones.
    pub fn integer(&mut self, what: &str) -> Parse<i64> {
        if self.token.kind != TokenKind::Integer {
            return Err(self.unexpected(what));
        }
        let value = parse_integer(self.next_text())
            .ok_or_else(|| self.fail(format!("`{}` does not fit 64 bits", shown(self.next_text()))))?;
        self.bump();
        Ok(value)
    }

    /// An integer that is not negative.
    pub fn unsigned(&mut self, what: &str) -> Parse<usize> {
        let at = self.token.start;
        let value = self.integer(what)?;
        usize::try_from(value).map_err(|_| Failure::invalid(at, format!("expected {what}, found the negative {value}")))
    }

    /// An integer, decimal, infinity or NaN.
    pub fn number(&mut self, what: &str) -> Parse<f64> {
        let (TokenKind::Integer | TokenKind::Decimal) = self.token.kind else { return Err(self.unexpected(what)) };
        let value = self.next_text().parse().map_err(|_| self.unexpected(what))?;
        self.bump();
        Ok(value)
    }

    /// `true` or `false`.
    pub fn boolean(&mut self) -> Parse<bool> {
        if self.accept_word("true") {
            return Ok(true);
        }
        if self.accept_word("false") { Ok(false) } else { Err(self.unexpected("true or false")) }
    }

    /// A quoted string, unescaped.
    pub fn string(&mut self, what: &str) -> Parse<String> {
        let token = self.expect(TokenKind::String, what)?;
        strings::unescape(self.text(token)).map_err(|complaint| Failure::invalid(token.start, complaint))
    }

    /// A quoted string, or a JSON dictionary taken raw with its braces.
    pub fn string_or_dictionary(&mut self, what: &str) -> Parse<String> {
        if self.token.kind != TokenKind::LeftBrace { self.string(what) } else { self.dictionary() }
    }

    /// A quoted string of any bytes, or a JSON dictionary taken raw with its braces.
    pub fn bytes_or_dictionary(&mut self, what: &str) -> Parse<Vec<u8>> {
        if self.token.kind == TokenKind::LeftBrace {
            return self.dictionary().map(String::into_bytes);
        }
        let token = self.expect(TokenKind::String, what)?;
        strings::unescape_bytes(self.text(token)).map_err(|complaint| Failure::invalid(token.start, complaint))
    }

    /// A JSON dictionary taken raw with its braces, of which the first comes next.
    fn dictionary(&mut self) -> Parse<String> {
        let text = self.lexer.text();
        match strings::dictionary_end(self.lexer.bytes(), self.token.start) {
            Some(end) => {
                let raw = text[self.token.start..end].to_string();
                self.seek(end);
                Ok(raw)
            }
            None => Err(self.fail("this dictionary never ends")),
        }
    }

    /// A name, with or without `%`; returns its text.
    pub fn name(&mut self, what: &str) -> Parse<&'t str> {
        match self.token.kind {
            TokenKind::Name | TokenKind::Word => {
                let token = self.bump();
                Ok(self.text(token))
            }
            _ => Err(self.unexpected(what)),
        }
    }

    /// A word that is one of `choices`.
    pub fn choice<T: Copy>(&mut self, choices: &[(&str, T)]) -> Parse<T> {
        self.choice_by(choices, |word, name| word == name)
    }

    /// As [`Tokens::choice`], in upper or lower case.
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

    /// Takes a bracketed group as text: comments dropped, white space one blank, none inside brackets' edges.
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
            // Up to the next token stand white space and comments, and what names leave out of their spans.
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

/// `a, b or c`.
pub(super) fn either(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_string(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// An integer token's value, wrapped into 64 bits; `None` when it has more.
pub(super) fn parse_integer(text: &str) -> Option<i64> {
    text.parse::<i64>().ok().or_else(|| text.parse::<u64>().ok().map(|v| v as i64))
}
