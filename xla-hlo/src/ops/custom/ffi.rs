//! Typed attributes of custom calls: MLIR's text of a dictionary, `{dim = 4 : i64, uplo = 76 : ui8, name = "x"}`.

use std::collections::BTreeMap;

use crate::{ElementKind, ElementType, Error, Result, Scalar};

/// Maximum nesting of values.
const MAX_DEPTH: usize = 64;

/// A typed value.
#[derive(Clone, Debug, PartialEq)]
pub enum FfiValue {
    /// A name without a value.
    Unit,
    /// `true` or `false`.
    Boolean(bool),
    /// `4 : i64` or `1.5 : f32`; without a type, integers are `s64` and others `f64`.
    Number(ElementType, Scalar),
    /// `array<i32: 1, 2>`.
    Numbers(ElementType, Vec<Scalar>),
    /// `"text"`.
    Text(String),
    /// `[1 : i64, "text"]`.
    List(Vec<FfiValue>),
    /// `{name = value}`.
    Dictionary(FfiAttributes),
}

/// Typed values by name.
///
/// ```
/// use xla_hlo::ops::FfiAttributes;
///
/// # fn main() -> xla_hlo::Result<()> {
/// let attributes = FfiAttributes::parse(r#"{dim = 4 : i64, fast, name = "x"}"#)?;
/// assert_eq!(attributes.integer("dim")?, 4);
/// assert_eq!(attributes.text("name")?, "x");
/// assert!(attributes.get("fast").is_some());
/// assert!(attributes.integer("name").is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FfiAttributes(BTreeMap<String, FfiValue>);

impl FfiAttributes {
    /// Reads a dictionary; an empty text is an empty one. The error says at which byte of the text what was expected.
    pub fn parse(text: &str) -> Result<FfiAttributes> {
        let mut reader = Reader { text, at: 0, depth: 0 };
        if text.trim().is_empty() {
            return Ok(FfiAttributes::default());
        }
        let attributes = reader.dictionary()?;
        reader.skip_space();
        if reader.at == text.len() { Ok(attributes) } else { Err(reader.expected("the end of the text")) }
    }

    /// The value of that name.
    pub fn get(&self, name: &str) -> Option<&FfiValue> {
        self.0.get(name)
    }

    /// Names and values, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &FfiValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// An integer of any type that fits.
    pub fn integer(&self, name: &str) -> Result<i64> {
        match self.demand(name)? {
            FfiValue::Number(_, number) => number.as_i128().and_then(|n| i64::try_from(n).ok()),
            _ => None,
        }
        .ok_or_else(|| self.wrong(name, "an integer"))
    }

    /// A floating-point number.
    pub fn float(&self, name: &str) -> Result<f64> {
        match self.demand(name)? {
            FfiValue::Number(_, Scalar::Float(x)) => Ok(*x),
            _ => Err(self.wrong(name, "a floating-point number")),
        }
    }

    /// A truth value.
    pub fn boolean(&self, name: &str) -> Result<bool> {
        match self.demand(name)? {
            FfiValue::Boolean(value) => Ok(*value),
            _ => Err(self.wrong(name, "true or false")),
        }
    }

    /// A text.
    pub fn text(&self, name: &str) -> Result<&str> {
        match self.demand(name)? {
            FfiValue::Text(text) => Ok(text),
            _ => Err(self.wrong(name, "a text")),
        }
    }

    fn demand(&self, name: &str) -> Result<&FfiValue> {
        self.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
            Error::invalid_argument(format!("attribute {name} is missing; there are: {}", known.join(", ")))
        })
    }

    fn wrong(&self, name: &str, expected: &str) -> Error {
        Error::invalid_argument(format!("attribute {name} must be {expected}, it is {:?}", self.0.get(name)))
    }
}

