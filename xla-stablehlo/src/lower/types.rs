//! Conversion of types to shapes.

use xla_hlo::entity::EntityId;
use xla_hlo::{ArrayShape, Dynamism, ElementType, Error, Result, Shape};

use crate::ir::{Attribute, Module, Type, TypeId};

/// Returns the HLO element type of an element type.
pub(super) fn element_type(module: &Module, id: TypeId) -> Result<ElementType> {
    match &module.types[id] {
        Type::Element(element) => Ok(*element),
        // Layouts list their dimensions as `index` elements.
        Type::Index => Ok(ElementType::S64),
        Type::Complex(part) => match element_type(module, *part)? {
            ElementType::F32 => Ok(ElementType::C64),
            ElementType::F64 => Ok(ElementType::C128),
            other => Err(Error::unimplemented(format!("complex numbers of {other} are not supported"))),
        },
        _ => Err(unknown(module, id)),
    }
}

/// Returns the shape of a value's type, without layouts.
pub(super) fn shape(module: &Module, id: TypeId) -> Result<Shape> {
    match &module.types[id] {
        Type::Tensor { dims, element, encoding } => {
            let bounds = encoding.map(|encoding| match &module.attributes[encoding] {
                Attribute::TypeExtensions(bounds) => Ok(bounds.clone()),
                _ => Err(Error::unimplemented(format!("the encoding of {} is not supported", module.type_text(id)))),
            });
            let bounds = bounds.transpose()?.unwrap_or_default();
            let mut extents = Vec::with_capacity(dims.len());
            let mut dynamism = Vec::with_capacity(dims.len());
            for (d, extent) in dims.iter().enumerate() {
                let bound = bounds.get(d).and_then(|&bound| usize::try_from(bound).ok());
                let (extent, kind) = match (*extent, bound) {
                    (Some(extent), _) => (usize::try_from(extent).unwrap_or(usize::MAX), Dynamism::Static),
                    (None, Some(bound)) => (bound, Dynamism::Bounded),
                    (None, None) => (0, Dynamism::Unbounded),
                };
                extents.push(extent);
                dynamism.push(kind);
            }
            let array = ArrayShape::new(element_type(module, *element)?, extents).with_dynamism(dynamism);
            array.checked_element_count()?;
            Ok(Shape::Array(array))
        }
        Type::Token => Ok(Shape::Token),
        Type::Buffer { dims, element } => {
            let extents = dims.iter().map(|extent| extent.and_then(|extent| usize::try_from(extent).ok()));
            let extents = extents.collect::<Option<Vec<usize>>>().ok_or_else(|| unknown(module, id))?;
            let array = ArrayShape::new(element_type(module, *element)?, extents);
            array.checked_element_count()?;
            Ok(Shape::Buffer(Box::new(array)))
        }
        Type::Tuple(types) => {
            let elements = types.iter().map(|&ty| shape(module, ty)).collect::<Result<Vec<Shape>>>()?;
            Ok(Shape::Tuple(elements))
        }
        // Except as the operand of `async_done`, a future has the shape of its result.
        Type::Future(types) => {
            Ok(packed_shape(types.iter().map(|&ty| shape(module, ty)).collect::<Result<Vec<Shape>>>()?))
        }
        Type::Element(_) | Type::Complex(_) | Type::Index => Ok(Shape::scalar(element_type(module, id)?)),
        _ => Err(unknown(module, id)),
    }
}

fn unknown(module: &Module, id: TypeId) -> Error {
    let text = module.type_text(id);
    match &module.types[id] {
        Type::Unknown(code) => {
            let version = module.version.map_or(String::new(), |version| format!(" of VHLO {version}"));
            Error::unimplemented(format!("type {code}{version} is unknown here"))
        }
        Type::Text => Error::unimplemented(format!("type {} is stored as text", id.index())),
        _ => Error::unimplemented(format!("type {text} has no counterpart in HLO")),
    }
}

/// Returns the shape of combined values: a tuple unless there is exactly one.
pub(super) fn packed_shape(shapes: Vec<Shape>) -> Shape {
    match <[Shape; 1]>::try_from(shapes) {
        Ok([one]) => one,
        Err(shapes) => Shape::Tuple(shapes),
    }
}

/// Whether a dimension of the shape has neither a size nor a bound.
pub(super) fn is_unbounded(shape: &Shape) -> bool {
    shape.leaves().into_iter().filter_map(|(_, leaf)| leaf.as_array()).any(has_unbounded)
}

fn has_unbounded(array: &ArrayShape) -> bool {
    (0..array.rank()).any(|d| array.dynamism(d) == Dynamism::Unbounded)
}

/// Whether `written` is the array shape `inferred`, but with its bounds as static sizes.
pub(super) fn is_less_dynamic(written: &Shape, inferred: &Shape) -> bool {
    match (written, inferred) {
        (Shape::Array(written), Shape::Array(inferred)) => {
            written.is_static()
                && !inferred.is_static()
                && !has_unbounded(inferred)
                && written.element_type() == inferred.element_type()
                && written.dims() == inferred.dims()
        }
        _ => false,
    }
}

/// Whether a shape equals the declared one, except in unbounded dimensions.
pub(super) fn fits(written: &Shape, shape: &Shape) -> bool {
    match (written, shape) {
        (Shape::Array(written), Shape::Array(shape)) => {
            let same = |d: usize| written.dynamism(d) == Dynamism::Unbounded || written.dims()[d] == shape.dims()[d];
            written.element_type() == shape.element_type()
                && written.rank() == shape.rank()
                && (0..shape.rank()).all(same)
                && !has_unbounded(shape)
        }
        (Shape::Tuple(written), Shape::Tuple(shapes)) => {
            written.len() == shapes.len() && written.iter().zip(shapes).all(|(written, shape)| fits(written, shape))
        }
        (written, shape) => written.compatible(shape),
    }
}

/// Returns the shape of an array after a bitcast to another element type; `None` if the bits are not a whole number of
/// elements.
pub(super) fn bitcast(operand: &ArrayShape, ty: ElementType) -> Option<ArrayShape> {
    let (from, to) = (operand.element_type().bit_width(), ty.bit_width());
    let mut dims = operand.dims().to_vec();
    if from > to && to > 0 {
        dims.push(from / to);
    } else if from < to && from > 0 {
        dims.pop().filter(|&last| last == to / from)?;
    }
    operand.is_static().then(|| ArrayShape::new(ty, dims))
}
