//! Argument structures of device, memory and topology functions.

use super::errors::NamedValue;
use super::kinds::{AsyncTrackingEvent, Attributes, Device, DeviceDescription, Memory, Serialized, Topology};
use super::transfer::BufferMemoryLayout;
use crate::ffi::{Counted, Deleter, Flag, Handle, List, Out, Owned, Pointer, Text, args};

args! {
    "PJRT_DeviceDescription_Id" DeviceDescriptionIdArgs 28 {
        16 device_description: Handle<DeviceDescription>,
        24 id: Out<i32>,
    }
    "PJRT_DeviceDescription_ProcessIndex" DeviceDescriptionProcessIndexArgs 28 {
        16 device_description: Handle<DeviceDescription>,
        24 process_index: Out<i32>,
    }
    "PJRT_DeviceDescription_Attributes" DeviceDescriptionAttributesArgs 40 {
        16 device_description: Handle<DeviceDescription>,
        24 attributes: Out<Counted<NamedValue>>,
    }
    "PJRT_DeviceDescription_Kind" DeviceDescriptionKindArgs 40 {
        16 device_description: Handle<DeviceDescription>,
        24 device_kind: Out<Text>,
    }
    "PJRT_DeviceDescription_DebugString" DeviceDescriptionDebugStringArgs 40 {
        16 device_description: Handle<DeviceDescription>,
        24 debug_string: Out<Text>,
    }
    "PJRT_DeviceDescription_ToString" DeviceDescriptionToStringArgs 40 {
        16 device_description: Handle<DeviceDescription>,
        24 to_string: Out<Text>,
    }
    "PJRT_Device_GetDescription" DeviceGetDescriptionArgs 32 {
        16 device: Handle<Device>,
        24 device_description: Out<Handle<DeviceDescription>>,
    }
    "PJRT_Device_IsAddressable" DeviceIsAddressableArgs 25 {
        16 device: Handle<Device>,
        24 is_addressable: Out<Flag>,
    }
    "PJRT_Device_LocalHardwareId" DeviceLocalHardwareIdArgs 28 {
        16 device: Handle<Device>,
        24 local_hardware_id: Out<i32>,
    }
    "PJRT_Device_AddressableMemories" DeviceAddressableMemoriesArgs 40 {
        16 device: Handle<Device>,
        24 memories: Out<List<Handle<Memory>>>,
    }
    "PJRT_Device_DefaultMemory" DeviceDefaultMemoryArgs 32 {
        16 device: Handle<Device>,
        24 memory: Out<Handle<Memory>>,
    }
    "PJRT_Device_MemoryStats" DeviceMemoryStatsArgs 201 from 185 {
        16 device: Handle<Device>,
        24 bytes_in_use: Out<i64>,
        32 peak_bytes_in_use: Out<i64>,
        40 peak_bytes_in_use_is_set: Out<Flag>,
        48 num_allocs: Out<i64>,
        56 num_allocs_is_set: Out<Flag>,
        64 largest_alloc_size: Out<i64>,
        72 largest_alloc_size_is_set: Out<Flag>,
        80 bytes_limit: Out<i64>,
        88 bytes_limit_is_set: Out<Flag>,
        96 bytes_reserved: Out<i64>,
        104 bytes_reserved_is_set: Out<Flag>,
        112 peak_bytes_reserved: Out<i64>,
        120 peak_bytes_reserved_is_set: Out<Flag>,
        128 bytes_reservable_limit: Out<i64>,
        136 bytes_reservable_limit_is_set: Out<Flag>,
        144 largest_free_block_bytes: Out<i64>,
        152 largest_free_block_bytes_is_set: Out<Flag>,
        160 pool_bytes: Out<i64>,
        168 pool_bytes_is_set: Out<Flag>,
        176 peak_pool_bytes: Out<i64>,
        184 peak_pool_bytes_is_set: Out<Flag>,
        192 peak_allocated_bytes: Out<i64>,
        200 peak_allocated_bytes_is_set: Out<Flag>,
    }
    "PJRT_Device_ClearMemoryStats" DeviceClearMemoryStatsArgs 24 {
        16 device: Handle<Device>,
    }
    "PJRT_Device_PoisonExecution" DevicePoisonExecutionArgs 72 from 56 {
        16 device: Handle<Device>,
        24 launch_id: i32,
        28 error_code: i32,
        32 error_message: Text,
        48 poisoned: Out<Flag>,
        56 payload: List<NamedValue>,
    }
    "PJRT_Device_GetAttributes" DeviceGetAttributesArgs 56 {
        16 device: Handle<Device>,
        24 attributes: Out<List<NamedValue>>,
        40 device_attributes: Out<Handle<Attributes>>,
        48 attributes_deleter: Out<Deleter>,
    }
    "PJRT_Device_CreateAsyncTrackingEvent" DeviceCreateAsyncTrackingEventArgs 48 {
        16 device: Handle<Device>,
        24 description: Text,
        40 event: Out<Handle<AsyncTrackingEvent>>,
    }
    "PJRT_AsyncTrackingEvent_Destroy" AsyncTrackingEventDestroyArgs 24 {
        16 event: Owned<AsyncTrackingEvent>,
    }
    "PJRT_Memory_Id" MemoryIdArgs 28 {
        16 memory: Handle<Memory>,
        24 id: Out<i32>,
    }
    "PJRT_Memory_Kind" MemoryKindArgs 40 {
        16 memory: Handle<Memory>,
        24 kind: Out<Text>,
    }
    "PJRT_Memory_Kind_Id" MemoryKindIdArgs 28 {
        16 memory: Handle<Memory>,
        24 kind_id: Out<i32>,
    }
    "PJRT_Memory_DebugString" MemoryDebugStringArgs 40 {
        16 memory: Handle<Memory>,
        24 debug_string: Out<Text>,
    }
    "PJRT_Memory_ToString" MemoryToStringArgs 40 {
        16 memory: Handle<Memory>,
        24 to_string: Out<Text>,
    }
    "PJRT_Memory_AddressableByDevices" MemoryAddressableByDevicesArgs 40 {
        16 memory: Handle<Memory>,
        24 devices: Out<List<Handle<Device>>>,
    }
    "PJRT_TopologyDescription_Create" TopologyCreateArgs 56 {
        16 topology_name: Text,
        32 create_options: List<NamedValue>,
        48 topology: Out<Handle<Topology>>,
    }
    "PJRT_TopologyDescription_Destroy" TopologyDestroyArgs 24 {
        16 topology: Owned<Topology>,
    }
    "PJRT_TopologyDescription_PlatformVersion" TopologyPlatformVersionArgs 40 {
        16 topology: Handle<Topology>,
        24 platform_version: Out<Text>,
    }
    "PJRT_TopologyDescription_PlatformName" TopologyPlatformNameArgs 40 {
        16 topology: Handle<Topology>,
        24 platform_name: Out<Text>,
    }
    "PJRT_TopologyDescription_GetDeviceDescriptions" TopologyGetDeviceDescriptionsArgs 40 {
        16 topology: Handle<Topology>,
        24 descriptions: Out<List<Handle<DeviceDescription>>>,
    }
    "PJRT_TopologyDescription_Serialize" TopologySerializeArgs 56 {
        16 topology: Handle<Topology>,
        24 serialized_bytes: Out<Text>,
        40 serialized_topology: Out<Handle<Serialized>>,
        48 serialized_topology_deleter: Out<Deleter>,
    }
    "PJRT_TopologyDescription_Deserialize" TopologyDeserializeArgs 40 {
        16 serialized_topology: Text,
        32 topology: Out<Handle<Topology>>,
    }
    "PJRT_TopologyDescription_Attributes" TopologyAttributesArgs 40 {
        16 topology: Handle<Topology>,
        24 attributes: Out<List<NamedValue>>,
    }
    "PJRT_TopologyDescription_Fingerprint" TopologyFingerprintArgs 32 {
        16 topology: Handle<Topology>,
        24 fingerprint: Out<u64>,
    }
    "PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace" TopologyMakeCanonicalShapeForMemorySpaceArgs 88 {
        16 topology: Handle<Topology>,
        24 memory_space_kind_id: i32,
        32 dims: List<i64>,
        48 element_type: i32,
        56 layout: Pointer<BufferMemoryLayout>,
        64 serialized_shape: Out<Text>,
        80 serialized_shape_deleter: Out<Deleter>,
    }
    "PJRT_TopologyDescription_GetMemorySpaceKindIds" TopologyGetMemorySpaceKindIdsArgs 40 {
        16 topology: Handle<Topology>,
        24 memory_space_kind_ids: Out<List<i32>>,
    }
}
