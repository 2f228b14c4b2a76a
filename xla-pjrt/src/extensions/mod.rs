//! Extensions of the API, as one list: what is no part of the table of functions.

mod custom_partitioner;
mod ffi;
mod layouts;
mod memory_descriptions;
mod shardings;

use crate::abi::extensions::*;
use crate::api::{Extension, ExtensionHead};
use crate::border::slot;

/// The first extension of the list.
pub(crate) static FIRST: &ExtensionHead = &LAYOUTS.head;

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
