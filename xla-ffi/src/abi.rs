//! Structures of the XLA FFI C API, version 0.5, with their sizes and offsets.

use std::ffi::{c_char, c_void};

/// Declares structures with the offsets of their fields, and the size up to the end of the last field, which callers
/// state.
macro_rules! structures {
    ($($name:literal $ty:ident $size:literal { $($offset:literal $field:ident: $t:ty,)* })*) => {$(
        #[doc = concat!("`", $name, "`: ", $size, " bytes.")]
        #[repr(C)]
        #[derive(Clone, Copy)]
        #[allow(dead_code, reason = "fields are there for the layout, whether they are read or not")]
        pub(crate) struct $ty { $(pub $field: $t,)* }

        impl $ty {
            /// Size in bytes up to the end of the last field.
            #[allow(dead_code, reason = "structures inside of others need none")]
            pub const SIZE: usize = $size;
        }

        const _: () = {
            $(assert!(std::mem::offset_of!($ty, $field) == $offset);)*
            let ends = [0, $($offset + size_of::<$t>()),*];
            assert!(ends[ends.len() - 1] == $size);
        };
    )*};
}

/// Common first fields of most structures.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Head {
    pub struct_size: usize,
    pub extensions: *const Extension,
}

impl Head {
    pub const fn new(struct_size: usize) -> Head {
        Head { struct_size, extensions: std::ptr::null() }
    }
}

/// Handler: a C function.
pub(crate) type Handler = unsafe extern "C" fn(*mut CallFrame) -> *mut c_void;

