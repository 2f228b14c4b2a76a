//! Argument structures of extensions: layouts, shardings, memory descriptions, custom partitioners, FFI handlers.

use super::kinds::{
    Buffer, Client, DeviceDescription, Executable, ExecuteContext, MemoryDescription, MemoryLayout, Serialized,
    Topology,
};
use crate::ffi::{Address, Counted, Deleter, Handle, List, Many, Out, Owned, Text, args, sized};

args! {
    "PJRT_Layouts_MemoryLayout_Destroy" MemoryLayoutDestroyArgs 24 {
        16 layout: Owned<MemoryLayout>,
    }
    "PJRT_Layouts_MemoryLayout_Serialize" MemoryLayoutSerializeArgs 56 {
        16 layout: Handle<MemoryLayout>,
        24 serialized_bytes: Out<Text>,
        40 serialized_layout: Out<Handle<Serialized>>,
        48 serialized_layout_deleter: Out<Deleter>,
    }
    "PJRT_Layouts_PJRT_Client_GetDefaultLayout" ClientGetDefaultLayoutArgs 56 {
        16 client: Handle<Client>,
        24 element_type: i32,
        32 dims: List<i64>,
        48 layout: Out<Handle<MemoryLayout>>,
    }
    "PJRT_Layouts_PJRT_Buffer_MemoryLayout" BufferMemoryLayoutArgs 32 {
        16 buffer: Handle<Buffer>,
        24 layout: Out<Handle<MemoryLayout>>,
    }
    "PJRT_Layouts_PJRT_Topology_GetDefaultLayout" TopologyGetDefaultLayoutArgs 56 {
        16 topology: Handle<Topology>,
        24 element_type: i32,
        32 dims: List<i64>,
        48 layout: Out<Handle<MemoryLayout>>,
    }
    "PJRT_Layouts_PJRT_Executable_GetOutputLayouts" ExecutableGetOutputLayoutsArgs 40 {
        16 executable: Handle<Executable>,
        24 layouts: Out<Counted<Handle<MemoryLayout>>>,
    }
    "PJRT_Layouts_PJRT_Executable_GetParameterLayouts" ExecutableGetParameterLayoutsArgs 40 {
        16 executable: Handle<Executable>,
        24 layouts: Out<Counted<Handle<MemoryLayout>>>,
    }
    "PJRT_Shardings_PJRT_Executable_ParameterShardings" ExecutableParameterShardingsArgs 48 {
        16 executable: Handle<Executable>,
        24 num_parameters: Out<usize>,
        32 shardings: Out<Many<Many<u8>>>,
        40 sharding_sizes: Out<Many<usize>>,
    }
    "PJRT_Shardings_PJRT_Executable_OutputShardings" ExecutableOutputShardingsArgs 48 {
        16 executable: Handle<Executable>,
        24 num_outputs: Out<usize>,
        32 shardings: Out<Many<Many<u8>>>,
        40 sharding_sizes: Out<Many<usize>>,
    }
    "PJRT_DeviceDescription_MemoryDescriptions" DeviceDescriptionMemoryDescriptionsArgs 48 {
        16 device_description: Handle<DeviceDescription>,
        24 memory_descriptions: Out<List<Handle<MemoryDescription>>>,
        40 default_memory_index: Out<usize>,
    }
    "PJRT_MemoryDescription_Kind" MemoryDescriptionKindArgs 44 {
        16 memory_description: Handle<MemoryDescription>,
        24 kind: Out<Text>,
        40 kind_id: Out<i32>,
    }
    "PJRT_FFI_Type_Register" FfiTypeRegisterArgs 48 {
        16 type_name: Text,
        32 type_id: Out<i64>,
        40 type_info: Address,
    }
    "PJRT_FFI_UserData_Add" FfiUserDataAddArgs 40 {
        16 context: Handle<ExecuteContext>,
        24 type_id: i64,
        32 data: Address,
    }
}

sized! {
    "PJRT_FFI_Register_Handler" FfiRegisterHandlerArgs 52 {
        0 struct_size: usize,
        8 target_name: Text,
        24 handler: Address,
        32 platform_name: Text,
        48 traits: i32,
    }
    "PJRT_Register_Custom_Partitioner" RegisterCustomPartitionerArgs 32 {
        0 struct_size: usize,
        8 name: Text,
        24 callbacks: Address,
    }
    "PJRT_Register_Batch_Partitionable" RegisterBatchPartitionableArgs 24 {
        0 struct_size: usize,
        8 name: Text,
    }
}
