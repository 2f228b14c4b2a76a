//! Lowering of approximate top-k to a sort and a slice, which are exact.

use xla_hlo::ops::{FfiAttributes, Slice, SliceRange, Sort};
use xla_hlo::{BackendConfig, CompId, Error, InstrId, Result};

use super::call::Call;
use super::context::Lowering;

/// Custom call target of approximate top-k. XLA expands it in this way for every device without hardware support.
pub(super) const TOP_K: &str = "ApproxTopK";

/// Lowers [`TOP_K`]: sorts a dimension by the comparator and slices its first elements. The operands are the arrays,
/// followed by an initial value for each. These fill empty bins and are unused, because a sort has no bins.
pub(super) fn top_k(
    lowering: &mut Lowering<'_>,
    call: &Call<'_>,
    computations: &[CompId],
    config: &BackendConfig,
) -> Result<InstrId> {
    let &[computation] = computations else {
        return Err(Error::invalid_argument(format!("{TOP_K} calls one comparator, not {}", computations.len())));
    };
    let count = call.results.len();
    if count == 0 || call.operands.len() != 2 * count {
        let found = call.operands.len();
        return Err(Error::invalid_argument(format!(
            "{TOP_K} with {count} results has {found} operands, not two each"
        )));
    }
    let dimension = FfiAttributes::parse(config.text()?)?.integer("reduction_dim")?;
    let dimension = usize::try_from(dimension)
        .map_err(|_| Error::invalid_argument(format!("the dimension of {TOP_K} is negative: {dimension}")))?;
    let sort = Sort { dimension, is_stable: false, computation };
    let sorted = lowering.infer(sort, &call.operands[..count])?;
    let sorted = lowering.unpacked(sorted, count)?;
    let mut selected = Vec::with_capacity(count);
    for (value, result) in sorted.into_iter().zip(&call.results) {
        let range = |&limit: &usize| SliceRange { start: 0, limit, stride: 1 };
        let ranges = result.expect_array()?.dims().iter().map(range).collect();
        selected.push(lowering.infer(Slice { ranges }, [value])?);
    }
    lowering.packed(selected)
}
