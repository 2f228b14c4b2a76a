//! Attributes in text: readers and writers for the operation families, independent of instruction syntax.

use std::cell::Cell;
use std::collections::HashMap;

use super::diagnostic::{Failure, Parse, shown};
pub(crate) use super::lexer::TokenKind;
use super::numbers::push_float;
use super::strings::push_quoted;
use super::suggest::did_you_mean;
use super::tokens::Tokens;
use crate::ops::Opcode;
use crate::{CompId, Computation, ElementType, Error, Literal, MAIN_THREAD, Module, Result, Shape, Sharding};

/// Type that can be written after `name=` in an instruction.
pub trait AttributeValue: Sized {
    /// Description of the expected value, for error messages: `a list of integers such as {0,2}`.
    const WHAT: &'static str;

    /// Reads the value at the cursor.
    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self>;

    /// Writes the value.
    fn write(&self, w: &mut AttributeWriter<'_>);
}

/// Attributes that every instruction may have; the parser reads them itself.
pub(super) const COMMON: &[&str] = &[
    "sharding",
    "frontend_attributes",
    "control-predecessors",
    "metadata",
    "backend_config",
    "statistics",
    "origin",
    "parameter_replication",
];

/// Inline computations that have been parsed, by the offset of their `{`: the computation, and the offset after its
/// `}`.
pub(super) type InlineComputations = HashMap<usize, (CompId, usize)>;

/// Computations that an attribute may refer to.
#[derive(Clone, Copy)]
pub(super) struct Callables<'a> {
    /// Module with the computations defined so far.
    pub module: &'a Module,
    /// Computations written inline in place of a name.
    pub inline: &'a InlineComputations,
}

/// Unparsed attribute: its name, the offset of the name, and the byte range of the value.
#[derive(Clone, Debug)]
pub(super) struct Written<'t> {
    pub name: &'t str,
    pub at: usize,
    pub value: std::ops::Range<usize>,
}

/// Content of the parentheses of operations without operands.
#[derive(Debug, Default)]
pub(super) enum Payload {
    /// Operands, or nothing.
    #[default]
    None,
    /// `parameter(N)`.
    Number(usize),
    /// `constant(...)`.
    Literal(Literal),
}

/// Attributes after an instruction's operands. Each is taken once; those that remain are errors.
pub struct AttributeReader<'a> {
    text: &'a str,
    callables: Callables<'a>,
    opcode: Opcode,
    written: Vec<Written<'a>>,
    asked: Vec<&'static str>,
    payload: Payload,
    /// Offset for errors without a position of their own.
    place: Cell<usize>,
}

