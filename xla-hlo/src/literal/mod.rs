//! Values: arrays of elements in row-major order, tuples of values, tokens.

pub(crate) mod float_format;
pub(crate) mod scalar;

use std::sync::Arc;

pub use scalar::Scalar;

use crate::shape::{IndexIter, linear_index};
use crate::{ArrayShape, ElementType, Error, Result, Shape};

/// A value known on the host.
///
/// Array elements lie row major, one element in [`ElementType::byte_width`] bytes (nothing is packed), little-endian,
/// whatever layout the shape of an instruction has: layouts belong to devices, and a literal's shape has none.
/// Cloning is cheap; bytes are shared until written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Literal {
    shape: Shape,
    data: Data,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Data {
    Array(Arc<Vec<u8>>),
    Tuple(Vec<Literal>),
    Token,
}

impl Literal {
    /// An array of zero bytes (which is value zero for every type but `f8e8m0fnu`). The error says that it would not fit.
    pub fn zeros(shape: &ArrayShape) -> Result<Literal> {
        let count = shape.checked_element_count()?;
        let bytes = count * shape.element_type().byte_width();
        let mut data = Vec::new();
        data.try_reserve_exact(bytes).map_err(|e| {
            Error::resource_exhausted(format!("no memory for a literal of {bytes} bytes ({shape})")).with_source(e)
        })?;
        data.resize(bytes, 0);
        Ok(Literal::from_parts(shape, data))
    }

    /// Zeros for arrays, recursively for tuples. Opaque values have no literal.
    pub fn zeros_of(shape: &Shape) -> Result<Literal> {
        match shape {
            Shape::Array(array) => Literal::zeros(array),
            Shape::Buffer(array) => Literal::zeros(array),
            Shape::Tuple(elements) => {
                Ok(Literal::tuple(elements.iter().map(Literal::zeros_of).collect::<Result<_>>()?))
            }
            Shape::Token => Ok(Literal::token()),
            Shape::Opaque => Err(Error::invalid_argument("an opaque value has no literal")),
        }
    }

    /// An array from its bytes, row major.
    pub fn from_bytes(shape: &ArrayShape, bytes: Vec<u8>) -> Result<Literal> {
        let expected = shape.checked_element_count()? * shape.element_type().byte_width();
        if bytes.len() != expected {
            return Err(Error::invalid_argument(format!("{shape} takes {expected} bytes, {} were given", bytes.len())));
        }
        Ok(Literal::from_parts(shape, bytes))
    }

    /// An array whose elements are all the same.
    pub fn splat(shape: &ArrayShape, value: Scalar) -> Result<Literal> {
        let mut literal = Literal::zeros(shape)?;
        let mut element = [0; 16];
        value.write(shape.element_type(), &mut element);
        let width = shape.element_type().byte_width();
        literal.bytes_mut().chunks_exact_mut(width).for_each(|chunk| chunk.copy_from_slice(&element[..width]));
        Ok(literal)
    }

    /// A scalar array.
    pub fn scalar(ty: ElementType, value: Scalar) -> Literal {
        let mut bytes = vec![0; ty.byte_width()];
        value.write(ty, &mut bytes);
        Literal::from_parts(&ArrayShape::scalar(ty), bytes)
    }

    /// An array with element `i` in row-major order given by `f(i)`, rounded to the element type.
    pub fn from_fn(shape: &ArrayShape, mut f: impl FnMut(usize) -> Scalar) -> Result<Literal> {
        let mut literal = Literal::zeros(shape)?;
        let ty = shape.element_type();
        for (i, chunk) in literal.bytes_mut().chunks_exact_mut(ty.byte_width()).enumerate() {
            f(i).write(ty, chunk);
        }
        Ok(literal)
    }

    /// A tuple of values.
    pub fn tuple(elements: Vec<Literal>) -> Literal {
        Literal { shape: Shape::Tuple(elements.iter().map(|e| e.shape.clone()).collect()), data: Data::Tuple(elements) }
    }

    /// A token.
    pub fn token() -> Literal {
        Literal { shape: Shape::Token, data: Data::Token }
    }

    fn from_parts(shape: &ArrayShape, bytes: Vec<u8>) -> Literal {
        Literal { shape: Shape::Array(static_shape(shape)), data: Data::Array(Arc::new(bytes)) }
    }

    /// The shape, without layouts.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The array shape. Panics on tuples and tokens: check the shape first.
    pub fn array_shape(&self) -> &ArrayShape {
        self.shape.as_array().expect("the literal is an array")
    }

    /// Bytes of an array, row major; empty for tuples and tokens.
    pub fn bytes(&self) -> &[u8] {
        match &self.data {
            Data::Array(bytes) => bytes,
            Data::Tuple(_) | Data::Token => &[],
        }
    }

