//! Operations of MHLO that StableHLO lacks, in MHLO itself or as custom calls: `mhlo.copy`, `@mhlo.topk`.

use xla_hlo::ops::{AddDependency, Bitcast, Copy, Op, RngGetAndUpdateState, StochasticConvert, TopK};
use xla_hlo::{InstrId, Result};

use super::call::Call;
use super::context::Lowering;

/// Lowers an operation of MHLO.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    let op = match call.name {
        "add_dependency" => Ok(AddDependency.into()),
        "bitcast" => Ok(Bitcast.into()),
        "copy" => Ok(Copy.into()),
        "stochastic_convert" => Ok(StochasticConvert.into()),
        "top_k" | "topk" => top_k(call),
        "xla.rng_get_and_update_state" => rng_state(call),
        _ => return None,
    };
    Some(op.and_then(|op| lowering.add(op, call.shape(), call.operands.clone())))
}

/// Returns a top-k of the largest elements, or of the smallest ones if `largest` is false.
fn top_k(call: &Call<'_>) -> Result<Op> {
    let attributes = call.attributes;
    let largest = attributes.get("largest").map_or(Ok(true), |_| attributes.flag("largest"))?;
    Ok(TopK { k: attributes.index("k")?, largest, is_stable: false }.into())
}

fn rng_state(call: &Call<'_>) -> Result<Op> {
    Ok(RngGetAndUpdateState { delta: call.attributes.int("delta")? }.into())
}
