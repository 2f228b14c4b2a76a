//! Named values: options from callers, and attributes for callers.

use crate::abi::errors::NamedValue;
use crate::ffi::{Counted, Head, Image, List, Text, Word};
use crate::status::Status;

/// Value of an option or attribute.
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

/// Named values that are lent to C.
pub(crate) struct Attributes {
    /// Owners of the memory that `raw` points to.
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

/// Converts named values from the caller.
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

/// Converts the payload of an error from the caller; only text values are kept.
pub(crate) fn payload(values: &List<NamedValue>) -> Result<Vec<(String, Vec<u8>)>, Status> {
    let bytes =
        |value: &NamedValue| Ok((value.name.as_str()?.to_string(), value.value.text(value.value_size).get()?.to_vec()));
    values.get()?.iter().filter(|value| value.value_type == 0).map(bytes).collect()
}
