//! Typed attributes of custom calls: an MLIR dictionary as text, `{dim = 4 : i64, uplo = 76 : ui8, name = "x"}`.

mod read;
mod write;

use std::collections::BTreeMap;

use crate::module::backend_config;
use crate::{ElementType, Error, Literal, Result, Scalar};

/// Value of a typed attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum FfiValue {
    /// No value: the attribute is a name only.
    Unit,
    /// A boolean, `true` or `false`.
    Boolean(bool),
    /// A number, `4 : i64` or `1.5 : f32`. Without a type, integers are `s64` and other numbers `f64`.
    Number(ElementType, Scalar),
    /// An array of numbers, `array<i32: 1, 2>`.
    Numbers(ElementType, Vec<Scalar>),
    /// A tensor, `dense<[1, 2]> : tensor<2xi32>`.
    Elements(Literal),
    /// A symbol, `@name` or `@outer::@inner`.
    Symbol(Vec<String>),
    /// A type, `f32`.
    Type(ElementType),
    /// A string of arbitrary bytes, `"text"`.
    Text(Vec<u8>),
    /// A list of values, `[1 : i64, "text"]`.
    List(Vec<FfiValue>),
    /// A dictionary, `{name = value}`.
    Dictionary(FfiAttributes),
}

/// Typed values by name. The text form is the same as MLIR's, with names in order.
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
    /// Parses a dictionary; empty text is an empty dictionary. The error contains the byte position and the expected
    /// token.
    pub fn parse(text: &str) -> Result<FfiAttributes> {
        read::attributes(text)
    }

    /// Returns the value of an attribute.
    pub fn get(&self, name: &str) -> Option<&FfiValue> {
        self.0.get(name)
    }

    /// Iterates over names and values, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &FfiValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns an integer attribute of any type whose value fits `i64`.
    pub fn integer(&self, name: &str) -> Result<i64> {
        match self.demand(name)? {
            FfiValue::Number(_, number) => number.as_i128().and_then(|n| i64::try_from(n).ok()),
            _ => None,
        }
        .ok_or_else(|| self.wrong(name, "an integer"))
    }

    /// Returns a float attribute.
    pub fn float(&self, name: &str) -> Result<f64> {
        match self.demand(name)? {
            FfiValue::Number(_, Scalar::Float(x)) => Ok(*x),
            _ => Err(self.wrong(name, "a floating-point number")),
        }
    }

    /// Returns a boolean attribute.
    pub fn boolean(&self, name: &str) -> Result<bool> {
        match self.demand(name)? {
            FfiValue::Boolean(value) => Ok(*value),
            _ => Err(self.wrong(name, "true or false")),
        }
    }

    /// Returns a string attribute as text. Fails if its bytes are not UTF-8.
    pub fn text(&self, name: &str) -> Result<&str> {
        match self.demand(name)? {
            FfiValue::Text(bytes) => backend_config::text(&format!("attribute {name}"), bytes),
            _ => Err(self.wrong(name, "a string")),
        }
    }

    fn demand(&self, name: &str) -> Result<&FfiValue> {
        self.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
            Error::invalid_argument(format!("attribute {name} is missing; the attributes are: {}", known.join(", ")))
        })
    }

    fn wrong(&self, name: &str, expected: &str) -> Error {
        Error::invalid_argument(format!("attribute {name} must be {expected}, it is {:?}", self.0.get(name)))
    }
}

impl FromIterator<(String, FfiValue)> for FfiAttributes {
    fn from_iter<T: IntoIterator<Item = (String, FfiValue)>>(entries: T) -> FfiAttributes {
        FfiAttributes(entries.into_iter().collect())
    }
}