impl<'a> AttributeReader<'a> {
    /// Creates a reader for the attributes of an instruction whose opcode is at offset `at`.
    pub(super) fn new(
        text: &'a str,
        callables: Callables<'a>,
        (opcode, at): (Opcode, usize),
        written: Vec<Written<'a>>,
        payload: Payload,
    ) -> AttributeReader<'a> {
        AttributeReader { text, callables, opcode, written, asked: Vec::new(), payload, place: Cell::new(at) }
    }

    /// Returns the attribute `name`, if it is present.
    pub fn optional<T: AttributeValue>(&mut self, name: &'static str) -> Result<Option<T>> {
        self.asked.push(name);
        let Some(i) = self.written.iter().position(|w| w.name == name) else { return Ok(None) };
        let value = self.written.swap_remove(i).value;
        self.place.set(value.start);
        let tokens = Tokens::over(self.text, value.start, value.end);
        let mut cursor = AttributeCursor { tokens, callables: self.callables, place: &self.place };
        let read = T::read(&mut cursor).and_then(|read| {
            cursor.run(|tokens| tokens.expect_end("the end of the attribute"))?;
            Ok(read)
        });
        read.map(Some).map_err(|e| {
            let said = e.message().strip_prefix("expected ").is_some_and(|m| m.starts_with(T::WHAT));
            let what = if said { String::new() } else { format!(" must be {}", T::WHAT) };
            e.context(format_args!("attribute {name}{what}"))
        })
    }

    /// Returns the attribute `name`; an error states that it is missing, and its expected form.
    pub fn required<T: AttributeValue>(&mut self, name: &'static str) -> Result<T> {
        if let Some(value) = self.optional(name)? {
            return Ok(value);
        }
        let mut message = format!("{} needs the attribute {name}, which is {}", self.opcode, T::WHAT);
        if let Some(similar) = self.written.iter().find(|w| !did_you_mean(w.name, [name]).is_empty()) {
            self.place.set(similar.at);
            message = format!("{message}; was {} meant?", similar.name);
        }
        Err(Error::invalid_argument(message))
    }

    /// Returns the number in `parameter(N)`.
    pub fn parameter_number(&mut self) -> Result<usize> {
        match self.payload {
            Payload::Number(number) => Ok(number),
            Payload::None | Payload::Literal(_) => Err(Error::internal(format!("{} has no number", self.opcode))),
        }
    }

    /// Returns the literal in `constant(...)`.
    pub fn literal(&mut self) -> Result<Literal> {
        match std::mem::take(&mut self.payload) {
            Payload::Literal(literal) => Ok(literal),
            Payload::None | Payload::Number(_) => Err(Error::internal(format!("{} has no literal", self.opcode))),
        }
    }

    /// Adds a position to an error: that of the attribute at fault, otherwise that of the opcode.
    pub(super) fn locate(&self, error: Error) -> Failure {
        Failure::new(self.place.get(), error)
    }

    /// Checks that every attribute was taken; returns the empty list for reuse.
    pub(super) fn finish(self) -> Parse<Vec<Written<'a>>> {
        let Some(left) = self.written.first() else { return Ok(self.written) };
        if self.asked.contains(&left.name) {
            return Err(Failure::invalid(left.at, format!("attribute {} is given twice", left.name)));
        }
        let own = if self.asked.is_empty() { "none of its own".to_string() } else { self.asked.join(", ") };
        let suggestion = did_you_mean(left.name, self.asked.iter().chain(COMMON).copied());
        let message = format!(
            "{} has no attribute {} (it takes {own}, and those of every instruction: {}){suggestion}",
            self.opcode,
            shown(left.name),
            COMMON.join(", ")
        );
        Err(Failure::invalid(left.at, message))
    }
}

/// Cursor over the tokens of one attribute's value.
pub struct AttributeCursor<'a> {
    tokens: Tokens<'a>,
    callables: Callables<'a>,
    place: &'a Cell<usize>,
}

impl<'a> AttributeCursor<'a> {
    /// Applies a grammar rule and records the position of a failure.
    fn run<T>(&mut self, rule: impl FnOnce(&mut Tokens<'a>) -> Parse<T>) -> Result<T> {
        rule(&mut self.tokens).map_err(|failure| {
            let (at, error) = failure.into_parts();
            self.place.set(at);
            error
        })
    }

    /// Returns the kind of the next token.
    pub(crate) fn kind(&self) -> TokenKind {
        self.tokens.kind()
    }

    /// Returns the error for a token that is not the expected one.
    pub(crate) fn unexpected(&mut self, expected: &str) -> Error {
        self.place.set(self.tokens.at());
        self.tokens.unexpected(expected).into_parts().1
    }

    /// Consumes the next token if it is of that kind.
    pub(crate) fn accept(&mut self, kind: TokenKind) -> bool {
        self.tokens.accept(kind)
    }

    /// Consumes the next token, which must be of that kind, and returns its text. `what` describes it in the error.
    pub(crate) fn expect(&mut self, kind: TokenKind, what: &str) -> Result<&'a str> {
        self.run(|tokens| {
            let token = tokens.expect(kind, what)?;
            Ok(tokens.text(token))
        })
    }

    /// Parses a signed integer.
    pub(crate) fn integer(&mut self) -> Result<i64> {
        self.run(|tokens| tokens.integer("an integer"))
    }

    /// Parses a non-negative integer.
    pub(crate) fn unsigned(&mut self) -> Result<usize> {
        self.run(|tokens| tokens.unsigned("an integer that is not negative"))
    }

    /// Parses a floating-point number.
    pub(crate) fn number(&mut self) -> Result<f64> {
        self.run(|tokens| tokens.number("a number"))
    }

    /// Parses a word that is one of `choices`.
    pub(crate) fn choice<T: Copy>(&mut self, choices: &[(&str, T)]) -> Result<T> {
        self.run(|tokens| tokens.choice(choices))
    }

    /// Parses a word that is one of `choices`, in upper or lower case.
    pub(crate) fn choice_in_any_case<T: Copy>(&mut self, choices: &[(&str, T)]) -> Result<T> {
        self.run(|tokens| tokens.choice_in_any_case(choices))
    }

