//! The function table: a slot for each function of the C API, in its order.

use crate::abi::buffer::*;
use crate::abi::client::*;
use crate::abi::device::*;
use crate::abi::errors::*;
use crate::abi::executable::*;
use crate::abi::transfer::*;
use crate::api::Api;
#[cfg(test)]
use crate::ffi::Image;
use crate::ffi::{Slot, slot};
use crate::{
    buffer, client, compile, device, errors, event, executable, execute, extensions, memory, plugin, topology, transfer,
};

/// Number of functions.
const SLOTS: usize = 138;

/// PJRT C API. Opaque in Rust; only C reads it.
pub type PjrtApi = Api<SLOTS>;

macro_rules! table {
    ($($args:ident => $($function:ident)* $(:: $rest:ident)*,)*) => {
        /// Names of the functions, in order.
        #[cfg(test)]
        pub(crate) const NAMES: [&str; SLOTS] = [$(<$args as Image>::NAME),*];
        const TABLE: [Slot; SLOTS] = [$(slot!($args: $($function)* $(:: $rest)*)),*];
    };
}

table! {
    ErrorDestroyArgs => procedure errors::destroy,
    ErrorMessageArgs => procedure errors::message,
    ErrorGetCodeArgs => errors::get_code,
    PluginInitializeArgs => plugin::initialize,
    PluginAttributesArgs => plugin::attributes,
    EventDestroyArgs => event::destroy,
    EventIsReadyArgs => event::is_ready,
    EventErrorArgs => event::error,
    EventAwaitArgs => event::wait,
    EventOnReadyArgs => event::on_ready,
    ClientCreateArgs => client::create,
    ClientDestroyArgs => client::destroy,
    ClientPlatformNameArgs => client::platform_name,
    ClientProcessIndexArgs => client::process_index,
    ClientPlatformVersionArgs => client::platform_version,
    ClientDevicesArgs => client::devices,
    ClientAddressableDevicesArgs => client::addressable_devices,
    ClientLookupDeviceArgs => client::lookup_device,
    ClientLookupAddressableDeviceArgs => client::lookup_addressable_device,
    ClientAddressableMemoriesArgs => client::addressable_memories,
    ClientCompileArgs => compile::compile,
    ClientDefaultDeviceAssignmentArgs => client::default_device_assignment,
    ClientBufferFromHostBufferArgs => buffer::from_host_buffer,
    DeviceDescriptionIdArgs => device::description_id,
    DeviceDescriptionProcessIndexArgs => device::description_process_index,
    DeviceDescriptionAttributesArgs => device::description_attributes,
    DeviceDescriptionKindArgs => device::description_kind,
    DeviceDescriptionDebugStringArgs => device::description_debug_string,
    DeviceDescriptionToStringArgs => device::description_to_string,
    DeviceGetDescriptionArgs => device::description,
    DeviceIsAddressableArgs => device::is_addressable,
    DeviceLocalHardwareIdArgs => device::local_hardware_id,
    DeviceAddressableMemoriesArgs => device::addressable_memories,
    DeviceDefaultMemoryArgs => device::default_memory,
    DeviceMemoryStatsArgs => device::memory_stats,
    MemoryIdArgs => memory::id,
    MemoryKindArgs => memory::kind,
    MemoryDebugStringArgs => memory::debug_string,
    MemoryToStringArgs => memory::to_string,
    MemoryAddressableByDevicesArgs => memory::addressable_by_devices,
    ExecutableDestroyArgs => executable::destroy,
    ExecutableNameArgs => executable::name,
    ExecutableNumReplicasArgs => executable::num_replicas,
    ExecutableNumPartitionsArgs => executable::num_partitions,
    ExecutableNumOutputsArgs => executable::num_outputs,
    ExecutableSizeOfGeneratedCodeInBytesArgs => executable::size_of_generated_code,
    ExecutableGetCostAnalysisArgs => executable::cost_analysis,
    ExecutableOutputMemoryKindsArgs => executable::output_memory_kinds,
    ExecutableOptimizedProgramArgs => executable::optimized_program,
    ExecutableSerializeArgs => executable::serialize,
    LoadedExecutableDestroyArgs => executable::destroy_loaded,
    LoadedExecutableGetExecutableArgs => executable::loaded_executable,
    LoadedExecutableAddressableDevicesArgs => executable::addressable_devices,
    LoadedExecutableDeleteArgs => executable::delete,
    LoadedExecutableIsDeletedArgs => executable::is_deleted,
    LoadedExecutableExecuteArgs => execute::execute,
    ExecutableDeserializeAndLoadArgs => compile::deserialize_and_load,
    LoadedExecutableFingerprintArgs => executable::loaded_fingerprint,
    BufferDestroyArgs => buffer::destroy,
    BufferElementTypeArgs => buffer::element_type,
    BufferDimensionsArgs => buffer::dimensions,
    BufferUnpaddedDimensionsArgs => buffer::unpadded_dimensions,
    BufferDynamicDimensionIndicesArgs => buffer::dynamic_dimension_indices,
    BufferGetMemoryLayoutArgs => buffer::memory_layout,
    BufferOnDeviceSizeInBytesArgs => buffer::on_device_size,
    BufferDeviceArgs => buffer::device,
    BufferMemoryArgs => buffer::memory,
    BufferDeleteArgs => buffer::delete,
    BufferIsDeletedArgs => buffer::is_deleted,
    BufferCopyToDeviceArgs => buffer::to_device,
    BufferToHostBufferArgs => buffer::to_host_buffer,
    BufferIsOnCpuArgs => buffer::is_on_cpu,
    BufferReadyEventArgs => buffer::ready_event,
    BufferUnsafePointerArgs => buffer::unsafe_pointer,
    BufferIncreaseExternalReferenceCountArgs => buffer::add_reference,
    BufferDecreaseExternalReferenceCountArgs => buffer::remove_reference,
    BufferOpaqueDeviceMemoryDataPointerArgs => buffer::data_pointer,
    CopyToDeviceStreamDestroyArgs =>,
    CopyToDeviceStreamAddChunkArgs =>,
    CopyToDeviceStreamTotalBytesArgs =>,
    CopyToDeviceStreamGranuleSizeArgs =>,
    CopyToDeviceStreamCurrentBytesArgs =>,
    TopologyCreateArgs => topology::create,
    TopologyDestroyArgs => topology::destroy,
    TopologyPlatformNameArgs => topology::platform_name,
    TopologyPlatformVersionArgs => topology::platform_version,
    TopologyGetDeviceDescriptionsArgs => topology::device_descriptions,
    TopologySerializeArgs => topology::serialize,
    TopologyAttributesArgs => topology::attributes,
    CompileArgs => compile::compile_for_topology,
    ExecutableOutputElementTypesArgs => executable::output_element_types,
    ExecutableOutputDimensionsArgs => executable::output_dimensions,
    BufferCopyToMemoryArgs => buffer::to_memory,
    ClientCreateViewOfDeviceBufferArgs => buffer::view_of_device_buffer,
    ExecutableFingerprintArgs => executable::fingerprint,
    ClientTopologyArgs => client::topology_description,
    ExecutableGetCompiledMemoryStatsArgs => executable::compiled_memory_stats,
    MemoryKindIdArgs => memory::kind_id,
    ExecuteContextCreateArgs => execute::create_context,
    ExecuteContextDestroyArgs => execute::destroy_context,
    BufferCopyRawToHostArgs => buffer::copy_raw_to_host,
    TransferManagerDestroyArgs => transfer::destroy,
    TransferManagerTransferDataArgs => transfer::transfer_data,
    ClientCreateBuffersForAsyncHostToDeviceArgs => transfer::create,
    TransferManagerRetrieveBufferArgs => transfer::retrieve_buffer,
    TransferManagerDeviceArgs => transfer::device,
    TransferManagerBufferCountArgs => transfer::buffer_count,
    TransferManagerBufferSizeArgs => transfer::buffer_size,
    TransferManagerSetBufferErrorArgs => transfer::set_buffer_error,
    TransferManagerAddMetadataArgs => transfer::add_metadata,
    ClientDmaMapArgs =>,
    ClientDmaUnmapArgs =>,
    ClientCreateUninitializedBufferArgs => buffer::uninitialized,
    ClientUpdateGlobalProcessInfoArgs => client::update_global_process_info,
    TopologyDeserializeArgs => topology::deserialize,
    ClientCreateAliasBufferArgs => buffer::alias,
    ClientFulfillAliasBufferArgs => buffer::fulfill_alias,
    LoadedExecutableGetDeviceAssignmentArgs => executable::device_assignment,
    ClientCreateErrorBufferArgs => buffer::with_error,
    TransferManagerTransferLiteralArgs => transfer::transfer_literal,
    BufferCopyRawToHostFutureArgs => buffer::copy_raw_to_host_future,
    DevicePoisonExecutionArgs =>,
    DeviceCreateAsyncTrackingEventArgs => device::create_async_tracking_event,
    AsyncTrackingEventDestroyArgs => device::destroy_async_tracking_event,
    ExecutableGetCompileOptionsArgs => executable::compile_options,
    BufferDonateWithControlDependencyArgs => buffer::donate_with_control_dependency,
    EventCreateArgs => event::create,
    EventSetArgs => event::set,
    DeviceGetAttributesArgs => device::attributes,
    ClientLoadArgs => compile::load,
    LoadedExecutableAddressableDeviceLogicalIdsArgs => executable::addressable_device_logical_ids,
    BufferBitcastArgs => buffer::bitcast,
    ErrorForEachPayloadArgs => errors::for_each_payload,
    TopologyFingerprintArgs => topology::fingerprint,
    ExecutableParameterMemoryKindsArgs => executable::parameter_memory_kinds,
    DeviceClearMemoryStatsArgs =>,
    TopologyMakeCanonicalShapeForMemorySpaceArgs =>,
    TopologyGetMemorySpaceKindIdsArgs => topology::memory_space_kind_ids,
}

/// C API of this crate.
pub(crate) static API: PjrtApi = Api::new(0, 112, Some(extensions::FIRST), TABLE);

#[cfg(test)]
mod tests {
    #[test]
    fn functions_stand_in_the_order_of_the_api() {
        let listed = include_str!("../tests/data/slots.txt").lines();
        let listed = listed.map(|line| format!("PJRT_{}", line.split_once(' ').expect("a name and a size").0));
        assert_eq!(super::NAMES.to_vec(), listed.collect::<Vec<_>>());
    }
}
