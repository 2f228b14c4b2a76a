//! Operations of CHLO that broadcast their operands to each other first, and constants of another array's shape.

use xla_hlo::ops::{Broadcast, Constant, Reshape};
use xla_hlo::{ArrayShape, Error, InstrId, Result, Shape};

use super::call::Call;
use super::context::Lowering;
use super::{elementwise, special};

/// Lowers an operation whose operands are broadcast.
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
    let result = call.shape();
    let result = result.expect_array()?;
    let operands = call.operands.iter().map(|&operand| broadcast(lowering, call, operand, result));
    let operands = operands.collect::<Result<Vec<_>>>()?;
    let name = call.name.strip_prefix("broadcast_").unwrap_or(call.name);
    let (attributes, results) = (call.attributes, call.results.clone());
    let inner = Call { name, attributes, operands, results, regions: call.regions, op: call.op };
    let value = elementwise::lower(lowering, &inner).or_else(|| special::lower(lowering, &inner));
    value.unwrap_or_else(|| Err(Error::unimplemented(format!("{} is not lowered to HLO yet", call.name))))
}

/// The operand over the dimensions of the result: its last ones, or those that `broadcast_dimensions` names.
fn broadcast(lowering: &mut Lowering<'_>, call: &Call<'_>, x: InstrId, result: &ArrayShape) -> Result<InstrId> {
    let shape = lowering.shape(x);
    let shape = shape.expect_array()?;
    if shape.dims() == result.dims() {
        return Ok(x);
    }
    let rank = shape.rank();
    let named = match call.attributes.get("broadcast_dimensions") {
        // It belongs to the operand of the lower rank.
        Some(_) => Some(call.attributes.indices("broadcast_dimensions")?).filter(|dimensions| dimensions.len() == rank),
        None => None,
    };
    let last = || (result.rank().saturating_sub(rank)..result.rank()).collect();
    let dimensions: Vec<usize> = named.unwrap_or_else(last);
    let wanted = |d: usize| dimensions.get(d).and_then(|&to| result.dims().get(to));
    let fits = |d: usize| shape.dims()[d] == 1 || wanted(d) == Some(&shape.dims()[d]);
    if dimensions.len() != rank || !(0..rank).all(fits) {
        return Err(Error::invalid_argument(format!("{shape} does not broadcast to {result}")));
    }
    let ty = shape.element_type();
    repeat(lowering, x, Shape::array(ty, result.dims().to_vec()), dimensions)
}

/// `x` in that shape, dimension `d` of it along `dimensions[d]`; what is one long there is repeated.
///
/// HLO's broadcast does not repeat: such dimensions are reshaped away first.
pub(super) fn repeat(
    lowering: &mut Lowering<'_>,
    mut x: InstrId,
    result: Shape,
    mut dimensions: Vec<usize>,
) -> Result<InstrId> {
    let (from, to) = (lowering.shape(x), result.expect_array()?);
    let from = from.expect_array()?;
    let repeats = |d: usize| from.dims()[d] == 1 && to.dims()[dimensions[d]] != 1;
    let kept: Vec<usize> = (0..from.rank()).filter(|&d| !repeats(d)).collect();
    if kept.len() < from.rank() {
        let dims: Vec<usize> = kept.iter().map(|&d| from.dims()[d]).collect();
        x = lowering.add(Reshape { inferred_dimension: None }, Shape::array(from.element_type(), dims), [x])?;
        dimensions = kept.iter().map(|&d| dimensions[d]).collect();
    }
    lowering.add(Broadcast { dimensions }, result, [x])
}

fn constant_like(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let literal = call.attributes.number("value")?;
    let scalar = lowering.infer(Constant { literal }, [])?;
    lowering.add(Broadcast { dimensions: Vec::new() }, call.shape(), [scalar])
}
