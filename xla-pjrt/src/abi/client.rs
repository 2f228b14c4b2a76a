//! Argument structures of client functions, with programs and compilation.

use super::errors::NamedValue;
use super::kinds::{Client, Device, Executable, LoadedExecutable, Memory, Topology};
use crate::ffi::{Address, Handle, List, Out, Owned, Pointer, Slots, StoreFunction, Text, args, sized};

args! {
    "PJRT_Client_Create" ClientCreateArgs 88 from 72 {
        16 create_options: List<NamedValue>,
        32 kv_get_callback: StoreFunction,
        40 kv_get_user_arg: Address,
        48 kv_put_callback: StoreFunction,
        56 kv_put_user_arg: Address,
        64 client: Out<Handle<Client>>,
        72 kv_try_get_callback: StoreFunction,
        80 kv_try_get_user_arg: Address,
    }
    "PJRT_Client_Destroy" ClientDestroyArgs 24 {
        16 client: Owned<Client>,
    }
    "PJRT_Client_PlatformName" ClientPlatformNameArgs 40 {
        16 client: Handle<Client>,
        24 platform_name: Out<Text>,
    }
    "PJRT_Client_ProcessIndex" ClientProcessIndexArgs 28 {
        16 client: Handle<Client>,
        24 process_index: Out<i32>,
    }
    "PJRT_Client_PlatformVersion" ClientPlatformVersionArgs 40 {
        16 client: Handle<Client>,
        24 platform_version: Out<Text>,
    }
    "PJRT_Client_TopologyDescription" ClientTopologyArgs 32 {
        16 client: Handle<Client>,
        24 topology: Out<Handle<Topology>>,
    }
    "PJRT_Client_Devices" ClientDevicesArgs 40 {
        16 client: Handle<Client>,
        24 devices: Out<List<Handle<Device>>>,
    }
    "PJRT_Client_AddressableDevices" ClientAddressableDevicesArgs 40 {
        16 client: Handle<Client>,
        24 addressable_devices: Out<List<Handle<Device>>>,
    }
    "PJRT_Client_LookupDevice" ClientLookupDeviceArgs 40 {
        16 client: Handle<Client>,
        24 id: i32,
        32 device: Out<Handle<Device>>,
    }
    "PJRT_Client_LookupAddressableDevice" ClientLookupAddressableDeviceArgs 40 {
        16 client: Handle<Client>,
        24 local_hardware_id: i32,
        32 addressable_device: Out<Handle<Device>>,
    }
    "PJRT_Client_UpdateGlobalProcessInfo" ClientUpdateGlobalProcessInfoArgs 40 {
        16 client: Handle<Client>,
        24 process_infos: List<ProcessInfo>,
    }
    "PJRT_Client_AddressableMemories" ClientAddressableMemoriesArgs 40 {
        16 client: Handle<Client>,
        24 addressable_memories: Out<List<Handle<Memory>>>,
    }
    "PJRT_Program" Program 48 {
        16 code: Address,
        24 code_size: Out<usize>,
        32 format: Out<Text>,
    }
    "PJRT_Client_Compile" ClientCompileArgs 56 {
        16 client: Handle<Client>,
        24 program: Pointer<Program>,
        32 compile_options: Text,
        48 executable: Out<Handle<LoadedExecutable>>,
    }
    "PJRT_Client_Load" ClientLoadArgs 56 {
        16 client: Handle<Client>,
        24 executable: Handle<Executable>,
        32 compile_options: Text,
        48 loaded_executable: Out<Handle<LoadedExecutable>>,
    }
    "PJRT_Client_DefaultDeviceAssignment" ClientDefaultDeviceAssignmentArgs 48 {
        16 client: Handle<Client>,
        24 num_replicas: i32,
        28 num_partitions: i32,
        32 default_assignment_size: usize,
        40 default_assignment: Slots<i32>,
    }
    "PJRT_Client_DmaMap" ClientDmaMapArgs 40 {
        16 client: Handle<Client>,
        24 data: Address,
        32 size: usize,
    }
    "PJRT_Client_DmaUnmap" ClientDmaUnmapArgs 32 {
        16 client: Handle<Client>,
        24 data: Address,
    }
    "PJRT_Compile" CompileArgs 64 {
        16 topology: Handle<Topology>,
        24 program: Pointer<Program>,
        32 compile_options: Text,
        48 client: Handle<Client>,
        56 executable: Out<Handle<Executable>>,
    }
}

sized! {
    "PJRT_ProcessInfo" ProcessInfo 48 {
        0 struct_size: usize,
        8 task_id: i32,
        16 incarnation_id: u64,
        24 state: i32,
        28 error_code: i32,
        32 error_message: Text,
    }
}
