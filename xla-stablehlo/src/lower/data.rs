//! Constants, iotas, tuples, tokens, barriers, sizes.

use xla_hlo::ops::{AfterAll, Constant, Dynamic, GetTupleElement, Iota, OptBarrier, Tuple};
use xla_hlo::{InstrId, Result};

use super::call::Call;
use super::context::Lowering;

/// Lowers an operation that makes data or holds it together.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    let add = |lowering: &mut Lowering<'_>, op: Result<xla_hlo::Op>| {
        op.and_then(|op| lowering.add(op, call.shape(), call.operands.clone()))
    };
    let attributes = call.attributes;
    Some(match call.name {
        "constant" => add(lowering, attributes.literal("value").map(|literal| Constant { literal }.into())),
        "iota" => add(lowering, attributes.index("iota_dimension").map(|dimension| Iota { dimension }.into())),
        // The operand is the result's shape, which its type says where it is static.
        "dynamic_iota" if call.shape().as_array().is_some_and(xla_hlo::ArrayShape::is_static) => {
            attributes.index("iota_dimension").and_then(|dimension| lowering.add(Iota { dimension }, call.shape(), []))
        }
        "tuple" => add(lowering, Ok(Tuple.into())),
        "get_tuple_element" => add(lowering, attributes.index("index").map(|index| GetTupleElement { index }.into())),
        "create_token" | "after_all" => add(lowering, Ok(AfterAll.into())),
        "optimization_barrier" => barrier(lowering, call),
        "get_dimension_size" => {
            let op = attributes.index("dimension").map(|dimension| Dynamic::GetDimensionSize { dimension }.into());
            add(lowering, op)
        }
        "set_dimension_size" => {
            let op = attributes.index("dimension").map(|dimension| Dynamic::SetDimensionSize { dimension }.into());
            add(lowering, op)
        }
        _ => return None,
    })
}

fn barrier(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let packed = lowering.packed(call.operands.clone())?;
    lowering.add(OptBarrier, call.shape(), [packed])
}
