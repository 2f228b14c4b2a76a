//! Attributes of a call in the form that handlers read: sorted by name, with typed values.

use std::ffi::c_void;
use std::ptr;

use xla_hlo::ops::{FfiAttributes, FfiValue};
use xla_hlo::{ElementType, Error, Result, ResultExt, Scalar};

use crate::abi::{ArrayValue, Attributes, ByteSpan, Head, ScalarValue};
use crate::element_type::number;

const ARRAY: i32 = 1;
const DICTIONARY: i32 = 2;
const SCALAR: i32 = 3;
const STRING: i32 = 4;

/// Attributes with everything that they point to.
pub(crate) struct EncodedAttributes {
    types: Vec<i32>,
    names: Vec<*const ByteSpan>,
    values: Vec<*const c_void>,
    /// Owners of the memory that the pointers refer to; boxes do not move.
    kept: Vec<Kept>,
}

/// Owner of a piece of memory that attributes point to.
#[expect(dead_code, reason = "owners are only dropped")]
enum Kept {
    Bytes(Box<[u8]>),
    Span(Box<ByteSpan>),
    Scalar(Box<ScalarValue>),
    Array(Box<ArrayValue>),
    Dictionary(Box<(Attributes, EncodedAttributes)>),
}

impl EncodedAttributes {
    /// Encodes a dictionary. Fails with [`Error::Unimplemented`] for values that the API has no type for.
    pub fn new(attributes: &FfiAttributes) -> Result<EncodedAttributes> {
        let mut encoded =
            EncodedAttributes { types: Vec::new(), names: Vec::new(), values: Vec::new(), kept: Vec::new() };
        for (name, value) in attributes.iter() {
            let span = encoded.span(name.as_bytes());
            let (ty, value) = encoded.value(value).context(|| format!("attribute {name:?}"))?;
            encoded.types.push(ty);
            encoded.names.push(span);
            encoded.values.push(value);
        }
        Ok(encoded)
    }

    /// Returns the structure for handlers, which borrows from `self`.
    pub fn structure(&self) -> Attributes {
        Attributes {
            head: Head::new(Attributes::SIZE),
            len: self.types.len() as i64,
            types: self.types.as_ptr(),
            names: self.names.as_ptr(),
            values: self.values.as_ptr(),
        }
    }

    fn bytes(&mut self, bytes: Vec<u8>) -> *const u8 {
        // Append a zero, so that an empty text has an address, and a text is zero-terminated.
        let bytes: Box<[u8]> = bytes.into_iter().chain([0]).collect();
        let start = bytes.as_ptr();
        self.kept.push(Kept::Bytes(bytes));
        start
    }

    fn span(&mut self, bytes: &[u8]) -> *const ByteSpan {
        let span = Box::new(ByteSpan { start: self.bytes(bytes.to_vec()), len: bytes.len() });
        let pointer = ptr::from_ref(&*span);
        self.kept.push(Kept::Span(span));
        pointer
    }

    fn array(&mut self, dtype: i32, len: usize, bytes: Vec<u8>) -> (i32, *const c_void) {
        let array = Box::new(ArrayValue { dtype, len, data: self.bytes(bytes) });
        let pointer = ptr::from_ref(&*array).cast();
        self.kept.push(Kept::Array(array));
        (ARRAY, pointer)
    }

    fn scalar(&mut self, dtype: i32, bytes: Vec<u8>) -> (i32, *const c_void) {
        let scalar = Box::new(ScalarValue { dtype, value: self.bytes(bytes) });
        let pointer = ptr::from_ref(&*scalar).cast();
        self.kept.push(Kept::Scalar(scalar));
        (SCALAR, pointer)
    }

    fn value(&mut self, value: &FfiValue) -> Result<(i32, *const c_void)> {
        Ok(match value {
            FfiValue::Boolean(flag) => self.scalar(number(ElementType::Pred), vec![u8::from(*flag)]),
            FfiValue::Number(ty, scalar) => self.scalar(number(*ty), encode(*ty, &[*scalar])),
            FfiValue::Numbers(ty, scalars) => self.array(number(*ty), scalars.len(), encode(*ty, scalars)),
            FfiValue::Text(text) => (STRING, self.span(text).cast()),
            FfiValue::Dictionary(inner) => self.dictionary(inner)?,
            FfiValue::Elements(literal) => {
                let shape = literal.array_shape();
                self.array(number(shape.element_type()), shape.element_count(), literal.bytes().to_vec())
            }
            FfiValue::Unit => return Err(no_type("unit values")),
            FfiValue::List(_) => return Err(no_type("lists, only for arrays, strings and dictionaries")),
            FfiValue::Symbol(_) => return Err(no_type("symbols")),
            FfiValue::Type(_) => return Err(no_type("types")),
        })
    }

    fn dictionary(&mut self, attributes: &FfiAttributes) -> Result<(i32, *const c_void)> {
        let inner = EncodedAttributes::new(attributes)?;
        // The structure points into the vectors of `inner`, whose buffers do not move when `inner` moves.
        let both = Box::new((inner.structure(), inner));
        let pointer = ptr::from_ref(&both.0).cast();
        self.kept.push(Kept::Dictionary(both));
        Ok((DICTIONARY, pointer))
    }
}

fn no_type(of: &str) -> Error {
    Error::unimplemented(format!("the FFI of handlers has no type for {of}"))
}

fn encode(ty: ElementType, scalars: &[Scalar]) -> Vec<u8> {
    let width = ty.byte_width();
    let mut bytes = vec![0; width * scalars.len()];
    bytes.chunks_exact_mut(width).zip(scalars).for_each(|(chunk, scalar)| scalar.write(ty, chunk));
    bytes
}
