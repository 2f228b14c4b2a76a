//! Type promotion: operands are converted to the wider element type of the function that combines them.

use xla_hlo::ops::Convert;
use xla_hlo::{CompId, ElementType, Error, InstrId, Result, Shape};

use super::context::Lowering;
use super::types;
use crate::ir::{RegionId, ValueId};

/// Converts each operand to the element type of the region's argument for its elements. `argument_of` maps operand
/// numbers to arguments, or to `None` for operands that are not converted.
pub(super) fn promoted(
    lowering: &mut Lowering<'_>,
    operands: &[InstrId],
    region: RegionId,
    argument_of: impl Fn(usize) -> Option<usize>,
) -> Result<Vec<InstrId>> {
    let mut promoted = operands.to_vec();
    for (number, operand) in promoted.iter_mut().enumerate() {
        if let Some(argument) = argument_of(number) {
            let ty = element_type(lowering, region, argument)?;
            *operand = convert(lowering, *operand, ty)?;
        }
    }
    Ok(promoted)
}

/// Returns the element type of a region's argument.
pub(super) fn element_type(lowering: &Lowering<'_>, region: RegionId, argument: usize) -> Result<ElementType> {
    let arguments = arguments(lowering, region);
    let argument = arguments.get(argument).ok_or_else(|| {
        Error::invalid_argument(format!("the region has {} arguments, but no argument {argument}", arguments.len()))
    })?;
    match types::shape(lowering.source, lowering.source.values[*argument].ty)? {
        Shape::Array(array) => Ok(array.element_type()),
        other => Err(Error::invalid_argument(format!("the region combines {other}, which is not an array"))),
    }
}

fn arguments<'s>(lowering: &Lowering<'s>, region: RegionId) -> &'s [ValueId] {
    let source = lowering.source;
    source.regions[region].blocks.first().map_or(&[], |&block| &source.blocks[block].arguments)
}

/// Converts an array to a wider element type of the same kind. Other types stay unchanged, and shape inference reports
/// them.
fn convert(lowering: &mut Lowering<'_>, x: InstrId, to: ElementType) -> Result<InstrId> {
    let shape = lowering.shape(x);
    let array = shape.expect_array()?;
    let from = array.element_type();
    if from == to || from.kind() != to.kind() || from.bit_width() > to.bit_width() {
        return Ok(x);
    }
    let dynamism = (0..array.rank()).map(|d| array.dynamism(d)).collect();
    let shape = xla_hlo::ArrayShape::new(to, array.dims().to_vec()).with_dynamism(dynamism);
    lowering.add(Convert, Shape::Array(shape), [x])
}

/// Lowers a comparison region for elements that were promoted to `ty`.
pub(super) fn comparison(lowering: &mut Lowering<'_>, region: RegionId, ty: ElementType) -> Result<CompId> {
    let own = element_type(lowering, region, 0)?;
    if own == ty {
        return lowering.closed_region("select", region);
    }
    if own.bit_width() >= ty.bit_width() {
        return Err(Error::unimplemented(format!(
            "elements of {own} cannot be combined as {ty}, which may not represent them"
        )));
    }
    lowering.closed_region_on("select", region, |lowering, _| {
        let wide = lowering.parameter(Shape::scalar(ty))?;
        lowering.add(Convert, Shape::scalar(own), [wide])
    })
}
