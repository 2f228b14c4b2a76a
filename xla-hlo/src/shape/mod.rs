//! Shapes of values; array shapes have a layout.

mod index;
mod layout;
mod memory_order;

use std::fmt;

pub use index::{IndexIter, linear_index, multi_index, strides};
pub use layout::{Layout, MEMORY_KINDS, SplitConfig, Tile, TileDim};
pub use memory_order::{MemoryStep, MemoryStepKind};

use crate::{ElementType, Error, Result};

/// Shape of a value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Shape {
    /// Dense array; rank 0 is a scalar.
    Array(ArrayShape),
    /// Tuple of values; may be empty and may nest.
    Tuple(Vec<Shape>),
    /// Token that orders side effects; carries no data.
    Token,
    /// Value that only custom calls can interpret.
    Opaque,
    /// `b(...)`: buffer that holds a value of the inner shape.
    Buffer(Box<ArrayShape>),
}

/// Degree to which a dimension's size is known at compile time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Dynamism {
    /// The size is exact.
    #[default]
    Static,
    /// `<=n`: the stored size is a bound; the real size is known only at run time.
    Bounded,
    /// `?`: the size is unknown; the stored size is 0.
    Unbounded,
}

/// Maximum size of an array in bytes: the range of user space with 48-bit addresses. Sums over many arrays do not
/// overflow.
const ADDRESSABLE_BYTES: usize = 1 << 47;

/// Element type, dimensions and layout of an array.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ArrayShape {
    element_type: ElementType,
    dims: Vec<usize>,
    /// Dynamism of each dimension; empty if every dimension is static.
    dynamism: Vec<Dynamism>,
    layout: Option<Layout>,
}

impl ArrayShape {
    /// Creates an array shape without a layout.
    pub fn new(element_type: ElementType, dims: impl Into<Vec<usize>>) -> ArrayShape {
        ArrayShape { element_type, dims: dims.into(), dynamism: Vec::new(), layout: None }
    }

    /// Creates a scalar shape.
    pub fn scalar(element_type: ElementType) -> ArrayShape {
        ArrayShape::new(element_type, [])
    }

    /// Replaces the layout.
    #[must_use]
    pub fn with_layout(mut self, layout: Option<Layout>) -> ArrayShape {
        self.layout = layout;
        self
    }

    /// Replaces the layout by a row-major one.
    #[must_use]
    pub fn with_row_major_layout(self) -> ArrayShape {
        let rank = self.rank();
        self.with_layout(Some(Layout::row_major(rank)))
    }

    /// Replaces the element type.
    #[must_use]
    pub fn with_element_type(mut self, element_type: ElementType) -> ArrayShape {
        self.element_type = element_type;
        self
    }

    /// Replaces the dynamism of the dimensions; the vector is empty or has the shape's rank.
    #[must_use]
    pub fn with_dynamism(mut self, dynamism: Vec<Dynamism>) -> ArrayShape {
        let any = dynamism.iter().any(|d| *d != Dynamism::Static);
        self.dynamism = if any { dynamism } else { Vec::new() };
        self
    }

    /// Returns the type of the elements.
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// Returns the sizes, major dimension first; for dynamic dimensions, the bounds.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Returns the number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Whether the array has no dimensions.
    pub fn is_scalar(&self) -> bool {
        self.dims.is_empty()
    }

    /// Returns the dynamism of dimension `d`.
    pub fn dynamism(&self, d: usize) -> Dynamism {
        self.dynamism.get(d).copied().unwrap_or_default()
    }

    /// Whether all sizes are exact.
    pub fn is_static(&self) -> bool {
        self.dynamism.is_empty()
    }