    /// Parses `{item, item}`, possibly empty.
    pub(crate) fn braced<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect(TokenKind::LeftBrace, "`{`")?;
        let mut items = Vec::new();
        if self.accept(TokenKind::RightBrace) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.accept(TokenKind::Comma) {
                break;
            }
        }
        self.expect(TokenKind::RightBrace, "`,` or `}`")?;
        Ok(items)
    }

    /// Parses `open item, item close`, possibly empty; `what` describes the expected opening token.
    pub(crate) fn list<T>(
        &mut self,
        (open, what): (TokenKind, &str),
        close: TokenKind,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.expect(open, what)?;
        let mut items = Vec::new();
        while !self.accept(close) {
            if !items.is_empty() {
                self.expect(TokenKind::Comma, "`,` or the end of the list")?;
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Parses a quoted string and unescapes it.
    pub(crate) fn string(&mut self, what: &str) -> Result<String> {
        self.run(|tokens| tokens.string(what))
    }

    /// Parses a sharding such as `{devices=[2]0,1}`.
    pub(crate) fn sharding(&mut self) -> Result<Sharding> {
        self.run(Tokens::sharding)
    }

    /// Parses a list of indices such as `{1,2}`.
    pub(crate) fn indices(&mut self) -> Result<Vec<usize>> {
        self.run(|tokens| tokens.braced_indices("a list of indices such as {0,2}"))
    }

    /// Parses a shape; arrays without a layout are row-major.
    pub(crate) fn shape(&mut self) -> Result<Shape> {
        self.run(Tokens::shape)
    }

    /// Parses a literal whose arrays carry their shapes; omitted data becomes zeros.
    pub(crate) fn literal(&mut self) -> Result<Literal> {
        self.run(|tokens| tokens.literal_with_shapes(&mut 0))
    }

    /// Parses the name of a computation defined earlier, or a computation in braces.
    fn computation(&mut self) -> Result<CompId> {
        let callables = self.callables;
        self.run(|tokens| {
            if let Some(&(id, end)) = callables.inline.get(&tokens.at()) {
                tokens.seek(end);
                return Ok(id);
            }
            let at = tokens.at();
            let name = tokens.name("the name of a computation")?;
            callables.module.find(name).ok_or_else(|| Failure::invalid(at, undefined(callables.module, name)))
        })
    }
}

fn undefined(module: &Module, name: &str) -> String {
    let suggestion = did_you_mean(name, module.iter().map(|(_, c)| c.name()));
    let name = shown(name);
    format!("unknown computation {name} (it must be defined before it is called){suggestion}")
}

/// Writer that appends attributes to text, each as `, name=value`.
pub struct AttributeWriter<'a> {
    pub(super) out: &'a mut String,
    pub(super) module: &'a Module,
    /// Whether every name has the prefix `%`.
    pub(super) percent: bool,
}

/// Returns `%`, or nothing if names are written without it and `name` is not a reserved word.
pub(super) fn sigil(percent: bool, name: &str) -> &'static str {
    let reserved = matches!(name, "inf" | "nan" | "ROOT" | "ENTRY" | "HloModule");
    if percent || reserved { "%" } else { "" }
}

impl AttributeWriter<'_> {
    /// Writes `, name=value`.
    pub fn attribute<T: AttributeValue>(&mut self, name: &'static str, value: &T) {
        self.out.push_str(", ");
        self.out.push_str(name);
        self.out.push('=');
        value.write(self);
    }

    /// Returns the thread that a computation runs on; the main one for a computation that was removed.
    pub(crate) fn execution_thread(&self, computation: CompId) -> &str {
        self.module.get(computation).map_or(MAIN_THREAD, Computation::execution_thread)
    }

    /// Writes a part of a value; for implementations of [`AttributeValue`].
    pub fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Writes text in quotes, escaped.
    pub(crate) fn quoted(&mut self, text: &str) {
        push_quoted(self.out, text);
    }

    /// Writes a value whose `Display` form is its HLO text.
    pub(crate) fn display(&mut self, value: impl std::fmt::Display) {
        use std::fmt::Write as _;
        // Writing to a `String` cannot fail.
        let _ = write!(self.out, "{value}");
    }

    /// Writes a float with enough digits to identify it.
    pub(crate) fn float(&mut self, value: f32) {
        push_float(self.out, ElementType::F32, u64::from(value.to_bits()));
    }

    /// Writes items, separated by `separator`.
    pub(crate) fn join<T>(&mut self, items: &[T], separator: &str, mut item: impl FnMut(&mut Self, &T)) {
        for (i, value) in items.iter().enumerate() {
            if i > 0 {
                self.push(separator);
            }
            item(self, value);
        }
    }

    /// Writes `{0,2}`.
    pub(crate) fn indices(&mut self, indices: &[usize]) {
        self.push("{");
        self.join(indices, ",", |w, i| w.display(i));
        self.push("}");
    }
}

