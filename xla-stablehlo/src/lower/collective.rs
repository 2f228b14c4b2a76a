//! Collectives: communication between the devices of a program.

use xla_hlo::ops::{AllGather, AllReduce, Collective, CollectivePermute, Op, Participants, ReplicaGroups};
use xla_hlo::{Error, InstrId, Result};

use super::call::Call;
use super::context::Lowering;

/// Lowers a collective.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    let op = match call.name {
        "all_reduce" => all_reduce(lowering, call),
        "all_gather" => all_gather(call),
        "reduce_scatter" => reduce_scatter(lowering, call),
        "all_to_all" => return Some(all_to_all(lowering, call)),
        "collective_permute" => collective_permute(call),
        "collective_broadcast" => participants(call, false)
            .map(|participants| Collective::CollectiveBroadcast { participants, has_dynamic_root: false }.into()),
        "partition_id" => Ok(Collective::PartitionId.into()),
        "replica_id" => Ok(Collective::ReplicaId.into()),
        _ => return None,
    };
    Some(op.and_then(|op| lowering.add(op, call.shape(), call.operands.clone())))
}

/// The channel; 0 is none.
fn channel(call: &Call<'_>) -> Result<Option<i64>> {
    Ok(Some(call.attributes.int("channel_id")?).filter(|&id| id != 0))
}

fn participants(call: &Call<'_>, may_be_global: bool) -> Result<Participants> {
    let use_global_device_ids = may_be_global && call.attributes.flag("use_global_device_ids")?;
    let groups = call.attributes.rows("replica_groups")?;
    // Groups of different sizes are filled up with -1.
    let member = |group: Vec<i64>| group.into_iter().filter(|&id| id >= 0).collect::<Vec<i64>>();
    let groups = groups.into_iter().map(member).filter(|group| !group.is_empty()).collect();
    let channel_id = channel(call)?;
    let groups = ReplicaGroups::Listed(groups);
    Ok(Participants { channel_id, groups, constrain_layout: false, use_global_device_ids })
}

fn all_reduce(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Op> {
    let [body] = call.regions()?;
    let participants = participants(call, true)?;
    let computation = lowering.closed_region("all_reduce_body", body)?;
    Ok(Collective::AllReduce(AllReduce { participants, computation, is_start: false }).into())
}

fn all_gather(call: &Call<'_>) -> Result<Op> {
    let dimension = call.attributes.index("all_gather_dim")?;
    Ok(Collective::AllGather(AllGather { participants: participants(call, true)?, dimension, is_start: false }).into())
}

fn reduce_scatter(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Op> {
    let [body] = call.regions()?;
    let dimension = call.attributes.index("scatter_dimension")?;
    let participants = participants(call, true)?;
    let computation = lowering.closed_region("reduce_scatter_body", body)?;
    Ok(Collective::ReduceScatter { participants, dimension, computation }.into())
}

/// One operand that is cut along a dimension and put together along the same one; other forms are refused.
fn all_to_all(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let (split, concat) = (call.attributes.index("split_dimension")?, call.attributes.index("concat_dimension")?);
    if split != concat || call.operands.len() != 1 {
        return Err(Error::unimplemented("an all_to_all between different dimensions, or of several operands"));
    }
    let participants = participants(call, false)?;
    let op = Collective::AllToAll { participants, dimension: Some(split) };
    lowering.add(op, call.shape(), call.operands.clone())
}

fn collective_permute(call: &Call<'_>) -> Result<Op> {
    let pairs = call.attributes.rows("source_target_pairs")?;
    let channel_id = channel(call)?;
    Ok(Collective::CollectivePermute(CollectivePermute { channel_id, pairs, slice_sizes: Vec::new(), is_start: false })
        .into())
}
