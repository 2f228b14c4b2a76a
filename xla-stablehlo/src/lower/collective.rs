//! Collectives: communication between the devices of a program.

use xla_hlo::ops::{
    AllGather, AllReduce, Collective, CollectivePermute, Op, Participants, ReplicaGroups, Reshape, Transpose,
};
use xla_hlo::{Error, InstrId, Result, Shape};

use super::call::Call;
use super::context::Lowering;
use super::promotion;
use super::reduction::sum_computation;
use super::sharding;

/// Lowers a collective with one result or a tuple of results.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    let op = match call.name {
        "all_reduce" => all_reduce(lowering, call),
        "all_gather" => all_gather(lowering, call),
        "reduce_scatter" => reduce_scatter(lowering, call),
        "collective_permute" => collective_permute(call),
        "collective_broadcast" => collective_broadcast(lowering, call),
        "collective_reduce" => collective_reduce(lowering, call),
        "cross-replica-sum" => cross_replica_sum(lowering, call),
        "partition_id" => Ok(Collective::PartitionId.into()),
        "replica_id" => Ok(Collective::ReplicaId.into()),
        _ => return None,
    };
    Some(op.and_then(|op| {
        let operands = match *call.regions {
            // A single function combines all operands.
            [body] => promotion::promoted(lowering, &call.operands, body, |operand| combined(call, operand))?,
            _ => call.operands.clone(),
        };
        lowering.add(op, call.shape(), operands)
    }))
}

/// Returns the argument of the reduction function for an operand; `None` for the root operand of a collective.
fn combined(call: &Call<'_>, operand: usize) -> Option<usize> {
    (operand < call.results.len()).then_some(0)
}

