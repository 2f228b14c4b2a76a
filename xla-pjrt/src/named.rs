//! Named values: options that callers pass, attributes that they are told.

use crate::abi::errors::NamedValue;
use crate::border::{Counted, Head, Image, List, Text, Word};
use crate::status::Status;

/// The value of an option or attribute.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Integers(Vec<i64>),
    Real(f32),
    Flag(bool),
}

/// Names with values.
pub(crate) type Named = Vec<(String, Value)>;

/// Named values that C may borrow.
pub(crate) struct Attributes {
    /// The owners of the memory that the raw ones point to.
    _named: Named,
    raw: Vec<NamedValue>,
}

impl Attributes {
    pub fn new(named: Named) -> Attributes {
        let raw = named.iter().map(|(name, value)| raw(name, value)).collect();
        Attributes { _named: named, raw }
    }

    pub fn list(&self) -> List<NamedValue> {
        List::of(&self.raw)
    }

    pub fn counted(&self) -> Counted<NamedValue> {
        Counted::of(&self.raw)
    }
}

fn raw(name: &str, value: &Value) -> NamedValue {
    let (value_type, word, value_size) = match value {
        Value::Text(text) => (0, Word::array(text.as_bytes()), text.len()),
        Value::Integer(integer) => (1, Word::from(*integer), 1),
        Value::Integers(integers) => (2, Word::array(integers), integers.len()),
        Value::Real(real) => (3, Word::from(*real), 1),
        Value::Flag(flag) => (4, Word::from(*flag), 1),
    };
    let head = Head { struct_size: NamedValue::SIZE, extensions: 0 };
    NamedValue { head, name: Text::text(name), value_type, value: word, value_size }
}

/// The caller's named values.
pub(crate) fn read(values: &List<NamedValue>) -> Result<Named, Status> {
    let read = |value: &NamedValue| {
        let name = value.name.as_str()?.to_string();
        let size = value.value_size;
        let read = match value.value_type {
            0 => Value::Text(value.value.text(size).as_str()?.to_string()),
            1 => Value::Integer(value.value.integer()),
            2 => Value::Integers(value.value.integers(size).get()?.to_vec()),
            3 => Value::Real(value.value.real()),
            4 => Value::Flag(value.value.flag()),
            other => {
                return Err(Status::invalid_argument(format!("the value of {name:?} has the unknown type {other}")));
            }
        };
        Ok((name, read))
    };
    values.get()?.iter().map(read).collect()
}

/// The payload of an error of the caller's: texts.
pub(crate) fn payload(values: &List<NamedValue>) -> Result<Vec<(String, Vec<u8>)>, Status> {
    let bytes =
        |value: &NamedValue| Ok((value.name.as_str()?.to_string(), value.value.text(value.value_size).get()?.to_vec()));
    values.get()?.iter().filter(|value| value.value_type == 0).map(bytes).collect()
}
