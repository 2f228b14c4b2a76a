//! Collectives in protobuf.

use super::participants::channel_number;
use super::{
    AllGather, AllReduce, Collective, CollectiveDone, CollectivePermute, IotaGroups, MeshGroups, Participants,
    ReplicaGroups,
};
use crate::proto::messages::{
    AxisRefProto, CollectiveDeviceListProto, HloInstructionProto, IotaReplicaGroupListProto,
    MeshAxesReplicaGroupListProto, MeshAxisProto, MeshProto, ReplicaGroup, SourceTarget, SubAxisProto,
};
use crate::proto::numbers::{fit, index, indices, longs};
use crate::proto::{ProtoAttributes, ProtoReader, ProtoWriter};
use crate::sdy::{Mesh, MeshAxis};
use crate::{Error, Opcode, Result, ResultExt};

impl ProtoAttributes for Collective {
    fn read_proto(opcode: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        Ok(match opcode {
            Opcode::AllReduce | Opcode::AllReduceStart => {
                let [computation] = r.called()?;
                let is_start = opcode == Opcode::AllReduceStart;
                Collective::AllReduce(AllReduce { participants: read_participants(r)?, computation, is_start })
            }
            Opcode::AllGather | Opcode::AllGatherStart => {
                let is_start = opcode == Opcode::AllGatherStart;
                let dimension = r.dimension()?;
                Collective::AllGather(AllGather { participants: read_participants(r)?, dimension, is_start })
            }
            Opcode::ReduceScatter => {
                let [computation] = r.called()?;
                let dimension = r.dimension()?;
                Collective::ReduceScatter { participants: read_participants(r)?, dimension, computation }
            }
            Opcode::AllToAll => {
                let dimension = if r.message.dimensions.is_empty() { None } else { Some(r.dimension()?) };
                Collective::AllToAll { participants: read_participants(r)?, dimension }
            }
            Opcode::CollectivePermute | Opcode::CollectivePermuteStart => {
                let is_start = opcode == Opcode::CollectivePermuteStart;
                Collective::CollectivePermute(read_permute(r, is_start)?)
            }
            Opcode::CollectiveBroadcast => {
                let has_dynamic_root = r.message.has_dynamic_root;
                Collective::CollectiveBroadcast { participants: read_participants(r)?, has_dynamic_root }
            }
            Opcode::CollectiveReduce => {
                let [computation] = r.called()?;
                let has_dynamic_root = r.message.has_dynamic_root;
                Collective::CollectiveReduce { participants: read_participants(r)?, has_dynamic_root, computation }
            }
            Opcode::RaggedAllToAll => Collective::RaggedAllToAll(read_participants(r)?),
            Opcode::AllReduceDone => Collective::Done(CollectiveDone::AllReduce),
            Opcode::AllGatherDone => Collective::Done(CollectiveDone::AllGather),
            Opcode::CollectivePermuteDone => Collective::Done(CollectiveDone::CollectivePermute),
            Opcode::ReplicaId => Collective::ReplicaId,
            Opcode::PartitionId => Collective::PartitionId,
            other => return Err(Error::internal(format!("{other} is not a collective"))),
        })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        match self {
            Collective::AllReduce(op) => {
                write_participants(&op.participants, w.message)?;
                w.calls(&[op.computation])
            }
            Collective::AllGather(op) => {
                write_participants(&op.participants, w.message)?;
                w.dimensions(&[op.dimension])
            }
            Collective::ReduceScatter { participants, dimension, computation } => {
                write_participants(participants, w.message)?;
                w.dimensions(&[*dimension])?;
                w.calls(&[*computation])
            }
            Collective::AllToAll { participants, dimension } => {
                write_participants(participants, w.message)?;
                w.dimensions(dimension.as_slice())
            }
            Collective::CollectivePermute(op) => write_permute(op, w),
            Collective::CollectiveBroadcast { participants, has_dynamic_root } => {
                w.message.has_dynamic_root = *has_dynamic_root;
                write_participants(participants, w.message)
            }
            Collective::CollectiveReduce { participants, has_dynamic_root, computation } => {
                w.message.has_dynamic_root = *has_dynamic_root;
                write_participants(participants, w.message)?;
                w.calls(&[*computation])
            }
            Collective::RaggedAllToAll(participants) => write_participants(participants, w.message),
            Collective::Done(_) | Collective::ReplicaId | Collective::PartitionId => Ok(()),
        }
    }
}

