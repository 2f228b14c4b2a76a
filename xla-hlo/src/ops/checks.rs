//! Checks shared by the operation families: shapes, attributes and operand counts.

use crate::{ArrayShape, ElementKind, ElementType, Error, Literal, Result, Shape};

/// Returns an [`Error::InvalidArgument`] with the given message unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::Error::invalid_argument(format!($($message)+)));
        }
    };
}
pub(super) use ensure;

/// Builds an array shape; fails if its bytes cannot be addressed.
pub(super) fn array(element_type: ElementType, dims: Vec<usize>) -> Result<Shape> {
    let shape = ArrayShape::new(element_type, dims);
    shape.checked_element_count()?;
    Ok(shape.into())
}

/// Checks that `dims` names dimensions of an array of rank `rank`, each at most once. The string names the attribute in
/// errors.
pub(super) fn distinct(what: &str, dims: &[usize], rank: usize) -> Result<()> {
    let mut seen = std::collections::HashSet::with_capacity(dims.len());
    for &d in dims {
        ensure!(d < rank, "{what} {dims:?} names dimension {d}, but there are only {rank} dimensions");
        ensure!(seen.insert(d), "{what} {dims:?} names dimension {d} twice");
    }
    Ok(())
}

/// Checks that `dims` is in ascending order. The string names the attribute in errors.
pub(super) fn ascending(what: &str, dims: &[usize]) -> Result<()> {
    ensure!(dims.is_sorted(), "{what} {dims:?} must be in ascending order");
    Ok(())
}

/// Checks that two arrays have the same element type. The strings name the arrays in errors.
pub(super) fn same_element_type(a: (&str, &ArrayShape), b: (&str, &ArrayShape)) -> Result<()> {
    ensure!(
        a.1.element_type() == b.1.element_type(),
        "element types must be equal, but {} is {} and {} is {}",
        a.0,
        a.1,
        b.0,
        b.1
    );
    Ok(())
}

/// Checks that an array is a scalar. The string names it in errors.
pub(super) fn scalar(what: &str, shape: &ArrayShape) -> Result<()> {
    ensure!(shape.is_scalar(), "{what} must be a scalar, it is {shape}");
    Ok(())
}

/// Checks that an array has integer elements. The string names it in errors.
pub(super) fn integer(what: &str, shape: &ArrayShape) -> Result<()> {
    ensure!(shape.element_type().is_integer(), "{what} must have integer elements, it is {shape}");
    Ok(())
}

/// Checks that an array has real float elements. The string names it in errors.
pub(super) fn float(what: &str, shape: &ArrayShape) -> Result<()> {
    ensure!(shape.element_type().is_float(), "{what} must have float elements, it is {shape}");
    Ok(())
}

/// Whether a value of type `from` is accepted where type `to` is expected: the type itself, any other float type for a
/// float, or an integer or complex type that is no wider than `to`.
pub(super) fn feeds(from: ElementType, to: ElementType) -> bool {
    if from.kind() != to.kind() {
        return false;
    }
    match from.kind() {
        ElementKind::Pred | ElementKind::Float => true,
        ElementKind::Signed | ElementKind::Unsigned | ElementKind::Complex => from.bit_width() <= to.bit_width(),
    }
}

/// Converts a size computed from shapes. The error states that the named size is negative or too large.
pub(super) fn size(what: impl std::fmt::Display, value: Option<i128>) -> Result<usize> {
    let value =
        value.ok_or_else(|| Error::resource_exhausted(format!("{what} is too large to be a dimension's size")))?;
    ensure!(value >= 0, "{what} would have the negative size {value}");
    usize::try_from(value).map_err(|e| {
        Error::resource_exhausted(format!("{what} would have size {value}, which is too large")).with_source(e)
    })
}

/// Returns the operands of an operation that has exactly `N`.
pub(super) fn operands<const N: usize>(operands: Vec<Literal>) -> Result<[Literal; N]> {
    operands.try_into().map_err(|o: Vec<Literal>| {
        Error::internal(format!("the operation has {} operands, not {N} (arity is verified)", o.len()))
    })
}

/// Returns the internal error for a verified operation that received too few operands.
pub(super) fn missing_operand() -> Error {
    Error::internal("an operand is missing (arity is verified)")
}
