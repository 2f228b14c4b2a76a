//! Protobuf messages of compile options, reduced to the fields that this crate uses. Other fields are skipped.

use std::collections::HashMap;

use prost::{Message, Oneof};
use xla_hlo::proto::messages::ShapeProto;

/// `xla.CompileOptionsProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct CompileOptionsProto {
    #[prost(message, repeated, tag = "1")]
    pub argument_layouts: Vec<ShapeProto>,
    #[prost(message, optional, tag = "3")]
    pub executable_build_options: Option<ExecutableBuildOptionsProto>,
    #[prost(bool, tag = "4")]
    pub compile_portable_executable: bool,
    #[prost(map = "string, message", tag = "7")]
    pub env_option_overrides: HashMap<String, OptionOverrideProto>,
}

/// `xla.ExecutableBuildOptionsProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExecutableBuildOptionsProto {
    #[prost(int64, tag = "1")]
    pub device_ordinal: i64,
    #[prost(message, optional, tag = "2")]
    pub result_layout: Option<ShapeProto>,
    #[prost(message, optional, tag = "3")]
    pub debug_options: Option<DebugOptionsProto>,
    #[prost(int64, tag = "4")]
    pub num_replicas: i64,
    #[prost(int64, tag = "5")]
    pub num_partitions: i64,
    #[prost(message, optional, tag = "9")]
    pub device_assignment: Option<DeviceAssignmentProto>,
    #[prost(bool, tag = "10")]
    pub alias_passthrough_params: bool,
    #[prost(bool, repeated, tag = "12")]
    pub allow_spmd_sharding_propagation_to_output: Vec<bool>,
    #[prost(bool, repeated, tag = "18")]
    pub allow_spmd_sharding_propagation_to_parameters: Vec<bool>,
    #[prost(int32, tag = "24")]
    pub optimization_level: i32,
}

/// `xla.DebugOptions`, as the caller read them from the environment variable `XLA_FLAGS`. Other fields are set to their
/// defaults, so a user's choice cannot be distinguished.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct DebugOptionsProto {
    #[prost(string, tag = "109")]
    pub xla_dump_to: String,
}

/// `xla.DeviceAssignmentProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeviceAssignmentProto {
    #[prost(int32, tag = "1")]
    pub replica_count: i32,
    #[prost(int32, tag = "2")]
    pub computation_count: i32,
    #[prost(message, repeated, tag = "3")]
    pub computation_devices: Vec<ComputationDeviceProto>,
}

/// Devices of one partition, by replica.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ComputationDeviceProto {
    #[prost(int64, repeated, tag = "1")]
    pub replica_device_ids: Vec<i64>,
}

/// `xla.OptionOverrideProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OptionOverrideProto {
    #[prost(oneof = "OverrideValue", tags = "1, 2, 3, 4")]
    pub value: Option<OverrideValue>,
}

/// Value of an option that a user sets by name.
#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum OverrideValue {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Flag(bool),
    #[prost(int64, tag = "3")]
    Integer(i64),
    #[prost(double, tag = "4")]
    Real(f64),
}

/// `xla.ExecutableAndOptionsProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExecutableAndOptionsProto {
    #[prost(bytes = "vec", tag = "1")]
    pub serialized_executable: Vec<u8>,
    /// Encoded [`CompileOptionsProto`].
    #[prost(bytes = "vec", tag = "2")]
    pub compile_options: Vec<u8>,
    #[prost(string, tag = "3")]
    pub pjrt_client_name: String,
}

/// `xla.HloModuleProtoWithConfig`, with its parts encoded.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct HloModuleProtoWithConfig {
    #[prost(bytes = "vec", tag = "1")]
    pub hlo_module: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    pub config: Option<HloModuleConfigProto>,
}

/// `xla.HloModuleConfigProto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct HloModuleConfigProto {
    #[prost(message, optional, tag = "1")]
    pub entry_computation_layout: Option<xla_hlo::proto::messages::ProgramShapeProto>,
    #[prost(int64, tag = "4")]
    pub replica_count: i64,
    #[prost(int64, tag = "5")]
    pub num_partitions: i64,
    #[prost(message, optional, tag = "15")]
    pub static_device_assignment: Option<DeviceAssignmentProto>,
    #[prost(bool, tag = "17")]
    pub alias_passthrough_params: bool,
    #[prost(bool, repeated, tag = "27")]
    pub allow_spmd_sharding_propagation_to_output: Vec<bool>,
    #[prost(bool, repeated, tag = "33")]
    pub allow_spmd_sharding_propagation_to_parameters: Vec<bool>,
}