/// Splits `dynamic_slice_sizes`, a flat list, into the sizes of each slice; all slices have the rank of operand 0.
fn read_permute(r: &ProtoReader<'_>, is_start: bool) -> Result<CollectivePermute> {
    let pairs = r.message.source_target_pairs.iter().map(|pair| vec![pair.source, pair.target]).collect();
    let sizes = &r.message.dynamic_slice_sizes;
    let rank = r.operands.first().and_then(|shape| shape.as_array()).map_or(sizes.len(), |array| array.rank());
    let slice_sizes = match rank {
        0 => Vec::new(),
        rank if sizes.len().is_multiple_of(rank) => sizes.chunks_exact(rank).map(<[i64]>::to_vec).collect(),
        rank => {
            let message = format!("dynamic_slice_sizes has {} entries, not {rank} for each slice", sizes.len());
            return Err(Error::invalid_argument(message));
        }
    };
    Ok(CollectivePermute { channel_id: r.channel_id(), pairs, slice_sizes, is_start })
}

fn write_permute(op: &CollectivePermute, w: &mut ProtoWriter<'_>) -> Result<()> {
    let pair = |pair: &Vec<i64>| match pair[..] {
        [source, target] => Ok(SourceTarget { source, target }),
        _ => Err(Error::invalid_argument("a source and target pair needs two devices")),
    };
    w.message.channel_id = channel_number(op.channel_id)?;
    w.message.source_target_pairs = op.pairs.iter().map(pair).collect::<Result<_>>()?;
    w.message.dynamic_slice_sizes = op.slice_sizes.concat();
    Ok(())
}

fn read_participants(r: &mut ProtoReader<'_>) -> Result<Participants> {
    Ok(Participants {
        channel_id: r.channel_id(),
        groups: read_groups(&mut r.message)?,
        constrain_layout: r.message.constrain_layout,
        use_global_device_ids: r.message.use_global_device_ids,
    })
}

fn write_participants(participants: &Participants, message: &mut HloInstructionProto) -> Result<()> {
    let Participants { channel_id, groups, constrain_layout, use_global_device_ids } = participants;
    message.channel_id = channel_number(*channel_id)?;
    message.constrain_layout = *constrain_layout;
    message.use_global_device_ids = *use_global_device_ids;
    match groups {
        ReplicaGroups::Listed(groups) => {
            let group = |ids: &Vec<i64>| ReplicaGroup { replica_ids: ids.clone() };
            let replica_groups = groups.iter().map(group).collect();
            message.collective_device_list = Some(CollectiveDeviceListProto { replica_groups });
        }
        ReplicaGroups::Iota(groups) => message.iota_collective_device_list = Some(Box::new(write_iota(groups)?)),
        ReplicaGroups::Mesh(groups) => message.mesh_axes_replica_group_list = Some(Box::new(write_mesh(groups)?)),
    }
    Ok(())
}

/// Reads the groups from one of four fields; XLA has used different fields over time.
fn read_groups(message: &mut HloInstructionProto) -> Result<ReplicaGroups> {
    if let Some(groups) = message.mesh_axes_replica_group_list.take() {
        return read_mesh(&groups).context(|| "mesh_axes_replica_group_list").map(ReplicaGroups::Mesh);
    }
    if let Some(groups) = message.iota_collective_device_list.take() {
        return read_iota(&groups).context(|| "iota_collective_device_list").map(ReplicaGroups::Iota);
    }
    let listed = message.collective_device_list.take().map(|list| list.replica_groups);
    let groups = listed.unwrap_or_else(|| std::mem::take(&mut message.replica_groups));
    Ok(ReplicaGroups::Listed(groups.into_iter().map(|group| group.replica_ids).collect()))
}

