//! Shardings in protobuf.

use prost::Message;

use super::messages::OpSharding;
use super::metadata::Payloads;
use super::numbers::{fit, indices};
use super::undecodable;
use crate::{DeviceList, Error, LeafSharding, Result, ShardGroup, Sharding, ShardingKind, SubgroupKind, TiledSharding};

const REPLICATED: i32 = 0;
const MAXIMAL: i32 = 1;
const TUPLE: i32 = 2;
const OTHER: i32 = 3;
const MANUAL: i32 = 4;
const UNKNOWN: i32 = 5;
const UNREDUCED: i32 = 6;

const AS: i32 = 0;
const LIKE: i32 = 1;

/// Encodes the sharding of one array as an `OpSharding`.
pub fn serialize_sharding(sharding: &LeafSharding) -> Result<Vec<u8>> {
    Ok(write(&Sharding::Leaf(sharding.clone()), &mut Payloads::default())?.encode_to_vec())
}

/// Reads an encoded `OpSharding` of one array or of a tuple.
pub fn parse_sharding(bytes: &[u8]) -> Result<Sharding> {
    let proto = OpSharding::decode(bytes).map_err(|error| undecodable("a sharding", error))?;
    read(proto, &Payloads::default())
}

/// Reads a sharding.
pub(super) fn read(proto: OpSharding, payloads: &Payloads) -> Result<Sharding> {
    if proto.r#type != TUPLE {
        return read_leaf(proto, payloads).map(Sharding::Leaf);
    }
    let leaves = proto.tuple_shardings.into_iter().map(|leaf| read_leaf(leaf, payloads));
    leaves.collect::<Result<_>>().map(Sharding::Tuple)
}

fn read_leaf(mut proto: OpSharding, payloads: &Payloads) -> Result<LeafSharding> {
    let group = match (proto.is_shard_group, proto.shard_group_type) {
        (false, _) => None,
        (true, AS) => Some(ShardGroup::As(proto.shard_group_id)),
        (true, LIKE) => Some(ShardGroup::Like(proto.shard_group_id)),
        (true, other) => return Err(unknown("shard_group_type", other)),
    };
    let metadata = std::mem::take(&mut proto.metadata).into_iter().map(|m| payloads.read(m)).collect::<Result<_>>()?;
    let kind = match (&proto.named_sharding, proto.r#type) {
        (Some(named), _) => ShardingKind::Named(super::mesh::read(named, payloads)?),
        (None, REPLICATED) => ShardingKind::Replicated,
        (None, MAXIMAL) => match proto.tile_assignment_devices[..] {
            [device] => ShardingKind::Maximal(device),
            _ => return Err(Error::invalid_argument("a maximal sharding has one device in tile_assignment_devices")),
        },
        (None, OTHER) => ShardingKind::Tiled(read_tiled(proto)?),
        (None, MANUAL) => ShardingKind::Manual,
        (None, UNKNOWN) => ShardingKind::Unknown,
        (None, UNREDUCED) => ShardingKind::Unreduced,
        (None, TUPLE) => return Err(Error::invalid_argument("the leaf of a tuple's sharding is not a tuple")),
        (None, other) => return Err(unknown("type", other)),
    };
    Ok(LeafSharding { kind, group, metadata })
}

fn read_tiled(proto: OpSharding) -> Result<TiledSharding> {
    let devices = if proto.iota_reshape_dims.is_empty() {
        DeviceList::Listed(proto.tile_assignment_devices)
    } else {
        let transpose: Vec<i64> = proto.iota_transpose_perm.into_iter().map(i64::from).collect();
        let transpose = indices("iota_transpose_perm", &transpose)?;
        let rank = proto.iota_reshape_dims.len();
        let mut sorted = transpose.clone();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..transpose.len()) || ![0, rank].contains(&transpose.len()) {
            let message = format!("iota_transpose_perm must name each of {rank} dimensions once");
            return Err(Error::invalid_argument(message));
        }
        // A single dimension has only one order, which the text form omits.
        let transpose = if rank == 1 { Vec::new() } else { transpose };
        DeviceList::Iota { reshape: proto.iota_reshape_dims, transpose }
    };
    let product = |dims: &[i64]| dims.iter().try_fold(1i64, |n, &d| n.checked_mul(d));
    let count = match &devices {
        DeviceList::Listed(devices) => i64::try_from(devices.len()).ok(),
        DeviceList::Iota { reshape, .. } => product(reshape),
    };
    if count.is_none() || product(&proto.tile_assignment_dimensions) != count {
        return Err(Error::invalid_argument("the grid of devices and the list of devices have different sizes"));
    }
    Ok(TiledSharding {
        tile_dims: proto.tile_assignment_dimensions,
        devices,
        replicate_last: proto.replicate_on_last_tile_dim,
        last_tile_dims: proto.last_tile_dims.into_iter().map(subgroup).collect::<Result<_>>()?,
    })
}

