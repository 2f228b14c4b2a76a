//! Types to shapes.

use xla_hlo::entity::EntityId;
use xla_hlo::{ArrayShape, Dynamism, ElementType, Error, Result, Shape};

use crate::ir::{Attribute, Module, Type, TypeId};

/// The element type of a type of elements.
pub(super) fn element_type(module: &Module, id: TypeId) -> Result<ElementType> {
    match &module.types[id] {
        Type::Element(element) => Ok(*element),
        Type::Complex(part) => match element_type(module, *part)? {
            ElementType::F32 => Ok(ElementType::C64),
            ElementType::F64 => Ok(ElementType::C128),
            other => Err(Error::unimplemented(format!("complex numbers of {other}"))),
        },
        _ => Err(unknown(module, id)),
    }
}

/// The shape of a type of values, without layouts.
pub(super) fn shape(module: &Module, id: TypeId) -> Result<Shape> {
    match &module.types[id] {
        Type::Tensor { dims, element, encoding } => {
            let bounds = encoding.map(|encoding| match &module.attributes[encoding] {
                Attribute::TypeExtensions(bounds) => Ok(bounds.clone()),
                _ => Err(Error::unimplemented(format!("the encoding of {}", module.type_text(id)))),
            });
            let bounds = bounds.transpose()?.unwrap_or_default();
            let mut extents = Vec::with_capacity(dims.len());
            let mut dynamism = Vec::with_capacity(dims.len());
            for (d, extent) in dims.iter().enumerate() {
                let bound = bounds.get(d).and_then(|&bound| usize::try_from(bound).ok());
                let static_extent = extent.map(|extent| usize::try_from(extent).unwrap_or(usize::MAX));
                match (static_extent, bound) {
                    (Some(extent), _) => extents.push(extent),
                    (None, Some(bound)) => extents.push(bound),
                    (None, None) => {
                        let ty = module.type_text(id);
                        return Err(Error::unimplemented(format!("{ty}: a dynamic dimension without a bound")));
                    }
                }
                let is_dynamic = extent.is_none();
                dynamism.push(if is_dynamic { Dynamism::Bounded } else { Dynamism::Static });
            }
            let array = ArrayShape::new(element_type(module, *element)?, extents).with_dynamism(dynamism);
            array.checked_element_count()?;
            Ok(Shape::Array(array))
        }
        Type::Token => Ok(Shape::Token),
        Type::Tuple(types) => {
            let elements = types.iter().map(|&ty| shape(module, ty)).collect::<Result<Vec<Shape>>>()?;
            Ok(Shape::Tuple(elements))
        }
        Type::Element(_) | Type::Complex(_) => Ok(Shape::scalar(element_type(module, id)?)),
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

/// The shape of several values.
pub(super) fn packed_shape(shapes: Vec<Shape>) -> Shape {
    match <[Shape; 1]>::try_from(shapes) {
        Ok([one]) => one,
        Err(shapes) => Shape::Tuple(shapes),
    }
}