    /// Returns the layout, if there is one.
    pub fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }

    /// Returns the dimension order in memory: that of the layout, or row-major.
    pub fn minor_to_major(&self) -> Vec<usize> {
        self.layout.as_ref().map_or_else(|| (0..self.rank()).rev().collect(), |l| l.minor_to_major.clone())
    }

    /// Returns the total number of elements; fails if the array exceeds the address space.
    pub fn checked_element_count(&self) -> Result<usize> {
        let product =
            if self.dims.contains(&0) { Some(0) } else { self.dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d)) };
        product
            .filter(|&n| n.checked_mul(self.element_type.byte_width()).is_some_and(|b| b <= ADDRESSABLE_BYTES))
            .ok_or_else(|| Error::resource_exhausted(format!("{self} has more elements than can be addressed")))
    }

    /// Returns the total number of elements. The shape must have been checked (the verifier and the parser do).
    pub fn element_count(&self) -> usize {
        self.dims.iter().product()
    }

    /// Returns the total size of the elements in bytes, unpacked and without padding.
    pub fn byte_size(&self) -> usize {
        self.element_count() * self.element_type.byte_width()
    }

    /// Returns the size of the array in memory in bytes: unpacked, with each level of tiles padded to whole tiles and
    /// the end padded to the tail alignment. Returns `usize::MAX` for a layout that exceeds every memory.
    pub fn padded_byte_size(&self) -> usize {
        if self.layout().is_none_or(Layout::is_plain) {
            return self.byte_size();
        }
        self.memory_element_count().map_or(usize::MAX, |elements| elements * self.element_type.byte_width())
    }

    /// Returns the number of bits of one element in memory: `E(n)` of the layout, or whole bytes.
    pub fn storage_bits(&self) -> usize {
        match self.layout().map_or(0, |layout| layout.element_size_in_bits) {
            0 => self.element_type.byte_width() * 8,
            packed => packed as usize,
        }
    }

    /// Whether the dimensions are equal (element type, dynamism and layout are ignored).
    pub fn same_dims(&self, other: &ArrayShape) -> bool {
        self.dims == other.dims
    }
}

impl Shape {
    /// Creates an array shape without a layout.
    pub fn array(element_type: ElementType, dims: impl Into<Vec<usize>>) -> Shape {
        Shape::Array(ArrayShape::new(element_type, dims))
    }

    /// Creates a scalar shape.
    pub fn scalar(element_type: ElementType) -> Shape {
        Shape::array(element_type, [])
    }

    /// Returns the array shape, if this is one.
    pub fn as_array(&self) -> Option<&ArrayShape> {
        match self {
            Shape::Array(array) => Some(array),
            Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => None,
        }
    }

    /// Returns the array shape; otherwise an error that names the shape.
    pub fn expect_array(&self) -> Result<&ArrayShape> {
        self.as_array().ok_or_else(|| Error::invalid_argument(format!("expected an array, found {self}")))
    }

    /// Returns the tuple's elements, if this is a tuple.
    pub fn as_tuple(&self) -> Option<&[Shape]> {
        match self {
            Shape::Tuple(elements) => Some(elements),
            Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => None,
        }
    }

    /// Returns the element type of an array.
    pub fn element_type(&self) -> Option<ElementType> {
        self.as_array().map(ArrayShape::element_type)
    }

    /// Returns the dimensions of an array; none for other shapes.
    pub fn dims(&self) -> &[usize] {
        self.as_array().map_or(&[], ArrayShape::dims)
    }

    /// Returns the element of a nested tuple at `path`; the shape itself at the empty path.
    pub fn subshape(&self, path: &[usize]) -> Option<&Shape> {
        path.iter().try_fold(self, |shape, &i| shape.as_tuple()?.get(i))
    }

    /// Returns the leaves (all parts but tuples) with their paths, in depth-first order.
    pub fn leaves(&self) -> Vec<(Vec<usize>, &Shape)> {
        fn visit<'a>(shape: &'a Shape, path: &mut Vec<usize>, out: &mut Vec<(Vec<usize>, &'a Shape)>) {
            let Some(elements) = shape.as_tuple() else {
                out.push((path.clone(), shape));
                return;
            };
            for (i, element) in elements.iter().enumerate() {
                path.push(i);
                visit(element, path, out);
                path.pop();
            }
        }
        let mut out = Vec::new();
        visit(self, &mut Vec::new(), &mut out);
        out
    }