structures! {
    "XLA_FFI_Extension_Base" Extension 24 {
        0 struct_size: usize,
        8 number: i32,
        16 next: *const Extension,
    }
    "XLA_FFI_Api_Version" ApiVersion 24 {
        0 head: Head,
        16 major: i32,
        20 minor: i32,
    }
    "XLA_FFI_Error_Create_Args" ErrorCreate 28 {
        0 head: Head,
        16 message: *const c_char,
        24 code: i32,
    }
    "XLA_FFI_Error_GetDetails_Args" ErrorGetDetails 36 {
        0 head: Head,
        16 error: *mut c_void,
        24 message: *const c_char,
        32 code: i32,
    }
    "XLA_FFI_Error_Destroy_Args" ErrorDestroy 24 {
        0 head: Head,
        16 error: *mut c_void,
    }
    "XLA_FFI_Buffer" Buffer 48 {
        0 head: Head,
        16 dtype: i32,
        24 data: *mut u8,
        32 rank: i64,
        40 dims: *const i64,
    }
    "XLA_FFI_ByteSpan" ByteSpan 16 {
        0 start: *const u8,
        8 len: usize,
    }
    "XLA_FFI_Scalar" ScalarValue 16 {
        0 dtype: i32,
        8 value: *const u8,
    }
    "XLA_FFI_Array" ArrayValue 24 {
        0 dtype: i32,
        8 len: usize,
        16 data: *const u8,
    }
    "XLA_FFI_TypeInfo" TypeInfo 24 {
        0 head: Head,
        16 deleter: Option<unsafe extern "C" fn(*mut c_void)>,
    }
    "XLA_FFI_Future_Create_Args" FutureCreate 24 {
        0 head: Head,
        16 future: *mut c_void,
    }
    "XLA_FFI_Future_SetAvailable_Args" FutureSetAvailable 24 {
        0 head: Head,
        16 future: *mut c_void,
    }
    "XLA_FFI_Future_SetError_Args" FutureSetError 32 {
        0 head: Head,
        16 future: *mut c_void,
        24 error: *mut c_void,
    }
    "XLA_FFI_Args, XLA_FFI_Rets" Buffers 40 {
        0 head: Head,
        16 len: i64,
        24 types: *const i32,
        32 values: *const *const Buffer,
    }
    "XLA_FFI_Attrs" Attributes 48 {
        0 head: Head,
        16 len: i64,
        24 types: *const i32,
        32 names: *const *const ByteSpan,
        40 values: *const *const c_void,
    }
    "XLA_FFI_CallFrame" CallFrame 176 {
        0 head: Head,
        16 api: *const c_void,
        24 context: *const c_void,
        32 stage: i32,
        40 args: Buffers,
        80 rets: Buffers,
        120 attrs: Attributes,
        168 future: *mut c_void,
    }
    "XLA_FFI_Handler_Bundle" Bundle 32 {
        0 instantiate: Option<Handler>,
        8 prepare: Option<Handler>,
        16 initialize: Option<Handler>,
        24 execute: Option<Handler>,
    }
    // From version 0.4 on, the bundle has a fifth function for recorded commands, which no device here supports; the
    // traits follow it.
    "XLA_FFI_Handler_Register_Args" HandlerRegister 84 {
        0 head: Head,
        16 name: ByteSpan,
        32 platform: ByteSpan,
        48 bundle: Bundle,
        80 traits: u32,
    }
    "XLA_FFI_InvokeContext_FindExtension_Args" ExtensionFind 40 {
        0 head: Head,
        16 context: *const c_void,
        24 number: i64,
        32 extension: *const c_void,
    }
    "XLA_FFI_CustomOptions_Get_Args" OptionsGet 32 {
        0 head: Head,
        16 context: *const c_void,
        24 options: *const Attributes,
    }
    "XLA_FFI_Type_Register_Args" TypeRegister 48 {
        0 head: Head,
        16 name: ByteSpan,
        32 type_id: *mut i64,
        40 type_info: *const TypeInfo,
    }
    "XLA_FFI_InvokeContext_Get_Args" ContextGet 40 {
        0 head: Head,
        16 context: *const c_void,
        24 type_id: *const i64,
        32 data: *mut c_void,
    }
    "XLA_FFI_State_Set_Args, XLA_FFI_State_Get_Args" StateAccess 48 {
        0 head: Head,
        16 context: *const c_void,
        24 stage: i32,
        32 type_id: *const i64,
        40 state: *mut c_void,
    }
    "XLA_FFI_Stream_Get_Args" StreamGet 32 {
        0 head: Head,
        16 context: *const c_void,
        24 stream: *mut c_void,
    }
    "XLA_FFI_DeviceMemory_Allocate_Args" MemoryAllocate 48 {
        0 head: Head,
        16 context: *const c_void,
        24 size: usize,
        32 alignment: usize,
        40 data: *mut u8,
    }
    "XLA_FFI_DeviceMemory_Free_Args" MemoryFree 40 {
        0 head: Head,
        16 context: *const c_void,
        24 size: usize,
        32 data: *mut u8,
    }
    "XLA_FFI_ThreadPool_Schedule_Args" PoolSchedule 40 {
        0 head: Head,
        16 context: *const c_void,
        24 task: Option<unsafe extern "C" fn(*mut c_void)>,
        32 data: *mut c_void,
    }
    "XLA_FFI_ThreadPool_NumThreads_Args" PoolThreads 32 {
        0 head: Head,
        16 context: *const c_void,
        24 count: *mut i64,
    }
    "XLA_FFI_RunId_Get_Args" RunIdGet 32 {
        0 head: Head,
        16 context: *const c_void,
        24 run_id: i64,
    }
    "XLA_FFI_DeviceOrdinal_Get_Args" OrdinalGet 28 {
        0 head: Head,
        16 context: *const c_void,
        24 ordinal: i32,
    }
    "XLA_FFI_Metadata" Metadata 48 {
        0 struct_size: usize,
        8 version: ApiVersion,
        32 traits: u32,
        40 state_type: i64,
    }
    "XLA_FFI_Metadata_Extension" MetadataExtension 32 {
        0 base: Extension,
        24 metadata: *mut Metadata,
    }
}