/// Attribute value that is a single word.
pub(crate) trait AttributeWord: AttributeValue {
    /// Returns the value that a word names.
    fn from_word(word: &str) -> Option<Self>;

    /// Returns the word for the value.
    fn word(&self) -> &'static str;
}

/// Implements [`AttributeValue`] and [`AttributeWord`] for an enum, with a word for each value. With `any case`, words
/// are read in upper and lower case, as XLA does.
macro_rules! attribute_words {
    ($ty:ty, $what:literal: $($words:tt)+) => {
        $crate::text::attribute_words! { @read choice; $ty, $what: $($words)+ }
    };
    (any case $ty:ty, $what:literal: $($words:tt)+) => {
        $crate::text::attribute_words! { @read choice_in_any_case; $ty, $what: $($words)+ }
    };
    (@read $choice:ident; $ty:ty, $what:literal: $($word:literal => $value:expr),+ $(,)?) => {
        impl $crate::text::AttributeValue for $ty {
            const WHAT: &'static str = $what;

            fn read(cursor: &mut $crate::text::AttributeCursor<'_>) -> $crate::Result<Self> {
                cursor.$choice(&[$(($word, $value)),+])
            }

            fn write(&self, w: &mut $crate::text::AttributeWriter<'_>) {
                w.push($crate::text::AttributeWord::word(self));
            }
        }

        impl $crate::text::AttributeWord for $ty {
            fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some($value),)+ _ => None }
            }

            fn word(&self) -> &'static str {
                match *self { $(value if value == $value => $word,)+ _ => "" }
            }
        }
    };
}
pub(crate) use attribute_words;

attribute_words! { bool, "true or false": "true" => true, "false" => false }

impl AttributeValue for i64 {
    const WHAT: &'static str = "an integer";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        cursor.integer()
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        w.display(self);
    }
}

impl AttributeValue for usize {
    const WHAT: &'static str = "an integer that is not negative";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        cursor.unsigned()
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        w.display(self);
    }
}

impl AttributeValue for u32 {
    const WHAT: &'static str = "a small integer that is not negative";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        let value = cursor.unsigned()?;
        u32::try_from(value).map_err(|_| Error::invalid_argument(format!("{value} is too large")))
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        w.display(self);
    }
}

impl AttributeValue for String {
    const WHAT: &'static str = "a quoted string";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        cursor.string(Self::WHAT)
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        w.quoted(self);
    }
}

impl AttributeValue for Shape {
    const WHAT: &'static str = "a shape such as f32[2,3]";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        cursor.shape()
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        w.display(self);
    }
}

impl AttributeValue for Vec<i64> {
    const WHAT: &'static str = "a list of integers such as {0,-1}";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        cursor.braced(AttributeCursor::integer)
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        w.push("{");
        w.join(self, ",", |w, i| w.display(i));
        w.push("}");
    }
}

impl AttributeValue for Vec<usize> {
    const WHAT: &'static str = "a list of integers such as {0,2}";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        cursor.indices()
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        w.indices(self);
    }
}

impl AttributeValue for CompId {
    const WHAT: &'static str = "the name of a computation";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        cursor.computation()
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        // The verifier reports a call of a removed computation; printing it must not fail.
        let name = w.module.get(*self).map_or_else(|| self.to_string(), |c| c.name().to_string());
        w.push(sigil(w.percent, &name));
        w.push(&name);
    }
}

impl AttributeValue for Vec<CompId> {
    const WHAT: &'static str = "a list of computations such as {%a, %b}";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        cursor.braced(AttributeCursor::computation)
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        w.push("{");
        w.join(self, ", ", |w, id| id.write(w));
        w.push("}");
    }
}
