//! Argument structures of buffer functions.

use super::kinds::{Buffer, Device, Donation, Event, Memory, RawCopy};
use super::transfer::BufferMemoryLayout;
use crate::ffi::{Address, Flag, FutureCallback, Handle, List, Out, Owned, Pointer, Text, args, sized};

args! {
    "PJRT_Buffer_Destroy" BufferDestroyArgs 24 {
        16 buffer: Owned<Buffer>,
    }
    "PJRT_Buffer_ElementType" BufferElementTypeArgs 28 {
        16 buffer: Handle<Buffer>,
        24 element_type: Out<i32>,
    }
    "PJRT_Buffer_Dimensions" BufferDimensionsArgs 40 {
        16 buffer: Handle<Buffer>,
        24 dims: Out<List<i64>>,
    }
    "PJRT_Buffer_UnpaddedDimensions" BufferUnpaddedDimensionsArgs 40 {
        16 buffer: Handle<Buffer>,
        24 unpadded_dims: Out<List<i64>>,
    }
    "PJRT_Buffer_DynamicDimensionIndices" BufferDynamicDimensionIndicesArgs 40 {
        16 buffer: Handle<Buffer>,
        24 dynamic_dim_indices: Out<List<usize>>,
    }
    "PJRT_Buffer_GetMemoryLayout" BufferGetMemoryLayoutArgs 104 {
        16 buffer: Handle<Buffer>,
        24 layout: Out<BufferMemoryLayout>,
    }
    "PJRT_Buffer_ToHostBuffer" BufferToHostBufferArgs 56 {
        16 src: Handle<Buffer>,
        24 host_layout: Pointer<BufferMemoryLayout>,
        32 dst: Address,
        40 dst_size: Out<usize>,
        48 event: Out<Handle<Event>>,
    }
    "PJRT_Buffer_OnDeviceSizeInBytes" BufferOnDeviceSizeInBytesArgs 32 {
        16 buffer: Handle<Buffer>,
        24 on_device_size_in_bytes: Out<usize>,
    }
    "PJRT_Buffer_Delete" BufferDeleteArgs 24 {
        16 buffer: Handle<Buffer>,
    }
    "PJRT_Buffer_IsDeleted" BufferIsDeletedArgs 25 {
        16 buffer: Handle<Buffer>,
        24 is_deleted: Out<Flag>,
    }
    "PJRT_Buffer_CopyRawToHost" BufferCopyRawToHostArgs 56 {
        16 buffer: Handle<Buffer>,
        24 dst: Address,
        32 offset: i64,
        40 transfer_size: i64,
        48 event: Out<Handle<Event>>,
    }
    "PJRT_Buffer_CopyRawToHostFuture" BufferCopyRawToHostFutureArgs 64 {
        16 buffer: Handle<Buffer>,
        24 offset: i64,
        32 transfer_size: i64,
        40 event: Out<Handle<Event>>,
        48 callback_data: Out<Handle<RawCopy>>,
        56 future_ready_callback: Out<FutureCallback>,
    }
    "PJRT_Buffer_CopyToDevice" BufferCopyToDeviceArgs 40 {
        16 buffer: Handle<Buffer>,
        24 dst_device: Handle<Device>,
        32 dst_buffer: Out<Handle<Buffer>>,
    }
    "PJRT_Buffer_CopyToMemory" BufferCopyToMemoryArgs 40 {
        16 buffer: Handle<Buffer>,
        24 dst_memory: Handle<Memory>,
        32 dst_buffer: Out<Handle<Buffer>>,
    }
    "PJRT_Buffer_Bitcast" BufferBitcastArgs 64 {
        16 buffer: Handle<Buffer>,
        24 element_type: i32,
        32 dims: List<i64>,
        48 device_layout: Pointer<BufferMemoryLayout>,
        56 out_buffer: Out<Handle<Buffer>>,
    }
    "PJRT_Buffer_IsOnCpu" BufferIsOnCpuArgs 25 {
        16 buffer: Handle<Buffer>,
        24 is_on_cpu: Out<Flag>,
    }
    "PJRT_Buffer_Device" BufferDeviceArgs 32 {
        16 buffer: Handle<Buffer>,
        24 device: Out<Handle<Device>>,
    }
    "PJRT_Buffer_Memory" BufferMemoryArgs 32 {
        16 buffer: Handle<Buffer>,
        24 memory: Out<Handle<Memory>>,
    }
    "PJRT_Buffer_ReadyEvent" BufferReadyEventArgs 32 {
        16 buffer: Handle<Buffer>,
        24 event: Out<Handle<Event>>,
    }
    "PJRT_Buffer_UnsafePointer" BufferUnsafePointerArgs 32 {
        16 buffer: Handle<Buffer>,
        24 buffer_pointer: Out<usize>,
    }
    "PJRT_Buffer_IncreaseExternalReferenceCount" BufferIncreaseExternalReferenceCountArgs 24 {
        16 buffer: Handle<Buffer>,
    }
    "PJRT_Buffer_DecreaseExternalReferenceCount" BufferDecreaseExternalReferenceCountArgs 24 {
        16 buffer: Handle<Buffer>,
    }
    "PJRT_Buffer_OpaqueDeviceMemoryDataPointer" BufferOpaqueDeviceMemoryDataPointerArgs 32 {
        16 buffer: Handle<Buffer>,
        24 device_memory_ptr: Out<Address>,
    }
    "PJRT_Buffer_DonateWithControlDependency" BufferDonateWithControlDependencyArgs 48 {
        16 buffer: Handle<Buffer>,
        24 callback_data: Out<Handle<Donation>>,
        32 dependency_ready_callback: Out<FutureCallback>,
        40 out_buffer: Out<Handle<Buffer>>,
    }
}

sized! {
    "PJRT_Buffer_CopyRawToHostFuture_Callback" BufferCopyRawToHostFutureCallbackArgs 48 {
        0 struct_size: usize,
        8 callback_data: Owned<RawCopy>,
        16 error_code: i32,
        24 error_message: Text,
        40 dst: Address,
    }
    "PJRT_Buffer_DonateWithControlDependency_Callback" BufferDonateWithControlDependencyCallbackArgs 40 {
        0 struct_size: usize,
        8 callback_data: Owned<Donation>,
        16 error_code: i32,
        24 error_message: Text,
    }
}
