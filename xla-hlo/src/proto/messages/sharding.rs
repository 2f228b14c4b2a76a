//! Messages of shardings.

use prost::Message;

use super::OpMetadata;

/// Sharding of an array or, with `tuple_shardings`, of a tuple's leaves.
#[derive(Clone, PartialEq, Message)]
pub struct OpSharding {
    #[prost(int32, tag = "1")]
    pub r#type: i32,
    #[prost(int64, repeated, tag = "3")]
    pub tile_assignment_dimensions: Vec<i64>,
    #[prost(int64, repeated, tag = "4")]
    pub tile_assignment_devices: Vec<i64>,
    #[prost(message, repeated, tag = "5")]
    pub tuple_shardings: Vec<OpSharding>,
    #[prost(bool, tag = "6")]
    pub replicate_on_last_tile_dim: bool,
    #[prost(message, repeated, tag = "7")]
    pub metadata: Vec<OpMetadata>,
    #[prost(int32, repeated, tag = "8")]
    pub last_tile_dims: Vec<i32>,
    #[prost(int64, repeated, tag = "9")]
    pub iota_reshape_dims: Vec<i64>,
    #[prost(int32, repeated, tag = "10")]
    pub iota_transpose_perm: Vec<i32>,
    #[prost(bool, tag = "11")]
    pub is_shard_group: bool,
    #[prost(int64, tag = "12")]
    pub shard_group_id: i64,
    #[prost(int32, tag = "13")]
    pub shard_group_type: i32,
    #[prost(message, optional, boxed, tag = "14")]
    pub named_sharding: Option<Box<NamedShardingProto>>,
}

/// Sharding by the axes of a mesh.
#[derive(Clone, PartialEq, Message)]
pub struct NamedShardingProto {
    #[prost(message, optional, tag = "2")]
    pub mesh: Option<MeshProto>,
    #[prost(message, repeated, tag = "3")]
    pub dim_shardings: Vec<DimensionShardingProto>,
    #[prost(message, repeated, tag = "4")]
    pub replicated_axes: Vec<AxisRefProto>,
    #[prost(message, repeated, tag = "5")]
    pub unreduced_axes: Vec<AxisRefProto>,
    #[prost(message, repeated, tag = "6")]
    pub metadata: Vec<OpMetadata>,
    #[prost(message, repeated, tag = "7")]
    pub manual_axes: Vec<AxisRefProto>,
    #[prost(int32, tag = "8")]
    pub reduction_op: i32,
}

/// Axes that split one dimension.
#[derive(Clone, PartialEq, Message)]
pub struct DimensionShardingProto {
    #[prost(message, repeated, tag = "1")]
    pub axes: Vec<AxisRefProto>,
    #[prost(bool, tag = "2")]
    pub is_closed: bool,
}

/// Grid of devices with named axes.
#[derive(Clone, PartialEq, Message)]
pub struct MeshProto {
    #[prost(message, repeated, tag = "1")]
    pub axes: Vec<MeshAxisProto>,
    #[prost(int64, repeated, tag = "2")]
    pub device_ids: Vec<i64>,
    #[prost(message, optional, tag = "3")]
    pub iota_transform: Option<IotaTransformProto>,
}

/// Named axis of a mesh.
#[derive(Clone, PartialEq, Message)]
pub struct MeshAxisProto {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(int64, tag = "2")]
    pub size: i64,
}

/// Device ids as a reshaped and transposed iota.
#[derive(Clone, PartialEq, Message)]
pub struct IotaTransformProto {
    #[prost(int64, repeated, tag = "1")]
    pub reshape_dims: Vec<i64>,
    #[prost(int64, repeated, tag = "2")]
    pub transpose_perm: Vec<i64>,
}

/// Axis of a mesh, or a part of one.
#[derive(Clone, PartialEq, Message)]
pub struct AxisRefProto {
    #[prost(int64, tag = "1")]
    pub mesh_axis_index: i64,
    #[prost(message, optional, tag = "2")]
    pub sub_axis_info: Option<SubAxisProto>,
}

/// Part of an axis with `size` devices; `pre_size` is the product of the sizes of the parts before it.
#[derive(Clone, PartialEq, Message)]
pub struct SubAxisProto {
    #[prost(int64, tag = "1")]
    pub pre_size: i64,
    #[prost(int64, tag = "2")]
    pub size: i64,
}