/// Reads the text from `at` on.
struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn expected(&self, what: &str) -> Error {
        let found: String = self.rest().chars().take(20).collect();
        Error::invalid_argument(format!("expected {what} at byte {} of typed attributes, found {found:?}", self.at))
    }

    fn accept(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.accept(token) { Ok(()) } else { Err(self.expected(&format!("`{token}`"))) }
    }

    /// The characters from here on that belong to a name or a number.
    fn word(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        self.skip_space();
        let rest = self.rest();
        let word = &rest[..rest.find(|c| !belongs(c)).unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    /// Items up to `end`, with commas between them.
    fn list(&mut self, end: &str, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        if self.accept(end) {
            return Ok(());
        }
        if self.depth == MAX_DEPTH {
            return Err(Error::resource_exhausted(format!("typed attributes nest deeper than {MAX_DEPTH}")));
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

    fn dictionary(&mut self) -> Result<FfiAttributes> {
        let mut attributes = BTreeMap::new();
        self.expect("{")?;
        self.list("}", |r| {
            let name = r.name()?;
            let value = if r.accept("=") { r.value()? } else { FfiValue::Unit };
            match attributes.insert(name.clone(), value) {
                None => Ok(()),
                Some(_) => Err(Error::invalid_argument(format!("attribute {name} is given twice"))),
            }
        })?;
        Ok(FfiAttributes(attributes))
    }

    fn name(&mut self) -> Result<String> {
        self.skip_space();
        if self.rest().starts_with('"') {
            return self.string();
        }
        match self.word(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '$' | '-')) {
            "" => Err(self.expected("a name")),
            name => Ok(name.to_string()),
        }
    }

    fn value(&mut self) -> Result<FfiValue> {
        self.skip_space();
        match self.rest().chars().next() {
            Some('"') => self.string().map(FfiValue::Text),
            Some('{') => self.dictionary().map(FfiValue::Dictionary),
            Some('[') => {
                self.at += 1;
                let mut items = Vec::new();
                self.list("]", |r| {
                    items.push(r.value()?);
                    Ok(())
                })?;
                Ok(FfiValue::List(items))
            }
            Some(c) if c.is_alphabetic() => self.keyword(),
            _ => {
                let number = self.number()?;
                let ty = if self.accept(":") { Some(self.element_type()?) } else { None };
                let ty = ty.unwrap_or_else(|| number_type(number));
                self.typed(number, ty).map(|value| FfiValue::Number(ty, value))
            }
        }
    }

    fn keyword(&mut self) -> Result<FfiValue> {
        let start = self.at;
        match self.word(char::is_alphanumeric) {
            "true" => Ok(FfiValue::Boolean(true)),
            "false" => Ok(FfiValue::Boolean(false)),
            "unit" => Ok(FfiValue::Unit),
            "array" => {
                self.expect("<")?;
                let ty = self.element_type()?;
                let mut numbers = Vec::new();
                if self.accept(":") {
                    self.list(">", |r| {
                        let number = r.element()?;
                        numbers.push(r.typed(number, ty)?);
                        Ok(())
                    })?;
                } else {
                    self.expect(">")?;
                }
                Ok(FfiValue::Numbers(ty, numbers))
            }
            _ => {
                self.at = start;
                Err(self.expected("a number, a string, true, false, unit, array<..>, [..] or {..}"))
            }
        }
    }

    /// An element of an array: a number or a truth value.
    fn element(&mut self) -> Result<&'t str> {
        if self.accept("true") {
            return Ok("1");
        }
        if self.accept("false") { Ok("0") } else { self.number() }
    }

    /// The text of a number.
    fn number(&mut self) -> Result<&'t str> {
        match self.word(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')) {
            "" => Err(self.expected("a value")),
            number => Ok(number),
        }
    }

    /// A number as a value of that type. Patterns such as `0x7FC00000` are bits of floats.
    fn typed(&self, number: &str, ty: ElementType) -> Result<Scalar> {
        let hex = number.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let integer = || hex.map(i128::from).or_else(|| number.parse::<i128>().ok());
        let value = match ty.kind() {
            ElementKind::Pred => integer().map(|n| Scalar::Pred(n != 0)),
            ElementKind::Signed => integer().and_then(|n| i64::try_from(n).ok()).map(Scalar::Signed),
            ElementKind::Unsigned => integer().and_then(|n| u64::try_from(n).ok()).map(Scalar::Unsigned),
            ElementKind::Float => match hex {
                Some(bits) => Some(Scalar::from_bits(ty, bits)),
                None => number.parse().ok().map(Scalar::Float),
            },
            ElementKind::Complex => None,
        };
        // A float is rounded; an integer must fit.
        let fits = |v: &Scalar| ty.is_float() || v.rounded(ty) == *v;
        value.filter(fits).map(|v| v.rounded(ty)).ok_or_else(|| {
            Error::invalid_argument(format!(
                "`{number}` before byte {} of typed attributes is not of type {ty}",
                self.at
            ))
        })
    }

    /// A type of numbers: `i64` (signed), `si64`, `ui64`, `index`, `f32`, `bf16`.
    fn element_type(&mut self) -> Result<ElementType> {
        let start = self.at;
        let word = self.word(char::is_alphanumeric).to_lowercase();
        let found = match word.as_str() {
            "i1" => Some(ElementType::Pred),
            "index" => Some(ElementType::S64),
            "bf16" => Some(ElementType::BF16),
            _ => {
                let name = match (word.strip_prefix("ui"), word.strip_prefix("si"), word.strip_prefix('i')) {
                    (Some(bits), _, _) => format!("u{bits}"),
                    (_, Some(bits), _) | (_, _, Some(bits)) => format!("s{bits}"),
                    (None, None, None) => word.clone(),
                };
                ElementType::from_name(&name)
            }
        };
        found.ok_or_else(|| {
            self.at = start;
            self.expected("a type such as i64, ui8 or f32")
        })
    }

    /// A quoted string with MLIR's escapes: `\"`, `\\`, `\n`, `\t` and two hexadecimal digits.
    fn string(&mut self) -> Result<String> {
        let start = self.at;
        let mut bytes = Vec::new();
        let mut rest = self.rest().bytes().enumerate().skip(1);
        let unterminated =
            || Error::invalid_argument(format!("the string at byte {start} of typed attributes is broken"));
        loop {
            match rest.next().ok_or_else(unterminated)? {
                (i, b'"') => {
                    self.at = start + i + 1;
                    return String::from_utf8(bytes).map_err(|e| unterminated().with_source(e));
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

fn number_type(number: &str) -> ElementType {
    if number.parse::<i64>().is_ok() { ElementType::S64 } else { ElementType::F64 }
}
