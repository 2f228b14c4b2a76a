//! Attributes in text: how families read and write theirs without knowing tokens.

use std::marker::PhantomData;

use crate::{CompId, Error, Literal, Result};

/// A type that can stand behind `name=` in an instruction.
pub trait AttributeValue: Sized {
    /// What is expected, for error messages: `a list of integers such as {0,2}`.
    const WHAT: &'static str;

    /// Reads the value where the cursor stands.
    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self>;

    /// Writes the value.
    fn write(&self, w: &mut AttributeWriter<'_>);
}

/// The attributes written behind an instruction's operands; each is taken once, and what is left over is an error.
pub struct AttributeReader<'a> {
    marker: PhantomData<&'a ()>,
}

impl AttributeReader<'_> {
    /// The attribute `name`, if it was written.
    pub fn optional<T: AttributeValue>(&mut self, name: &'static str) -> Result<Option<T>> {
        Err(Error::unimplemented(format!("attribute {name}: {}", T::WHAT)))
    }

    /// The attribute `name`, or an error that says that it is missing and what it should be.
    pub fn required<T: AttributeValue>(&mut self, name: &'static str) -> Result<T> {
        self.optional(name)?.ok_or_else(|| Error::invalid_argument(format!("attribute {name} is missing")))
    }

    /// The number in `parameter(N)`.
    pub fn parameter_number(&mut self) -> Result<usize> {
        Err(Error::unimplemented("parameter"))
    }

    /// The literal in `constant(...)`.
    pub fn literal(&mut self) -> Result<Literal> {
        Err(Error::unimplemented("constant"))
    }
}

/// Walks the tokens of one attribute's value.
pub struct AttributeCursor<'a> {
    marker: PhantomData<&'a ()>,
}

/// Collects attributes as text, `, name=value` each.
pub struct AttributeWriter<'a> {
    out: String,
    marker: PhantomData<&'a ()>,
}

impl AttributeWriter<'_> {
    /// Writes `, name=value`.
    pub fn attribute<T: AttributeValue>(&mut self, name: &'static str, value: &T) {
        self.out.push_str(", ");
        self.out.push_str(name);
        self.out.push('=');
        value.write(self);
    }

    /// Writes text of a value; for implementations of [`AttributeValue`].
    pub fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }
}

macro_rules! pending {
    ($($ty:ty: $what:literal;)*) => {
        $(impl AttributeValue for $ty {
            const WHAT: &'static str = $what;
            fn read(_: &mut AttributeCursor<'_>) -> Result<Self> {
                Err(Error::unimplemented($what))
            }
            fn write(&self, _: &mut AttributeWriter<'_>) {}
        })*
    };
}

pending! {
    bool: "true or false";
    i64: "an integer";
    usize: "an integer that is not negative";
    u32: "a small integer that is not negative";
    Vec<i64>: "a list of integers such as {0,-1}";
    Vec<usize>: "a list of integers such as {0,2}";
    CompId: "the name of a computation";
    Vec<CompId>: "a list of computations such as {%a, %b}";
}
