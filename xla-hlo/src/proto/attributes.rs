//! Attributes in protobuf: readers and writers for the operation families, independent of how ids are assigned.

use std::collections::HashMap;

use super::known::Known;
use super::messages::{HloInstructionProto, OpSharding};
use super::metadata::Payloads;
use super::{numbers, sharding};
use crate::ops::Opcode;
use crate::text::AttributeWord;
use crate::{CompId, Computation, ElementType, Error, Module, Result, Shape, Sharding};

/// Conversion of an operation's attributes from and to its message; the protobuf counterpart of
/// [`OpRules`](crate::ops::OpRules).
///
/// Fields common to all instructions (name, shape, operands, metadata, ...) are converted elsewhere.
pub trait ProtoAttributes: Sized {
    /// Moves the operation's own attributes out of the message.
    fn read_proto(opcode: Opcode, r: &mut ProtoReader<'_>) -> Result<Self>;

    /// Writes the operation's own attributes to the message.
    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()>;
}

/// Implements [`ProtoAttributes`] for operations without attributes (unit structs).
macro_rules! proto_without_attributes {
    ($($op:ident),* $(,)?) => {
        $(impl $crate::proto::ProtoAttributes for $op {
            fn read_proto(_: $crate::Opcode, _: &mut $crate::proto::ProtoReader<'_>) -> $crate::Result<Self> {
                Ok($op)
            }

            fn write_proto(&self, _: &mut $crate::proto::ProtoWriter<'_>) -> $crate::Result<()> {
                Ok(())
            }
        })*
    };
}
pub(crate) use proto_without_attributes;

/// Enum that is encoded as a number in protobuf.
pub(crate) trait ProtoNumber: Sized {
    /// Returns the value with that number.
    fn from_number(number: i32) -> Option<Self>;

    /// Returns the number of the value.
    fn number(self) -> i32;
}

/// Implements [`ProtoNumber`] for an enum; every variant must be listed.
macro_rules! proto_numbers {
    ($ty:ident: $($number:literal => $variant:ident),+ $(,)?) => {
        impl $crate::proto::ProtoNumber for $ty {
            fn from_number(number: i32) -> Option<Self> {
                match number { $($number => Some($ty::$variant),)+ _ => None }
            }

            fn number(self) -> i32 {
                match self { $($ty::$variant => $number,)+ }
            }
        }
    };
}
pub(crate) use proto_numbers;

/// Reader of an instruction's message, which also resolves ids.
pub struct ProtoReader<'a> {
    /// Message of the instruction; operations move their own fields out of it.
    pub(crate) message: HloInstructionProto,
    /// Shapes of the operands.
    pub(crate) operands: Vec<&'a Shape>,
    known: &'a Known,
}

impl<'a> ProtoReader<'a> {
    pub(super) fn new(message: HloInstructionProto, operands: Vec<&'a Shape>, known: &'a Known) -> ProtoReader<'a> {
        ProtoReader { message, operands, known }
    }

    /// Returns all called computations in order.
    pub(crate) fn calls(&self) -> Result<Vec<CompId>> {
        let ids = self.message.called_computation_ids.iter();
        ids.map(|id| {
            let known = self.known.computations.get(id).copied();
            known.ok_or_else(|| {
                Error::invalid_argument(format!("called_computation_ids names computation {id}, which does not exist"))
            })
        })
        .collect()
    }

    /// Returns the called computations of an operation that has exactly `N`.
    pub(crate) fn called<const N: usize>(&self) -> Result<[CompId; N]> {
        let calls = self.calls()?;
        let count = calls.len();
        calls.try_into().map_err(|_| {
            Error::invalid_argument(format!("called_computation_ids has {count} entries where {N} are needed"))
        })
    }

    /// Returns the only entry of `dimensions`.
    pub(crate) fn dimension(&self) -> Result<usize> {
        match self.message.dimensions[..] {
            [d] => numbers::index("dimensions", d),
            _ => Err(Error::invalid_argument("dimensions must name exactly one dimension")),
        }
    }

    /// Returns the entries of `dimensions`.
    pub(crate) fn dimensions(&self) -> Result<Vec<usize>> {
        numbers::indices("dimensions", &self.message.dimensions)
    }

    /// Returns the channel; 0 in the message means none.
    pub(crate) fn channel_id(&self) -> Option<i64> {
        Some(self.message.channel_id).filter(|&id| id != 0)
    }

    /// Reads a sharding.
    pub(crate) fn sharding(&self, sharding: OpSharding) -> Result<Sharding> {
        sharding::read(sharding, &self.known.payloads)
    }

    /// Reads an enum that is encoded as a word, with the spelling of the text form.
    pub(crate) fn word<T: AttributeWord>(field: &str, word: &str) -> Result<T> {
        T::from_word(word).ok_or_else(|| {
            let word: String = word.chars().take(40).collect();
            Error::invalid_argument(format!("{field} is `{word}`, which is not {}", T::WHAT))
        })
    }

    /// Reads an enum that is encoded as a number.
    pub(crate) fn number<T: ProtoNumber>(field: &str, number: i32) -> Result<T> {
        let value = T::from_number(number);
        value.ok_or_else(|| Error::invalid_argument(format!("{field} is {number}, which has no meaning here")))
    }
}

/// Returns the element type of an operand; `Pred` if there is none (the verifier reports that).
pub(crate) fn operand_type(operands: &[&Shape], i: usize) -> ElementType {
    operands.get(i).and_then(|shape| shape.element_type()).unwrap_or(ElementType::Pred)
}

/// Writer of an instruction's message.
pub struct ProtoWriter<'a> {
    /// Message of the instruction; operations write their own fields to it.
    pub(crate) message: &'a mut HloInstructionProto,
    /// Shape of the result.
    pub(crate) shape: &'a Shape,
    /// Shapes of the operands.
    pub(crate) operands: Vec<&'a Shape>,
    pub(super) module: &'a Module,
    pub(super) computations: &'a HashMap<CompId, i64>,
    pub(super) payloads: &'a mut Payloads,
}

impl ProtoWriter<'_> {
    /// Returns the execution thread of a called computation.
    pub(crate) fn thread_of(&self, computation: CompId) -> Result<&str> {
        let computation = self.module.get(computation);
        computation.map(Computation::execution_thread).ok_or_else(removed)
    }

    /// Writes a sharding.
    pub(crate) fn sharding(&mut self, sharding: &Sharding) -> Result<OpSharding> {
        sharding::write(sharding, self.payloads)
    }

    /// Sets the called computations.
    pub(crate) fn calls(&mut self, computations: &[CompId]) -> Result<()> {
        let id = |computation: &CompId| {
            let id = self.computations.get(computation).copied();
            id.ok_or_else(removed)
        };
        self.message.called_computation_ids = computations.iter().map(id).collect::<Result<_>>()?;
        Ok(())
    }

    /// Sets `dimensions`.
    pub(crate) fn dimensions(&mut self, dimensions: &[usize]) -> Result<()> {
        self.message.dimensions = numbers::longs("dimensions", dimensions)?;
        Ok(())
    }
}

fn removed() -> Error {
    Error::invalid_argument("calls a computation that was removed")
}
