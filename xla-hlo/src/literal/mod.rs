//! Literals: arrays of elements in row-major order, tuples and tokens.

pub(crate) mod float_format;
pub(crate) mod scalar;
mod storage;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

pub use scalar::Scalar;
use storage::{Storage, reserved};

use crate::shape::{IndexIter, linear_index};
use crate::{ArrayShape, ElementType, Error, Result, ResultExt, Shape};

/// Value known on the host.
///
/// Array elements are stored in row-major order and little-endian, each in [`ElementType::byte_width`] bytes (nothing
/// is packed), independent of the layout in an instruction's shape: layouts belong to devices, and a literal's shape
/// has none. Cloning is cheap; bytes are shared until they are written.
///
/// A splat, [`Literal::splat`], stores a single element that stands for all elements. It is copied, compared and hashed
/// in this form. Its elements are expanded when a caller requests the bytes of all of them ([`Literal::bytes`]).
#[derive(Clone, Debug)]
pub struct Literal {
    shape: Shape,
    data: Data,
}

#[derive(Clone, Debug)]
enum Data {
    Array(Storage),
    Tuple(Vec<Literal>),
    Token,
}

/// Compares shapes and bytes, independent of the representation.
impl PartialEq for Literal {
    fn eq(&self, other: &Literal) -> bool {
        self.shape == other.shape
            && match (&self.data, &other.data) {
                (Data::Array(a), Data::Array(b)) => a.equals(b, self.width()),
                (Data::Tuple(a), Data::Tuple(b)) => a == b,
                (Data::Token, Data::Token) => true,
                (Data::Array(_) | Data::Tuple(_) | Data::Token, _) => false,
            }
    }
}

impl Eq for Literal {}

/// Hashes all bytes, or one element if all are equal: a splat and the equal dense array have the same hash.
impl Hash for Literal {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.shape.hash(hasher);
        match &self.data {
            Data::Array(storage) => match storage.uniform(self.width()) {
                Some(element) => (true, element).hash(hasher),
                None => (false, storage.bytes()).hash(hasher),
            },
            Data::Tuple(elements) => elements.hash(hasher),
            Data::Token => {}
        }
    }
}

impl Literal {
    /// Creates an array of zero bytes (the value zero for every type but `f8e8m0fnu`). Fails if it does not fit in
    /// memory.
    pub fn zeros(shape: &ArrayShape) -> Result<Literal> {
        let count = shape.checked_element_count()?;
        let bytes = count * shape.element_type().byte_width();
        let mut data = reserved(bytes).context(|| shape.to_string())?;
        data.resize(bytes, 0);
        Ok(Literal::from_parts(shape, data))
    }

    /// Creates zeros for arrays, recursively for tuples. Opaque values have no literal.
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

    /// Creates an array from its bytes in row-major order.
    pub fn from_bytes(shape: &ArrayShape, bytes: Vec<u8>) -> Result<Literal> {
        let expected = shape.checked_element_count()? * shape.element_type().byte_width();
        if bytes.len() != expected {
            return Err(Error::invalid_argument(format!("{shape} takes {expected} bytes, {} were given", bytes.len())));
        }
        Ok(Literal::from_parts(shape, bytes))
    }

    /// Creates a splat, an array whose elements are all equal; it takes no memory for them.
    pub fn splat(shape: &ArrayShape, value: Scalar) -> Result<Literal> {
        let mut element = [0; 16];
        value.write(shape.element_type(), &mut element);
        Literal::splat_of_bytes(shape, &element[..shape.element_type().byte_width()])
    }

    /// Creates a splat of the element with those bytes.
    pub(crate) fn splat_of_bytes(shape: &ArrayShape, element: &[u8]) -> Result<Literal> {
        let count = shape.checked_element_count()?;
        Ok(Literal { shape: Shape::Array(static_shape(shape)), data: Data::Array(Storage::splat(element, count)) })
    }

    /// Creates a scalar array.
    pub fn scalar(ty: ElementType, value: Scalar) -> Literal {
        let mut bytes = vec![0; ty.byte_width()];
        value.write(ty, &mut bytes);
        Literal::from_parts(&ArrayShape::scalar(ty), bytes)
    }

    /// Creates an array whose element `i` in row-major order is `f(i)`, rounded to the element type.
    pub fn from_fn(shape: &ArrayShape, mut f: impl FnMut(usize) -> Scalar) -> Result<Literal> {
        let mut literal = Literal::zeros(shape)?;
        let ty = shape.element_type();
        for (i, chunk) in literal.bytes_mut().chunks_exact_mut(ty.byte_width()).enumerate() {
            f(i).write(ty, chunk);
        }
        Ok(literal)
    }

