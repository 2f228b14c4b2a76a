//! Argument structures for buffer creation and incremental transfers.

use super::errors::NamedValue;
use super::kinds::{AliasPromise, Buffer, Client, CopyToDeviceStream, Device, Event, Memory, TransferManager};
use crate::ffi::{Address, Flag, Handle, Head, List, Many, Out, Owned, Pointer, Release, Text, args, plain};

args! {
    "PJRT_AsyncHostToDeviceTransferManager_Destroy" TransferManagerDestroyArgs 24 {
        16 transfer_manager: Owned<TransferManager>,
    }
    "PJRT_AsyncHostToDeviceTransferManager_TransferData" TransferManagerTransferDataArgs 72 {
        16 transfer_manager: Handle<TransferManager>,
        24 buffer_index: i32,
        32 data: Address,
        40 offset: i64,
        48 transfer_size: i64,
        56 is_last_transfer: Flag,
        64 done_with_h2d_transfer: Out<Handle<Event>>,
    }
    "PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer" TransferManagerRetrieveBufferArgs 40 {
        16 transfer_manager: Handle<TransferManager>,
        24 buffer_index: i32,
        32 buffer_out: Out<Handle<Buffer>>,
    }
    "PJRT_AsyncHostToDeviceTransferManager_Device" TransferManagerDeviceArgs 32 {
        16 transfer_manager: Handle<TransferManager>,
        24 device_out: Out<Handle<Device>>,
    }
    "PJRT_AsyncHostToDeviceTransferManager_BufferCount" TransferManagerBufferCountArgs 32 {
        16 transfer_manager: Handle<TransferManager>,
        24 buffer_count: Out<usize>,
    }
    "PJRT_AsyncHostToDeviceTransferManager_BufferSize" TransferManagerBufferSizeArgs 40 {
        16 transfer_manager: Handle<TransferManager>,
        24 buffer_index: i32,
        32 buffer_size: Out<usize>,
    }
    "PJRT_AsyncHostToDeviceTransferManager_SetBufferError" TransferManagerSetBufferErrorArgs 48 {
        16 transfer_manager: Handle<TransferManager>,
        24 buffer_index: i32,
        28 error_code: i32,
        32 error_message: Text,
    }
    "PJRT_AsyncHostToDeviceTransferManager_AddMetadata" TransferManagerAddMetadataArgs 40 {
        16 transfer_manager: Handle<TransferManager>,
        24 transfer_metadata: List<NamedValue>,
    }
    "PJRT_Buffer_MemoryLayout" BufferMemoryLayout 76 from 0 {
        16 tiled_head: Head,
        32 numbers: List<i64>,
        48 tile_dims: Many<i64>,
        56 tile_dim_sizes: Many<usize>,
        64 num_tiles: usize,
        72 layout_type: i32,
    }
    "PJRT_AsyncHostToDeviceTransferManager_TransferLiteral" TransferManagerTransferLiteralArgs 80 {
        16 transfer_manager: Handle<TransferManager>,
        24 buffer_index: i32,
        32 data: Address,
        40 shape_dims: List<i64>,
        56 shape_element_type: i32,
        64 shape_layout: Pointer<BufferMemoryLayout>,
        72 done_with_h2d_transfer: Out<Handle<Event>>,
    }
    "PJRT_Client_CreateUninitializedBuffer" ClientCreateUninitializedBufferArgs 80 {
        16 client: Handle<Client>,
        24 shape_dims: List<i64>,
        40 shape_element_type: i32,
        48 shape_layout: Pointer<BufferMemoryLayout>,
        56 device: Handle<Device>,
        64 memory: Handle<Memory>,
        72 buffer: Out<Handle<Buffer>>,
    }
    "PJRT_Client_CreateErrorBuffer" ClientCreateErrorBufferArgs 112 from 96 {
        16 client: Handle<Client>,
        24 error_code: i32,
        32 error_message: Text,
        48 shape_dims: List<i64>,
        64 shape_element_type: i32,
        72 shape_layout: Pointer<BufferMemoryLayout>,
        80 memory: Handle<Memory>,
        88 buffer: Out<Handle<Buffer>>,
        96 payload: List<NamedValue>,
    }
    "PJRT_Client_CreateAliasBuffer" ClientCreateAliasBufferArgs 80 {
        16 client: Handle<Client>,
        24 memory: Handle<Memory>,
        32 shape_dims: List<i64>,
        48 shape_element_type: i32,
        56 shape_layout: Pointer<BufferMemoryLayout>,
        64 alias_buffer: Out<Handle<Buffer>>,
        72 fulfill_alias_buffer_cb: Out<Handle<AliasPromise>>,
    }
    "PJRT_Client_FulfillAliasBuffer" ClientFulfillAliasBufferArgs 64 {
        16 client: Handle<Client>,
        24 buffer: Handle<Buffer>,
        32 status_code: i32,
        40 error_message: Text,
        56 fulfill_alias_buffer_cb: Owned<AliasPromise>,
    }
    "PJRT_Client_BufferFromHostBuffer" ClientBufferFromHostBufferArgs 120 {
        16 client: Handle<Client>,
        24 data: Address,
        32 element_type: i32,
        40 dims: List<i64>,
        56 byte_strides: List<i64>,
        72 host_buffer_semantics: i32,
        80 device: Handle<Device>,
        88 memory: Handle<Memory>,
        96 device_layout: Pointer<BufferMemoryLayout>,
        104 done_with_host_buffer: Out<Handle<Event>>,
        112 buffer: Out<Handle<Buffer>>,
    }
    "PJRT_Client_CreateViewOfDeviceBuffer" ClientCreateViewOfDeviceBufferArgs 112 from 104 {
        16 client: Handle<Client>,
        24 device_buffer_ptr: Address,
        32 dims: List<i64>,
        48 element_type: i32,
        56 layout: Pointer<BufferMemoryLayout>,
        64 device: Handle<Device>,
        72 on_delete_callback: Release,
        80 on_delete_callback_arg: Address,
        88 stream: isize,
        96 buffer: Out<Handle<Buffer>>,
        104 memory: Handle<Memory>,
    }
    "PJRT_ShapeSpec" ShapeSpec 36 {
        16 dims: List<i64>,
        32 element_type: i32,
    }
    "PJRT_Client_CreateBuffersForAsyncHostToDevice" ClientCreateBuffersForAsyncHostToDeviceArgs 72 {
        16 client: Handle<Client>,
        24 shape_specs: List<ShapeSpec>,
        40 device_layouts: List<Pointer<BufferMemoryLayout>>,
        56 memory: Handle<Memory>,
        64 transfer_manager: Out<Handle<TransferManager>>,
    }
    "PJRT_CopyToDeviceStream_Destroy" CopyToDeviceStreamDestroyArgs 24 {
        16 stream: Owned<CopyToDeviceStream>,
    }
    "PJRT_CopyToDeviceStream_AddChunk" CopyToDeviceStreamAddChunkArgs 40 {
        16 stream: Handle<CopyToDeviceStream>,
        24 chunk: Pointer<Chunk>,
        32 transfer_complete: Out<Handle<Event>>,
    }
    "PJRT_CopyToDeviceStream_TotalBytes" CopyToDeviceStreamTotalBytesArgs 32 {
        16 stream: Handle<CopyToDeviceStream>,
        24 total_bytes: Out<i64>,
    }
    "PJRT_CopyToDeviceStream_GranuleSize" CopyToDeviceStreamGranuleSizeArgs 32 {
        16 stream: Handle<CopyToDeviceStream>,
        24 granule_size_in_bytes: Out<i64>,
    }
    "PJRT_CopyToDeviceStream_CurrentBytes" CopyToDeviceStreamCurrentBytesArgs 32 {
        16 stream: Handle<CopyToDeviceStream>,
        24 current_bytes: Out<i64>,
    }
}

plain! {
    "PJRT_Chunk" Chunk 32 {
        0 data: Address,
        8 size: usize,
        16 deleter: Release,
        24 deleter_arg: Address,
    }
}
