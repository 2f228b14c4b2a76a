//! CHLO operations with implicit broadcasting, and constants in the shape of another array.

use xla_hlo::ops::Constant;
use xla_hlo::{ArrayShape, Dynamism, Error, InstrId, Result, Shape};

use super::call::Call;
use super::context::Lowering;
use super::dimensions::repeat;
use super::{elementwise, special, types};

/// Lowers an operation whose operands are implicitly broadcast.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    Some(match call.name {
        "constant_like" => constant_like(lowering, call),
        "broadcast_add"
        | "broadcast_and"
        | "broadcast_atan2"
        | "broadcast_compare"
        | "broadcast_complex"
        | "broadcast_divide"
        | "broadcast_maximum"
        | "broadcast_minimum"
        | "broadcast_multiply"
        | "broadcast_next_after"
        | "broadcast_or"
        | "broadcast_polygamma"
        | "broadcast_power"
        | "broadcast_remainder"
        | "broadcast_select"
        | "broadcast_shift_left"
        | "broadcast_shift_right_arithmetic"
        | "broadcast_shift_right_logical"
        | "broadcast_subtract"
        | "broadcast_xor"
        | "broadcast_zeta" => elementwise(lowering, call),
        _ => return None,
    })
}

fn elementwise(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let written = call.shape();
    let result = result(lowering, call, written.expect_array()?)?;
    let operands = call.operands.iter().map(|&operand| broadcast(lowering, call, operand, &result));
    let operands = operands.collect::<Result<Vec<_>>>()?;
    let name = call.name.strip_prefix("broadcast_").unwrap_or(call.name);
    let (attributes, results) = (call.attributes, call.results.clone());
    let inner = Call { name, attributes, operands, results, regions: call.regions, op: call.op, kept_operands: None };
    let value = elementwise::lower(lowering, &inner).or_else(|| special::lower(lowering, &inner));
    value.unwrap_or_else(|| Err(Error::unimplemented(format!("{} is not lowered to HLO yet", call.name))))
}

/// Returns the declared shape of the result. For unbounded dimensions, uses the larger extents of the operands.
fn result(lowering: &mut Lowering<'_>, call: &Call<'_>, written: &ArrayShape) -> Result<ArrayShape> {
    let mut result = written.clone();
    if !types::is_unbounded(&Shape::Array(result.clone())) {
        return Ok(result);
    }
    let mut dims: Vec<Option<usize>> =
        (0..result.rank()).map(|d| (result.dynamism(d) != Dynamism::Unbounded).then(|| result.dims()[d])).collect();
    for &operand in &call.operands {
        let shape = lowering.shape(operand);
        let shape = shape.expect_array()?;
        for (d, to) in dimensions(call, shape.rank(), result.rank())?.into_iter().enumerate().take(shape.rank()) {
            let Some(slot) = dims.get_mut(to) else { continue };
            if shape.is_static() && slot.is_none_or(|known| known == 1) {
                *slot = Some(shape.dims()[d]);
            }
        }
    }
    if let Some(dims) = dims.into_iter().collect::<Option<Vec<usize>>>() {
        result = ArrayShape::new(result.element_type(), dims);
        result.checked_element_count()?;
    }
    Ok(result)
}

/// Returns the dimensions of the result that an operand of this rank maps to: `broadcast_dimensions`, or the trailing
/// ones.
fn dimensions(call: &Call<'_>, rank: usize, result_rank: usize) -> Result<Vec<usize>> {
    let named = match call.attributes.get("broadcast_dimensions") {
        // The attribute applies to the operand of lower rank.
        Some(_) => Some(call.attributes.indices("broadcast_dimensions")?).filter(|dimensions| dimensions.len() == rank),
        None => None,
    };
    Ok(named.unwrap_or_else(|| (result_rank.saturating_sub(rank)..result_rank).collect()))
}

/// Broadcasts an operand to the result's dimensions, along `broadcast_dimensions` or the trailing ones.
fn broadcast(lowering: &mut Lowering<'_>, call: &Call<'_>, x: InstrId, result: &ArrayShape) -> Result<InstrId> {
    let shape = lowering.shape(x);
    let shape = shape.expect_array()?;
    if shape.dims() == result.dims() {
        return Ok(x);
    }
    let rank = shape.rank();
    let dimensions = dimensions(call, rank, result.rank())?;
    let wanted = |d: usize| dimensions.get(d).and_then(|&to| result.dims().get(to));
    let fits = |d: usize| shape.dims()[d] == 1 || wanted(d) == Some(&shape.dims()[d]);
    if dimensions.len() != rank || !(0..rank).all(fits) {
        return Err(Error::invalid_argument(format!("{shape} does not broadcast to {result}")));
    }
    let ty = shape.element_type();
    repeat(lowering, x, Shape::array(ty, result.dims().to_vec()), dimensions)
}

fn constant_like(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let literal = call.attributes.number("value")?;
    let scalar = lowering.infer(Constant { literal }, [])?;
    repeat(lowering, scalar, call.shape(), Vec::new())
}
