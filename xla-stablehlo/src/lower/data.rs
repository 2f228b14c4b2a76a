//! Constants, iotas, tuples, tokens, optimization barriers, dimension sizes.

use xla_hlo::ops::{AfterAll, Broadcast, Constant, Dynamic, GetTupleElement, Iota, OptBarrier, Tuple};
use xla_hlo::{Dynamism, Error, InstrId, Result, Shape};

use super::attributes::Attributes;
use super::call::Call;
use super::context::Lowering;
use crate::ir::ValueId;

/// Lowers an operation that creates or groups data.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    let add = |lowering: &mut Lowering<'_>, op: Result<xla_hlo::Op>| {
        op.and_then(|op| lowering.add(op, call.shape(), call.operands.clone()))
    };
    let attributes = call.attributes;
    Some(match call.name {
        "constant" => add(lowering, attributes.number("value").map(|literal| Constant { literal }.into())),
        "iota" => attributes.index("iota_dimension").and_then(|dimension| iota(lowering, call.shape(), dimension)),
        "tuple" => add(lowering, Ok(Tuple.into())),
        "get_tuple_element" => add(lowering, attributes.index("index").map(|index| GetTupleElement { index }.into())),
        "create_token" | "after_all" => add(lowering, Ok(AfterAll.into())),
        "optimization_barrier" => barrier(lowering, call),
        "get_dimension_size" => {
            let op = attributes.index("dimension").map(|dimension| Dynamic::GetDimensionSize { dimension }.into());
            add(lowering, op)
        }
        "set_dimension_size" => attributes.index("dimension").and_then(|d| set_dimension_size(lowering, call, d)),
        _ => return None,
    })
}

/// Sets a size. As in XLA's builder, a constant size that equals the bound of a static dimension changes nothing:
/// TensorFlow's top-k sets such sizes.
fn set_dimension_size(lowering: &mut Lowering<'_>, call: &Call<'_>, dimension: usize) -> Result<InstrId> {
    let [x, size] = call.exactly()?;
    let constant = lowering.literal(size).filter(|size| size.array_shape().is_scalar());
    let value = constant.and_then(|size| size.get(0).as_i128());
    let is_whole = [lowering.shape(x), call.shape()].iter().filter_map(Shape::as_array).all(|array| {
        let bound = array.dims().get(dimension).map(|&bound| bound as i128);
        bound.is_some() && bound == value && array.dynamism(dimension) == Dynamism::Static
    });
    if is_whole { Ok(x) } else { lowering.add(Dynamic::SetDimensionSize { dimension }, call.shape(), [x, size]) }
}

/// Records the value of a constant operation.
pub(super) fn constant(lowering: &mut Lowering<'_>, attributes: Attributes<'_>, result: ValueId) -> Result<()> {
    let literal = attributes.number("value")?;
    let shape = lowering.shape_of(result)?;
    if !shape.compatible(literal.shape()) {
        return Err(Error::invalid_argument(format!(
            "the value of the constant has shape {}, not {shape}",
            literal.shape()
        )));
    }
    lowering.set_constant(result, literal);
    Ok(())
}

/// Adds an iota along one dimension, broadcast along the others.
pub(super) fn iota(lowering: &mut Lowering<'_>, shape: Shape, dimension: usize) -> Result<InstrId> {
    let array = shape.expect_array()?;
    match array.dims().get(dimension) {
        Some(&extent) if array.rank() > 1 && array.is_static() => {
            let numbers = lowering.add(Iota { dimension: 0 }, Shape::array(array.element_type(), [extent]), [])?;
            lowering.add(Broadcast { dimensions: vec![dimension] }, shape, [numbers])
        }
        _ => lowering.add(Iota { dimension }, shape, []),
    }
}

fn barrier(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let packed = lowering.packed(call.operands.clone())?;
    lowering.add(OptBarrier, call.shape(), [packed])
}