/// Lowers a collective that treats each operand separately; returns one instruction per result.
pub(super) fn lower_each(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<Vec<InstrId>>> {
    (call.name == "all_to_all").then(|| all_to_all(lowering, call))
}

/// Returns the channel id; 0 means none.
fn channel(call: &Call<'_>) -> Result<Option<i64>> {
    Ok(Some(call.attributes.int("channel_id")?).filter(|&id| id != 0))
}

fn participants(lowering: &Lowering<'_>, call: &Call<'_>, may_be_global: bool) -> Result<Participants> {
    let use_global_device_ids = may_be_global && call.attributes.flag("use_global_device_ids")?;
    Ok(Participants {
        channel_id: channel(call)?,
        groups: groups(lowering, call)?,
        constrain_layout: false,
        use_global_device_ids,
    })
}

/// Returns the replica groups, listed or as axes of a mesh.
fn groups(lowering: &Lowering<'_>, call: &Call<'_>) -> Result<ReplicaGroups> {
    if let Some(mesh) = sharding::replica_groups(call.attributes, &lowering.meshes, "replica_groups")? {
        return Ok(ReplicaGroups::Mesh(mesh));
    }
    let groups = call.attributes.rows("replica_groups")?;
    // Groups of different sizes are padded with -1.
    let member = |group: Vec<i64>| group.into_iter().filter(|&id| id >= 0).collect::<Vec<i64>>();
    Ok(ReplicaGroups::Listed(groups.into_iter().map(member).filter(|group| !group.is_empty()).collect()))
}

fn all_reduce(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Op> {
    let [body] = call.regions()?;
    let participants = participants(lowering, call, true)?;
    let computation = lowering.closed_region("all_reduce_body", body)?;
    Ok(Collective::AllReduce(AllReduce { participants, computation, is_start: false }).into())
}

fn all_gather(lowering: &Lowering<'_>, call: &Call<'_>) -> Result<Op> {
    let dimension = call.attributes.index("all_gather_dim")?;
    Ok(Collective::AllGather(AllGather {
        participants: participants(lowering, call, true)?,
        dimension,
        is_start: false,
    })
    .into())
}

fn reduce_scatter(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Op> {
    let [body] = call.regions()?;
    let dimension = call.attributes.index("scatter_dimension")?;
    let participants = participants(lowering, call, true)?;
    let computation = lowering.closed_region("reduce_scatter_body", body)?;
    Ok(Collective::ReduceScatter { participants, dimension, computation }.into())
}

/// Lowers an all-to-all, which splits each operand along one dimension and concatenates the parts along another.
///
/// HLO's all-to-all concatenates along the split dimension. If the dimensions differ, a transpose moves the parts
/// afterwards.
fn all_to_all(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Vec<InstrId>> {
    let index = |name| call.attributes.index(name);
    let (split, concat, count) = (index("split_dimension")?, index("concat_dimension")?, index("split_count")?);
    let op = Collective::AllToAll { participants: participants(lowering, call, false)?, dimension: Some(split) };
    let mut results = Vec::with_capacity(call.operands.len());
    for (&operand, shape) in call.operands.iter().zip(&call.results) {
        let exchanged = lowering.infer(op.clone(), [operand])?;
        results.push(if split == concat {
            exchanged
        } else {
            moved(lowering, exchanged, shape, [split, concat], count)?
        });
    }
    Ok(results)
}

/// Moves the `count` parts of dimension `split` to dimension `concat`.
fn moved(
    lowering: &mut Lowering<'_>,
    x: InstrId,
    result: &Shape,
    [split, concat]: [usize; 2],
    count: usize,
) -> Result<InstrId> {
    let shape = lowering.shape(x);
    let shape = shape.expect_array()?;
    let rank = shape.rank();
    let fits = split < rank && concat < rank && count > 0 && shape.dims()[split].is_multiple_of(count);
    if !fits {
        return Err(Error::invalid_argument(format!(
            "{shape} cannot be split into {count} parts along dimension {split}"
        )));
    }
    let mut dims = shape.dims().to_vec();
    dims[split] /= count;
    dims.insert(split, count);
    // Dimension `split` now numbers the parts, and the original dimensions from `split` on have moved by one.
    let now = |d: usize| if d < split { d } else { d + 1 };
    let permutation = (0..rank).flat_map(|d| (d == concat).then_some(split).into_iter().chain([now(d)])).collect();
    let cut = Shape::array(shape.element_type(), dims);
    let cut = lowering.add(Reshape { inferred_dimension: None }, cut, [x])?;
    let transposed = lowering.infer(Transpose { permutation }, [cut])?;
    lowering.add(Reshape { inferred_dimension: None }, result.clone(), [transposed])
}

fn collective_broadcast(lowering: &Lowering<'_>, call: &Call<'_>) -> Result<Op> {
    let has_dynamic_root = has_dynamic_root(call)?;
    Ok(Collective::CollectiveBroadcast { participants: participants(lowering, call, false)?, has_dynamic_root }.into())
}

fn collective_reduce(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Op> {
    let [body] = call.regions()?;
    let (participants, has_dynamic_root) = (participants(lowering, call, true)?, has_dynamic_root(call)?);
    let computation = lowering.closed_region("collective_reduce_body", body)?;
    Ok(Collective::CollectiveReduce { participants, has_dynamic_root, computation }.into())
}

/// Whether the last operand is the root; older forms have no such operand.
fn has_dynamic_root(call: &Call<'_>) -> Result<bool> {
    call.attributes.get("has_dynamic_root").map_or(Ok(false), |_| call.attributes.flag("has_dynamic_root"))
}

/// Lowers MHLO's sum over replicas to an all-reduce.
fn cross_replica_sum(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Op> {
    let [x] = call.exactly()?;
    let ty = lowering.shape(x).expect_array()?.element_type();
    let computation = sum_computation(lowering, ty)?;
    let participants = Participants { groups: groups(lowering, call)?, ..Participants::default() };
    Ok(Collective::AllReduce(AllReduce { participants, computation, is_start: false }).into())
}

fn collective_permute(call: &Call<'_>) -> Result<Op> {
    let pairs = call.attributes.rows("source_target_pairs")?;
    let channel_id = channel(call)?;
    Ok(Collective::CollectivePermute(CollectivePermute { channel_id, pairs, slice_sizes: Vec::new(), is_start: false })
        .into())
}
