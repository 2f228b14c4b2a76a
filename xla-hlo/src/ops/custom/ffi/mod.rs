//! Typed attributes of custom calls: MLIR's text of a dictionary, `{dim = 4 : i64, uplo = 76 : ui8, name = "x"}`.

mod read;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;

use crate::module::backend_config;
use crate::{ElementType, Error, Literal, Result, Scalar};

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
    /// `dense<[1, 2]> : tensor<2xi32>`.
    Elements(Literal),
    /// `@name`, or `@outer::@inner`.
    Symbol(Vec<String>),
    /// `f32`.
    Type(ElementType),
    /// `"text"`, or any bytes.
    Text(Vec<u8>),
    /// `[1 : i64, "text"]`.
    List(Vec<FfiValue>),
    /// `{name = value}`.
    Dictionary(FfiAttributes),
}

/// Typed values by name. As text they are what MLIR prints, names in order.
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
        read::attributes(text)
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

    /// A text; an error where the bytes of the string are not UTF-8.
    pub fn text(&self, name: &str) -> Result<&str> {
        match self.demand(name)? {
            FfiValue::Text(bytes) => backend_config::text(&format!("attribute {name}"), bytes),
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

impl FromIterator<(String, FfiValue)> for FfiAttributes {
    fn from_iter<T: IntoIterator<Item = (String, FfiValue)>>(entries: T) -> FfiAttributes {
        FfiAttributes(entries.into_iter().collect())
    }
}