fn read_iota(proto: &IotaReplicaGroupListProto) -> Result<IotaGroups> {
    let reshape = indices("iota_reshape_dims", &proto.iota_reshape_dims)?;
    let transpose: Vec<i64> = proto.iota_transpose_perm.iter().map(|&d| d.into()).collect();
    let transpose = indices("iota_transpose_perm", &transpose)?;
    let mut sorted = transpose.clone();
    sorted.sort_unstable();
    if !transpose.is_empty() && !sorted.into_iter().eq(0..reshape.len()) {
        let message = format!("iota_transpose_perm must name each of {} dimensions once", reshape.len());
        return Err(Error::invalid_argument(message));
    }
    let (count, size) = (
        index("num_replica_groups", proto.num_replica_groups)?,
        index("num_devices_per_group", proto.num_devices_per_group)?,
    );
    let devices = reshape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    if devices.is_none() || devices != count.checked_mul(size) {
        return Err(Error::invalid_argument(
            "the product of iota_reshape_dims is not the number of devices in all groups",
        ));
    }
    // A single dimension has only one order, which text omits.
    let transpose = if reshape.len() == 1 { Vec::new() } else { transpose };
    Ok(IotaGroups { count, size, reshape, transpose })
}

fn write_iota(groups: &IotaGroups) -> Result<IotaReplicaGroupListProto> {
    let identity: Vec<usize> = (0..groups.reshape.len()).collect();
    let order = if groups.transpose.is_empty() { &identity } else { &groups.transpose };
    Ok(IotaReplicaGroupListProto {
        num_replica_groups: fit("the number of groups", groups.count)?,
        num_devices_per_group: fit("the size of a group", groups.size)?,
        iota_reshape_dims: longs("the shape of an iota", &groups.reshape)?,
        iota_transpose_perm: order.iter().map(|&d| fit("a transposition", d)).collect::<Result<_>>()?,
    })
}

fn read_mesh(proto: &MeshAxesReplicaGroupListProto) -> Result<MeshGroups> {
    let mesh = proto.mesh.clone().unwrap_or_default();
    if mesh.iota_transform.is_some() {
        return Err(Error::unimplemented("device ids of a mesh as a transposed iota are not implemented yet"));
    }
    let axis = |axis: &AxisRefProto| {
        let named = mesh.axes.get(index("mesh_axis_index", axis.mesh_axis_index)?);
        let named = named.ok_or_else(|| Error::invalid_argument("mesh_axis_index names no axis of the mesh"))?;
        let part = |part: &SubAxisProto| Ok((index("pre_size", part.pre_size)?, index("size", part.size)?));
        Ok(MeshAxis { name: named.name.clone(), part: axis.sub_axis_info.as_ref().map(part).transpose()? })
    };
    let along = proto.axes.iter().map(axis).collect::<Result<_>>()?;
    let axes = mesh.axes.iter().map(|axis| Ok((axis.name.clone(), index("size", axis.size)?)));
    Ok(MeshGroups { mesh: Mesh { axes: axes.collect::<Result<_>>()?, device_ids: mesh.device_ids }, along })
}

fn write_mesh(groups: &MeshGroups) -> Result<MeshAxesReplicaGroupListProto> {
    let mesh_axis = |(name, size): &(String, usize)| {
        Ok(MeshAxisProto { name: name.clone(), size: fit("the size of a mesh's axis", *size)? })
    };
    let axis = |axis: &MeshAxis| {
        let position = groups.mesh.axes.iter().position(|(name, _)| *name == axis.name);
        let position =
            position.ok_or_else(|| Error::invalid_argument("an axis of the groups is not an axis of the mesh"))?;
        let part = |(pre_size, size)| {
            Ok(SubAxisProto { pre_size: fit("a part of an axis", pre_size)?, size: fit("a part of an axis", size)? })
        };
        Ok(AxisRefProto { mesh_axis_index: position as i64, sub_axis_info: axis.part.map(part).transpose()? })
    };
    let axes = groups.mesh.axes.iter().map(mesh_axis).collect::<Result<_>>()?;
    let mesh = MeshProto { axes, device_ids: groups.mesh.device_ids.clone(), iota_transform: None };
    Ok(MeshAxesReplicaGroupListProto { mesh: Some(mesh), axes: groups.along.iter().map(axis).collect::<Result<_>>()? })
}