    /// Bytes of an array for writing; empty for tuples and tokens. Copies them first when they are shared.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.data {
            Data::Array(bytes) => Arc::make_mut(bytes).as_mut_slice(),
            Data::Tuple(_) | Data::Token => &mut [],
        }
    }

    /// Elements of a tuple; empty for arrays and tokens.
    pub fn elements(&self) -> &[Literal] {
        match &self.data {
            Data::Tuple(elements) => elements,
            Data::Array(_) | Data::Token => &[],
        }
    }

    /// Takes a tuple apart; an array or token gives itself alone.
    pub fn into_elements(self) -> Vec<Literal> {
        match self.data {
            Data::Tuple(elements) => elements,
            Data::Array(_) | Data::Token => vec![self],
        }
    }

    /// Moves element `i` out of a tuple that nobody reads as a whole any more; `None` if there is no such element.
    pub(crate) fn take_element(&mut self, i: usize) -> Option<Literal> {
        match &mut self.data {
            Data::Tuple(elements) => elements.get_mut(i).map(|e| std::mem::replace(e, Literal::token())),
            Data::Array(_) | Data::Token => None,
        }
    }

    /// Arrays and tokens in depth-first order.
    pub fn leaves(&self) -> Vec<&Literal> {
        match &self.data {
            Data::Tuple(elements) => elements.iter().flat_map(Literal::leaves).collect(),
            Data::Array(_) | Data::Token => vec![self],
        }
    }

    /// Element at row-major position `i` of an array.
    pub fn get(&self, i: usize) -> Scalar {
        let ty = self.array_shape().element_type();
        Scalar::read(ty, self.element_bytes(i))
    }

    /// Sets the element at row-major position `i` of an array, rounding to its type.
    pub fn set(&mut self, i: usize, value: Scalar) {
        let ty = self.array_shape().element_type();
        let width = ty.byte_width();
        value.write(ty, &mut self.bytes_mut()[i * width..(i + 1) * width]);
    }

    /// The bytes of one element of an array.
    pub fn element_bytes(&self, i: usize) -> &[u8] {
        let width = self.array_shape().element_type().byte_width();
        &self.bytes()[i * width..(i + 1) * width]
    }

    /// The same bytes, shared, under another array shape that takes as many.
    pub fn reshaped(&self, shape: &ArrayShape) -> Result<Literal> {
        let Data::Array(bytes) = &self.data else {
            return Err(Error::invalid_argument(format!("cannot reshape {}", self.shape)));
        };
        let expected = shape.checked_element_count()? * shape.element_type().byte_width();
        if bytes.len() != expected {
            return Err(Error::invalid_argument(format!("{} cannot have the shape {shape}", self.shape)));
        }
        Ok(Literal { shape: Shape::Array(static_shape(shape)), data: Data::Array(bytes.clone()) })
    }

    /// The elements at indices below `dims`; zeros where there are none.
    pub(crate) fn resized(&self, dims: &[usize]) -> Result<Literal> {
        let old = self.array_shape();
        if old.dims() == dims {
            return Ok(self.clone());
        }
        let mut result = Literal::zeros(&ArrayShape::new(old.element_type(), dims))?;
        let width = old.element_type().byte_width();
        let common: Vec<usize> = old.dims().iter().zip(dims).map(|(&a, &b)| a.min(b)).collect();
        let mut indices = IndexIter::new(&common);
        while let Some(index) = indices.next_index() {
            let (from, to) = (linear_index(old.dims(), index) * width, linear_index(dims, index) * width);
            result.bytes_mut()[to..to + width].copy_from_slice(&self.bytes()[from..from + width]);
        }
        Ok(result)
    }

    /// The same value with each array as large as the bounds of `shape` (`<=`) say, and zeros behind its size.
    ///
    /// What an evaluation gives has the sizes it really has; devices have room for the bounds.
    pub fn at_bounds(self, shape: &Shape) -> Result<Literal> {
        match shape {
            Shape::Array(array) if !array.is_static() => self.resized(array.dims()),
            Shape::Tuple(shapes) => {
                let elements = self.into_elements().into_iter().zip(shapes);
                Ok(Literal::tuple(elements.map(|(element, shape)| element.at_bounds(shape)).collect::<Result<_>>()?))
            }
            Shape::Array(_) | Shape::Buffer(_) | Shape::Token | Shape::Opaque => Ok(self),
        }
    }
}

/// A literal's own shape: no layout, and bounds of dynamic dimensions are what is stored.
fn static_shape(shape: &ArrayShape) -> ArrayShape {
    shape.clone().with_layout(None).with_dynamism(Vec::new())
}
