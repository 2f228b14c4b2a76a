//! Argument structures of executable functions and executions.

use super::client::Program;
use super::errors::NamedValue;
use super::kinds::{Buffer, Client, Device, Event, Executable, ExecuteContext, LoadedExecutable, Serialized};
use crate::ffi::{
    Address, Counted, Deleter, Flag, Handle, List, Many, Out, Owned, Pointer, Slots, Text, args, plain, sized,
};

args! {
    "PJRT_ExecuteContext_Create" ExecuteContextCreateArgs 24 {
        16 context: Out<Handle<ExecuteContext>>,
    }
    "PJRT_ExecuteContext_Destroy" ExecuteContextDestroyArgs 24 {
        16 context: Owned<ExecuteContext>,
    }
    "PJRT_Executable_Destroy" ExecutableDestroyArgs 24 {
        16 executable: Owned<Executable>,
    }
    "PJRT_LoadedExecutable_Destroy" LoadedExecutableDestroyArgs 24 {
        16 executable: Owned<LoadedExecutable>,
    }
    "PJRT_LoadedExecutable_GetExecutable" LoadedExecutableGetExecutableArgs 32 {
        16 loaded_executable: Handle<LoadedExecutable>,
        24 executable: Out<Handle<Executable>>,
    }
    "PJRT_LoadedExecutable_GetDeviceAssignment" LoadedExecutableGetDeviceAssignmentArgs 56 {
        16 executable: Handle<LoadedExecutable>,
        24 serialized_bytes: Out<Text>,
        40 serialized_device_assignment: Out<Handle<Serialized>>,
        48 serialized_device_assignment_deleter: Out<Deleter>,
    }
    "PJRT_Executable_Name" ExecutableNameArgs 40 {
        16 executable: Handle<Executable>,
        24 executable_name: Out<Text>,
    }
    "PJRT_Executable_NumReplicas" ExecutableNumReplicasArgs 32 {
        16 executable: Handle<Executable>,
        24 num_replicas: Out<usize>,
    }
    "PJRT_Executable_NumPartitions" ExecutableNumPartitionsArgs 32 {
        16 executable: Handle<Executable>,
        24 num_partitions: Out<usize>,
    }
    "PJRT_LoadedExecutable_AddressableDevices" LoadedExecutableAddressableDevicesArgs 40 {
        16 executable: Handle<LoadedExecutable>,
        24 addressable_devices: Out<List<Handle<Device>>>,
    }
    "PJRT_LoadedExecutable_AddressableDeviceLogicalIds" LoadedExecutableAddressableDeviceLogicalIdsArgs 40 {
        16 executable: Handle<LoadedExecutable>,
        24 addressable_device_logical_ids: Out<List<LogicalDeviceIds>>,
    }
    "PJRT_Executable_OptimizedProgram" ExecutableOptimizedProgramArgs 32 {
        16 executable: Handle<Executable>,
        24 program: Pointer<Program>,
    }
    "PJRT_LoadedExecutable_Delete" LoadedExecutableDeleteArgs 24 {
        16 executable: Handle<LoadedExecutable>,
    }
    "PJRT_LoadedExecutable_IsDeleted" LoadedExecutableIsDeletedArgs 25 {
        16 executable: Handle<LoadedExecutable>,
        24 is_deleted: Out<Flag>,
    }
    "PJRT_ExecuteOptions" ExecuteOptions 144 from 72 {
        16 send_callbacks: Address,
        24 recv_callbacks: Address,
        32 num_send_ops: usize,
        40 num_recv_ops: usize,
        48 launch_id: i32,
        56 non_donatable_input_indices: List<i64>,
        72 context: Handle<ExecuteContext>,
        80 call_location: Many<u8>,
        88 num_tasks: usize,
        96 task_ids: Many<i32>,
        104 incarnation_ids: Many<i64>,
        112 multi_slice_config: Address,
        120 use_major_to_minor_data_layout_for_callbacks: Flag,
        128 hlo_output_callbacks: Address,
        136 num_hlo_output_callbacks: usize,
    }
    "PJRT_LoadedExecutable_Execute" LoadedExecutableExecuteArgs 80 {
        16 executable: Handle<LoadedExecutable>,
        24 options: Pointer<ExecuteOptions>,
        32 argument_lists: Many<Many<Handle<Buffer>>>,
        40 num_devices: usize,
        48 num_args: usize,
        56 output_lists: Many<Slots<Handle<Buffer>>>,
        64 device_complete_events: Slots<Handle<Event>>,
        72 execute_device: Handle<Device>,
    }
    "PJRT_Executable_NumOutputs" ExecutableNumOutputsArgs 32 {
        16 executable: Handle<Executable>,
        24 num_outputs: Out<usize>,
    }
    "PJRT_Executable_SizeOfGeneratedCodeInBytes" ExecutableSizeOfGeneratedCodeInBytesArgs 32 {
        16 executable: Handle<Executable>,
        24 size_in_bytes: Out<i64>,
    }
    "PJRT_Executable_Fingerprint" ExecutableFingerprintArgs 40 {
        16 executable: Handle<Executable>,
        24 executable_fingerprint: Out<Text>,
    }
    "PJRT_Executable_GetCostAnalysis" ExecutableGetCostAnalysisArgs 40 {
        16 executable: Handle<Executable>,
        24 properties: Out<Counted<NamedValue>>,
    }
    "PJRT_Executable_GetCompiledMemoryStats" ExecutableGetCompiledMemoryStatsArgs 144 from 64 {
        16 executable: Handle<Executable>,
        24 generated_code_size_in_bytes: Out<i64>,
        32 argument_size_in_bytes: Out<i64>,
        40 output_size_in_bytes: Out<i64>,
        48 alias_size_in_bytes: Out<i64>,
        56 temp_size_in_bytes: Out<i64>,
        64 host_generated_code_size_in_bytes: Out<i64>,
        72 host_argument_size_in_bytes: Out<i64>,
        80 host_output_size_in_bytes: Out<i64>,
        88 host_alias_size_in_bytes: Out<i64>,
        96 host_temp_size_in_bytes: Out<i64>,
        104 peak_memory_in_bytes: Out<i64>,
        112 total_size_in_bytes: Out<i64>,
        120 total_allocation_bytes: Out<i64>,
        128 indefinite_allocations: Out<i64>,
        136 peak_unpadded_heap_bytes: Out<i64>,
    }
    "PJRT_Executable_OutputElementTypes" ExecutableOutputElementTypesArgs 40 {
        16 executable: Handle<Executable>,
        24 output_types: Out<List<i32>>,
    }
    "PJRT_Executable_OutputDimensions" ExecutableOutputDimensionsArgs 48 {
        16 executable: Handle<Executable>,
        24 num_outputs: Out<usize>,
        32 dims: Out<Many<i64>>,
        40 dim_sizes: Out<Many<usize>>,
    }
    "PJRT_Executable_ParameterMemoryKinds" ExecutableParameterMemoryKindsArgs 48 {
        16 executable: Handle<Executable>,
        24 num_parameters: Out<usize>,
        32 memory_kinds: Out<Many<Many<u8>>>,
        40 memory_kind_sizes: Out<Many<usize>>,
    }
    "PJRT_Executable_OutputMemoryKinds" ExecutableOutputMemoryKindsArgs 48 {
        16 executable: Handle<Executable>,
        24 num_outputs: Out<usize>,
        32 memory_kinds: Out<Many<Many<u8>>>,
        40 memory_kind_sizes: Out<Many<usize>>,
    }
    "PJRT_Executable_Serialize" ExecutableSerializeArgs 56 {
        16 executable: Handle<Executable>,
        24 serialized_bytes: Out<Text>,
        40 serialized_executable: Out<Handle<Serialized>>,
        48 serialized_executable_deleter: Out<Deleter>,
    }
    "PJRT_Executable_GetCompileOptions" ExecutableGetCompileOptionsArgs 56 {
        16 executable: Handle<Executable>,
        24 serialized_bytes: Out<Text>,
        40 serialized_compile_options: Out<Handle<Serialized>>,
        48 serialized_compile_options_deleter: Out<Deleter>,
    }
    "PJRT_Executable_DeserializeAndLoad" ExecutableDeserializeAndLoadArgs 72 from 48 {
        16 client: Handle<Client>,
        24 serialized_executable: Text,
        40 loaded_executable: Out<Handle<LoadedExecutable>>,
        48 overridden_serialized_compile_options: Text,
        64 load_options: Pointer<LoadOptions>,
    }
    "PJRT_LoadedExecutable_Fingerprint" LoadedExecutableFingerprintArgs 40 {
        16 executable: Handle<LoadedExecutable>,
        24 executable_fingerprint: Out<Text>,
    }
}

sized! {
    "PJRT_LoadOptions" LoadOptions 32 {
        0 struct_size: usize,
        8 computation_origin: List<i32>,
        24 multi_slice_config: Address,
    }
}

plain! {
    "PJRT_LogicalDeviceIds" LogicalDeviceIds 8 {
        0 replica: i32,
        4 partition: i32,
    }
}
