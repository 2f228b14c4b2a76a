//! Results of dynamic size in programs of static shapes: arrays at their bounds, and an additional result with the
//! sizes.
//!
//! Backends only handle static shapes. A program that returns `(f32[<=3,4], s32[])` returns `((f32[3,4], s32[]),
//! s32[1])` after `pad-dynamic`, and the frontend attribute `xla.dynamic_result` keeps the shape that callers see. In
//! the order of its layout, the array starts with the elements within the sizes, without gaps; zeros follow. The sizes
//! are in the order of the leaves and their dimensions.

use super::{Module, ProgramShape};
use crate::text::parse_shape;
use crate::{ArrayShape, Dynamism, ElementType, Error, Literal, Result, Shape};

/// Frontend attribute of a padded module: shape of the result that callers see.
const ATTRIBUTE: &str = "xla.dynamic_result";

/// Position of the caller's result in the result of a padded module.
pub const RESULT: usize = 0;

/// Position of the sizes in the result of a padded module.
pub const SIZES: usize = 1;

/// Returns the dynamic dimensions of a shape as `(array, dimension)`; arrays are numbered in the order of the leaves.
pub fn dynamic_dimensions(shape: &Shape) -> Vec<(usize, usize)> {
    let arrays = shape.leaves().into_iter().filter_map(|(_, leaf)| leaf.as_array()).enumerate();
    arrays.flat_map(|(leaf, array)| dynamic_dimensions_of(array).map(move |d| (leaf, d))).collect()
}

/// Returns the dynamic dimensions of an array.
pub fn dynamic_dimensions_of(array: &ArrayShape) -> impl Iterator<Item = usize> + '_ {
    (0..array.rank()).filter(|&d| array.dynamism(d) != Dynamism::Static)
}

/// Returns the shape of the sizes that a padded program returns for a result: `s32[n]`.
pub fn sizes_shape(result: &Shape) -> ArrayShape {
    ArrayShape::new(ElementType::S32, [dynamic_dimensions(result).len()]).with_row_major_layout()
}

/// Returns the shape of the result of a padded program, for the result that callers see.
pub fn padded_result(result: &Shape) -> Shape {
    Shape::Tuple(vec![result.at_bounds(), sizes_shape(result).into()])
}

/// Records that a module returns the padded form of `result`.
pub fn mark_padded(module: &mut Module, result: &Shape) {
    let text = result.without_layout().to_string();
    module.attributes_mut().frontend_attributes.insert(ATTRIBUTE.to_string(), text);
}

/// Returns the shape of the result that callers see if the module returns its padded form.
///
/// Fails with [`Error::InvalidArgument`] if the attribute does not fit the entry computation.
pub fn caller_result(module: &Module) -> Result<Option<Shape>> {
    let Some(text) = module.attributes().frontend_attributes.get(ATTRIBUTE) else { return Ok(None) };
    let is = module.entry().result_shape().without_layout();
    let fits = |shape: &Shape| is_bounded(shape) && padded_result(shape).without_layout() == is;
    match parse_shape(text) {
        Ok(shape) if fits(&shape) => Ok(Some(shape.without_layout())),
        _ => Err(Error::invalid_argument(format!(
            "module {}: frontend attribute {ATTRIBUTE}={text:?} does not fit the result {is}; remove the attribute",
            module.name()
        ))),
    }
}

fn is_bounded(shape: &Shape) -> bool {
    let arrays = shape.leaves();
    let mut arrays = arrays.iter().filter_map(|(_, leaf)| leaf.as_array());
    arrays.all(|array| (0..array.rank()).all(|d| array.dynamism(d) != Dynamism::Unbounded))
}