    /// Whether element types and dimensions are equal throughout; layouts and dynamism are ignored.
    pub fn compatible(&self, other: &Shape) -> bool {
        match (self, other) {
            (Shape::Array(a), Shape::Array(b)) => a.element_type == b.element_type && a.dims == b.dims,
            (Shape::Buffer(a), Shape::Buffer(b)) => a.element_type == b.element_type && a.dims == b.dims,
            (Shape::Tuple(a), Shape::Tuple(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.compatible(b)),
            (Shape::Token, Shape::Token) | (Shape::Opaque, Shape::Opaque) => true,
            _ => false,
        }
    }

    /// Returns the size of all arrays inside in bytes, unpacked and without padding.
    pub fn byte_size(&self) -> usize {
        match self {
            Shape::Array(array) => array.byte_size(),
            Shape::Buffer(array) => array.byte_size(),
            Shape::Tuple(elements) => elements.iter().map(Shape::byte_size).sum(),
            Shape::Token | Shape::Opaque => 0,
        }
    }

    /// Returns the shape with the layout of every array replaced by the result of `f`.
    #[must_use]
    pub fn map_layouts(&self, f: &mut dyn FnMut(&ArrayShape) -> Option<Layout>) -> Shape {
        match self {
            Shape::Array(array) => Shape::Array(array.clone().with_layout(f(array))),
            Shape::Buffer(array) => Shape::Buffer(Box::new((**array).clone().with_layout(f(array)))),
            Shape::Tuple(elements) => Shape::Tuple(elements.iter().map(|e| e.map_layouts(f)).collect()),
            Shape::Token => Shape::Token,
            Shape::Opaque => Shape::Opaque,
        }
    }

    /// Returns the shape with dynamic dimensions replaced by static ones of the bounds' sizes.
    #[must_use]
    pub fn at_bounds(&self) -> Shape {
        match self {
            Shape::Array(array) => array.clone().with_dynamism(Vec::new()).into(),
            Shape::Tuple(elements) => Shape::Tuple(elements.iter().map(Shape::at_bounds).collect()),
            Shape::Buffer(_) | Shape::Token | Shape::Opaque => self.clone(),
        }
    }

    /// Returns the shape without layouts.
    #[must_use]
    pub fn without_layout(&self) -> Shape {
        self.map_layouts(&mut |_| None)
    }

    /// Returns the shape with the layouts of `said`. An array without a layout there keeps its own, or becomes
    /// row-major if it has none.
    #[must_use]
    pub fn with_layouts_of(&self, said: Option<&Shape>) -> Shape {
        match (self, said) {
            (Shape::Tuple(elements), said) => {
                let element =
                    |(i, element): (usize, &Shape)| element.with_layouts_of(said.and_then(|s| s.subshape(&[i])));
                Shape::Tuple(elements.iter().enumerate().map(element).collect())
            }
            (Shape::Array(array), Some(Shape::Array(said)))
                if said.layout().is_some() && said.rank() == array.rank() =>
            {
                Shape::Array(array.clone().with_layout(said.layout().cloned()))
            }
            _ => self.with_default_layouts(),
        }
    }

    /// Returns the shape with row-major layouts for all arrays without a layout.
    #[must_use]
    pub fn with_default_layouts(&self) -> Shape {
        self.map_layouts(&mut |a| Some(a.layout().cloned().unwrap_or_else(|| Layout::row_major(a.rank()))))
    }
}

impl From<ArrayShape> for Shape {
    fn from(array: ArrayShape) -> Shape {
        Shape::Array(array)
    }
}

impl fmt::Display for ArrayShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.element_type)?;
        for (d, size) in self.dims.iter().enumerate() {
            let comma = if d > 0 { "," } else { "" };
            match self.dynamism(d) {
                Dynamism::Static => write!(f, "{comma}{size}")?,
                Dynamism::Bounded => write!(f, "{comma}<={size}")?,
                Dynamism::Unbounded => write!(f, "{comma}?")?,
            }
        }
        f.write_str("]")?;
        match &self.layout {
            Some(layout) if self.rank() > 0 || !layout.is_plain() => write!(f, "{layout}"),
            Some(_) | None => Ok(()),
        }
    }
}

/// Prints the shape as HLO text with layouts: `(f32[2,3]{1,0}, s32[])`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Array(array) => array.fmt(f),
            Shape::Buffer(array) => write!(f, "b({array})"),
            Shape::Token => f.write_str("token[]"),
            Shape::Opaque => f.write_str("opaque[]"),
            Shape::Tuple(elements) => {
                f.write_str("(")?;
                for (i, element) in elements.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    if i > 0 && i % 5 == 0 {
                        write!(f, "/*index={i}*/")?;
                    }
                    element.fmt(f)?;
                }
                f.write_str(")")
            }
        }
    }
}
