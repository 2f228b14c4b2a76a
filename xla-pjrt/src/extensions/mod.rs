//! Extensions of the API: a linked list of function tables besides the main one.

mod custom_partitioner;
mod ffi;
mod layouts;
mod memory_descriptions;
mod profiler;
mod shardings;

use crate::abi::errors::{ErrorDestroyArgs, ErrorGetCodeArgs, ErrorMessageArgs};
use crate::abi::extensions::*;
use crate::abi::profiler::*;
use crate::api::{Extension, ExtensionHead, ProfilerExtension, ProfilerTable};
use crate::errors;
use crate::ffi::slot;

/// First extension of the list.
pub(crate) static FIRST: &ExtensionHead = &PROFILER.head;

static PROFILER: ProfilerExtension<8> = ProfilerExtension::new(Some(&LAYOUTS.head), &PROFILER_TABLE);

/// The arguments of the error functions have the form of those in the main API; the extensions field is a private
/// pointer.
static PROFILER_TABLE: ProfilerTable<8> = ProfilerTable::new([
    slot!(ErrorDestroyArgs: procedure errors::destroy),
    slot!(ErrorMessageArgs: procedure errors::message),
    slot!(ErrorGetCodeArgs: errors::get_code),
    slot!(ProfilerCreateArgs: profiler::create),
    slot!(ProfilerDestroyArgs: profiler::destroy),
    slot!(ProfilerStartArgs: profiler::start),
    slot!(ProfilerStopArgs: profiler::stop),
    slot!(ProfilerCollectDataArgs: profiler::collect_data),
]);

static LAYOUTS: Extension<7> = Extension::new(
    4,
    Some(&SHARDINGS.head),
    [
        slot!(MemoryLayoutDestroyArgs: layouts::destroy),
        slot!(MemoryLayoutSerializeArgs: layouts::serialize),
        slot!(ClientGetDefaultLayoutArgs: layouts::of_client),
        slot!(BufferMemoryLayoutArgs: layouts::of_buffer),
        slot!(TopologyGetDefaultLayoutArgs: layouts::of_topology),
        slot!(ExecutableGetOutputLayoutsArgs: layouts::of_outputs),
        slot!(ExecutableGetParameterLayoutsArgs: layouts::of_parameters),
    ],
);

static SHARDINGS: Extension<2> = Extension::new(
    19,
    Some(&MEMORY_DESCRIPTIONS.head),
    [
        slot!(ExecutableParameterShardingsArgs: shardings::of_parameters),
        slot!(ExecutableOutputShardingsArgs: shardings::of_outputs),
    ],
);

static MEMORY_DESCRIPTIONS: Extension<2> = Extension::new(
    6,
    Some(&CUSTOM_PARTITIONER.head),
    [
        slot!(DeviceDescriptionMemoryDescriptionsArgs: memory_descriptions::of_device),
        slot!(MemoryDescriptionKindArgs: memory_descriptions::kind),
    ],
);

static CUSTOM_PARTITIONER: Extension<2> = Extension::new(
    2,
    Some(&FFI.head),
    [
        slot!(RegisterCustomPartitionerArgs: custom_partitioner::register),
        slot!(RegisterBatchPartitionableArgs: custom_partitioner::register_batch_partitionable),
    ],
);

static FFI: Extension<3> = Extension::new(
    5,
    None,
    [
        slot!(FfiTypeRegisterArgs: ffi::register_type),
        slot!(FfiUserDataAddArgs: ffi::add_user_data),
        slot!(FfiRegisterHandlerArgs: ffi::register_handler),
    ],
);