fn subgroup(kind: i32) -> Result<SubgroupKind> {
    match kind {
        REPLICATED => Ok(SubgroupKind::Replicated),
        MANUAL => Ok(SubgroupKind::Manual),
        UNREDUCED => Ok(SubgroupKind::Unreduced),
        other => Err(unknown("last_tile_dims", other)),
    }
}

fn unknown(field: &str, number: i32) -> Error {
    Error::invalid_argument(format!("{field} is {number}, which has no meaning here"))
}

/// Writes a sharding.
pub(super) fn write(sharding: &Sharding, payloads: &mut Payloads) -> Result<OpSharding> {
    match sharding {
        Sharding::Leaf(leaf) => write_leaf(leaf, payloads),
        Sharding::Tuple(leaves) => Ok(OpSharding {
            r#type: TUPLE,
            tuple_shardings: leaves.iter().map(|leaf| write_leaf(leaf, payloads)).collect::<Result<_>>()?,
            ..OpSharding::default()
        }),
    }
}

fn write_leaf(leaf: &LeafSharding, payloads: &mut Payloads) -> Result<OpSharding> {
    let mut proto = OpSharding::default();
    match &leaf.kind {
        ShardingKind::Replicated => proto.r#type = REPLICATED,
        ShardingKind::Manual => proto.r#type = MANUAL,
        ShardingKind::Unknown => proto.r#type = UNKNOWN,
        ShardingKind::Unreduced => proto.r#type = UNREDUCED,
        ShardingKind::Maximal(device) => {
            proto.r#type = MAXIMAL;
            proto.tile_assignment_devices = vec![*device];
        }
        ShardingKind::Tiled(tiled) => write_tiled(&mut proto, tiled)?,
        ShardingKind::Named(text) => proto.named_sharding = Some(Box::new(super::mesh::write(text, payloads)?)),
    }
    if let Some(group) = leaf.group {
        proto.is_shard_group = true;
        (proto.shard_group_type, proto.shard_group_id) = match group {
            ShardGroup::As(id) => (AS, id),
            ShardGroup::Like(id) => (LIKE, id),
        };
    }
    proto.metadata = leaf.metadata.iter().map(|m| payloads.write(m)).collect::<Result<_>>()?;
    Ok(proto)
}

fn write_tiled(proto: &mut OpSharding, tiled: &TiledSharding) -> Result<()> {
    proto.r#type = OTHER;
    proto.tile_assignment_dimensions = tiled.tile_dims.clone();
    match &tiled.devices {
        DeviceList::Listed(devices) => proto.tile_assignment_devices = devices.clone(),
        DeviceList::Iota { reshape, transpose } => {
            proto.iota_reshape_dims = reshape.clone();
            let identity: Vec<usize> = (0..reshape.len()).collect();
            let order = if transpose.is_empty() { &identity } else { transpose };
            proto.iota_transpose_perm =
                order.iter().map(|&d| fit("a dimension of a transposition", d)).collect::<Result<_>>()?;
        }
    }
    proto.replicate_on_last_tile_dim = tiled.replicate_last;
    let number = |kind: &SubgroupKind| match kind {
        SubgroupKind::Replicated => REPLICATED,
        SubgroupKind::Manual => MANUAL,
        SubgroupKind::Unreduced => UNREDUCED,
    };
    proto.last_tile_dims = tiled.last_tile_dims.iter().map(number).collect();
    Ok(())
}