    /// Creates a tuple of values.
    pub fn tuple(elements: Vec<Literal>) -> Literal {
        Literal { shape: Shape::Tuple(elements.iter().map(|e| e.shape.clone()).collect()), data: Data::Tuple(elements) }
    }

    /// Creates a token.
    pub fn token() -> Literal {
        Literal { shape: Shape::Token, data: Data::Token }
    }

    fn from_parts(shape: &ArrayShape, bytes: Vec<u8>) -> Literal {
        Literal { shape: Shape::Array(static_shape(shape)), data: Data::Array(Storage::Dense(Arc::new(bytes))) }
    }

    /// Returns the shape, which has no layouts.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the array shape. Panics on tuples and tokens: check the shape first.
    pub fn array_shape(&self) -> &ArrayShape {
        self.shape.as_array().expect("the literal is an array")
    }

    /// Returns the bytes of an array in row-major order; empty for tuples and tokens. The first call expands a splat:
    /// see [`Literal::as_splat`] to avoid that, and [`Literal::densify`] for an error if memory is short.
    pub fn bytes(&self) -> &[u8] {
        match &self.data {
            Data::Array(storage) => storage.bytes(),
            Data::Tuple(_) | Data::Token => &[],
        }
    }

    /// Returns the bytes of an array for writing; empty for tuples and tokens. Copies them first if they are shared.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.data {
            Data::Array(storage) => storage.bytes_mut(),
            Data::Tuple(_) | Data::Token => &mut [],
        }
    }

    /// Returns the length of [`Literal::bytes`].
    pub fn byte_len(&self) -> usize {
        match &self.data {
            Data::Array(storage) => storage.len(),
            Data::Tuple(_) | Data::Token => 0,
        }
    }

    /// Returns the bytes of the single stored element of a splat; `None` for dense arrays, tuples and tokens.
    pub fn as_splat(&self) -> Option<&[u8]> {
        match &self.data {
            Data::Array(storage) => storage.repeated(),
            Data::Tuple(_) | Data::Token => None,
        }
    }

    /// Returns the value that all elements of an array have, compared bitwise; `None` if they differ. Applies to splats
    /// and dense arrays.
    pub fn uniform(&self) -> Option<Scalar> {
        let Data::Array(storage) = &self.data else { return None };
        let element = storage.uniform(self.width())?;
        Some(Scalar::read(self.array_shape().element_type(), element))
    }

    /// Converts an array whose elements are all equal to a splat; returns other values unchanged.
    #[must_use]
    pub fn compact(self) -> Literal {
        let Data::Array(storage @ Storage::Dense(_)) = &self.data else { return self };
        let width = self.width();
        let splat = storage.uniform(width).map(|element| Storage::splat(element, storage.len() / width));
        match splat {
            Some(splat) => Literal { shape: self.shape, data: Data::Array(splat) },
            None => self,
        }
    }

    /// Expands all splats inside, so that [`Literal::bytes`] costs nothing. Fails if they do not fit in memory.
    pub fn densify(&self) -> Result<()> {
        match &self.data {
            Data::Array(storage) => storage.densify().context(|| self.shape.to_string()),
            Data::Tuple(elements) => elements.iter().try_for_each(Literal::densify),
            Data::Token => Ok(()),
        }
    }

    /// Copies the bytes of an array in row-major order; the literal itself remains a splat if it is one. Panics unless
    /// `target` has [`Literal::byte_len`] bytes.
    pub fn copy_bytes_to(&self, target: &mut [u8]) {
        if let Data::Array(storage) = &self.data {
            storage.copy_to(target);
        }
    }

    /// Returns the number of bytes of an element of an array; 1 for tuples and tokens.
    fn width(&self) -> usize {
        self.shape.as_array().map_or(1, |array| array.element_type().byte_width())
    }

    /// Returns the elements of a tuple; empty for arrays and tokens.
    pub fn elements(&self) -> &[Literal] {
        match &self.data {
            Data::Tuple(elements) => elements,
            Data::Array(_) | Data::Token => &[],
        }
    }

    /// Splits a tuple into its elements; an array or token becomes the only element.
    pub fn into_elements(self) -> Vec<Literal> {
        match self.data {
            Data::Tuple(elements) => elements,
            Data::Array(_) | Data::Token => vec![self],
        }
    }

    /// Moves element `i` out of a tuple that has no further readers as a whole; `None` if there is no such element.
    pub(crate) fn take_element(&mut self, i: usize) -> Option<Literal> {
        match &mut self.data {
            Data::Tuple(elements) => elements.get_mut(i).map(|e| std::mem::replace(e, Literal::token())),
            Data::Array(_) | Data::Token => None,
        }
    }

    /// Returns the arrays and tokens in depth-first order.
    pub fn leaves(&self) -> Vec<&Literal> {
        match &self.data {
            Data::Tuple(elements) => elements.iter().flat_map(Literal::leaves).collect(),
            Data::Array(_) | Data::Token => vec![self],
        }
    }

    /// Returns the element at row-major position `i` of an array.
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

    /// Returns the bytes of one element of an array.
    pub fn element_bytes(&self, i: usize) -> &[u8] {
        match &self.data {
            Data::Array(storage) => storage.element(i, self.width()),
            Data::Tuple(_) | Data::Token => &[],
        }
    }

    /// Returns the same bytes, shared, as an array of another shape with the same number of bytes.
    pub fn reshaped(&self, shape: &ArrayShape) -> Result<Literal> {
        let Data::Array(storage) = &self.data else {
            return Err(Error::invalid_argument(format!("cannot reshape {}", self.shape)));
        };
        let width = shape.element_type().byte_width();
        if storage.len() != shape.checked_element_count()? * width {
            return Err(Error::invalid_argument(format!("{} cannot have the shape {shape}", self.shape)));
        }
        let storage = match storage.repeated() {
            Some(element) if element.len() != width => {
                self.densify()?;
                Storage::Dense(Arc::new(storage.bytes().to_vec()))
            }
            _ => storage.clone(),
        };
        Ok(Literal { shape: Shape::Array(static_shape(shape)), data: Data::Array(storage) })
    }

    /// Crops or zero-pads the array to `dims`; elements keep their indices.
    pub(crate) fn resized(&self, dims: &[usize]) -> Result<Literal> {
        let old = self.array_shape();
        if old.dims() == dims {
            return Ok(self.clone());
        }
        let mut result = Literal::zeros(&ArrayShape::new(old.element_type(), dims))?;
        self.densify()?;
        let width = old.element_type().byte_width();
        let common: Vec<usize> = old.dims().iter().zip(dims).map(|(&a, &b)| a.min(b)).collect();
        let mut indices = IndexIter::new(&common);
        while let Some(index) = indices.next_index() {
            let (from, to) = (linear_index(old.dims(), index) * width, linear_index(dims, index) * width);
            result.bytes_mut()[to..to + width].copy_from_slice(&self.bytes()[from..from + width]);
        }
        Ok(result)
    }

    /// Moves elements into an array of dimensions `dims` by their linear position: element `n` in the order of
    /// `minor_to_major` becomes element `n` of the result in that order. Surplus elements are dropped; missing ones are
    /// zero.
    ///
    /// Converts between an array at its real size and the buffer of its bound, see [`crate::dynamic_result`].
    pub fn reflowed(&self, dims: &[usize], minor_to_major: &[usize]) -> Result<Literal> {
        let old = self.shape.expect_array()?;
        if old.dims() == dims {
            return Ok(self.clone());
        }
        if old.rank() != dims.len() || minor_to_major.len() != dims.len() {
            return Err(Error::internal(format!("{old} cannot be copied into an array of {} dimensions", dims.len())));
        }
        let mut result = Literal::zeros(&ArrayShape::new(old.element_type(), dims))?;
        self.densify()?;
        let (source, target) = (self.bytes(), result.bytes_mut());
        if minor_to_major.iter().rev().copied().eq(0..dims.len()) {
            let common = source.len().min(target.len());
            target[..common].copy_from_slice(&source[..common]);
            return Ok(result);
        }
        let width = old.element_type().byte_width();
        let order = |of: &[usize]| minor_to_major.iter().rev().map(|&d| of[d]).collect::<Vec<usize>>();
        let steps = |of: &[usize]| {
            let strides: Vec<usize> = (0..of.len()).map(|d| of[d + 1..].iter().product::<usize>() * width).collect();
            order(&strides)
        };
        let (old_order, new_order) = (order(old.dims()), order(dims));
        let (old_steps, new_steps) = (steps(old.dims()), steps(dims));
        let (mut from, mut to) = (IndexIter::new(&old_order), IndexIter::new(&new_order));
        let place = |index: &[usize], steps: &[usize]| -> usize { index.iter().zip(steps).map(|(i, s)| i * s).sum() };
        while let (Some(here), Some(there)) = (from.next_index(), to.next_index()) {
            let (here, there) = (place(here, &old_steps), place(there, &new_steps));
            target[there..there + width].copy_from_slice(&source[here..here + width]);
        }
        Ok(result)
    }
}

/// Returns the shape of a literal: no layout, and dynamic dimensions at their bounds.
fn static_shape(shape: &ArrayShape) -> ArrayShape {
    shape.clone().with_layout(None).with_dynamism(Vec::new())
}