impl Module {
    /// Returns the shapes of the entry's parameters and result as callers see them, in the layouts of
    /// [`Module::entry_layout`]. Results of dynamic size have their dynamic shape, also after `pad-dynamic`.
    pub fn caller_layout(&self) -> ProgramShape {
        let ProgramShape { parameters, result } = self.entry_layout();
        let padded = caller_result(self).ok().flatten();
        let result = match (padded, result.subshape(&[RESULT])) {
            (Some(seen), Some(arrays)) => seen.with_layouts_of(Some(arrays)),
            _ => result,
        };
        ProgramShape { parameters, result }
    }
}

/// Converts a result of the entry computation to the value that callers see, with arrays at their real sizes.
///
/// `result` may be a value of a padded module, or of one with dynamic shapes; the latter is returned unchanged.
pub fn caller_value(module: &Module, result: Literal) -> Result<Literal> {
    let Some(seen) = caller_result(module)? else { return Ok(result) };
    let layout = module.caller_layout().result;
    let mut parts = result.into_elements().into_iter();
    let (Some(value), Some(sizes)) = (parts.next(), parts.next()) else {
        return Err(Error::internal("the padded result has no sizes"));
    };
    let mut sizes = (0..sizes.array_shape().element_count()).map(|i| size(&sizes, i)).collect::<Vec<_>>().into_iter();
    at_sizes(value, &seen.with_layouts_of(Some(&layout)), &mut sizes)
}

/// Returns one of the sizes that a padded program returned.
pub fn size(sizes: &Literal, i: usize) -> usize {
    sizes.get(i).as_i128().and_then(|size| usize::try_from(size).ok()).unwrap_or(0)
}

/// Converts a value in padded form to its real sizes, which are in the order of [`dynamic_dimensions`].
fn at_sizes(value: Literal, shape: &Shape, sizes: &mut dyn Iterator<Item = usize>) -> Result<Literal> {
    match shape {
        Shape::Array(array) if !array.is_static() => value.reflowed(&real_dims(array, sizes), &array.minor_to_major()),
        Shape::Tuple(shapes) => {
            let elements = value.into_elements().into_iter().zip(shapes);
            Ok(Literal::tuple(elements.map(|(element, shape)| at_sizes(element, shape, sizes)).collect::<Result<_>>()?))
        }
        Shape::Array(_) | Shape::Buffer(_) | Shape::Token | Shape::Opaque => Ok(value),
    }
}

/// Returns the dimensions of an array with those sizes of its dynamic dimensions, limited to their bounds.
pub fn real_dims(array: &ArrayShape, sizes: &mut dyn Iterator<Item = usize>) -> Vec<usize> {
    let mut dims = array.dims().to_vec();
    for d in dynamic_dimensions_of(array) {
        dims[d] = sizes.next().unwrap_or(dims[d]).min(dims[d]);
    }
    dims
}

/// Pads the arrays of a value of real sizes and appends the sizes: the leaves of [`padded_result`], for a result of
/// `shapes` with layouts.
pub fn padded_leaves<'a>(
    leaves: Vec<Literal>,
    shapes: impl IntoIterator<Item = &'a ArrayShape>,
) -> Result<Vec<Literal>> {
    let mut padded = Vec::with_capacity(leaves.len() + 1);
    let mut sizes = Vec::new();
    for (leaf, shape) in leaves.into_iter().zip(shapes) {
        if shape.is_static() {
            padded.push(leaf);
            continue;
        }
        let dims = leaf.shape().expect_array()?.dims();
        if dims.len() != shape.rank() || dims.iter().zip(shape.dims()).any(|(size, bound)| size > bound) {
            return Err(Error::internal(format!("the result {} does not fit {shape}", leaf.shape())));
        }
        sizes.extend(dynamic_dimensions_of(shape).map(|d| dims[d] as i32));
        padded.push(leaf.reflowed(shape.dims(), &shape.minor_to_major())?);
    }
    if !sizes.is_empty() {
        let shape = ArrayShape::new(ElementType::S32, [sizes.len()]);
        padded.push(Literal::from_bytes(&shape, sizes.into_iter().flat_map(i32::to_le_bytes).collect())?);
    }
    Ok(padded)
}
