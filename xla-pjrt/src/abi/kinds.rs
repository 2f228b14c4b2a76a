//! The kinds of objects that C holds by pointer.

/// Declares kinds; the module that has the object says what it is in Rust.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident;)*) => {$(
        $(#[$doc])*
        pub(crate) enum $kind {}
    )*};
}

kinds! {
    /// `PJRT_Client`.
    Client;
    /// `PJRT_Device`.
    Device;
    /// `PJRT_DeviceDescription`.
    DeviceDescription;
    /// `PJRT_Memory`.
    Memory;
    /// `PJRT_MemoryDescription`.
    MemoryDescription;
    /// `PJRT_TopologyDescription`.
    Topology;
    /// `PJRT_Device_Attributes`.
    Attributes;
    /// `PJRT_AsyncTrackingEvent`.
    AsyncTrackingEvent;
    /// `PJRT_Event`.
    Event;
    /// `PJRT_Buffer`.
    Buffer;
    /// The memory that a raw copy waits for.
    RawCopy;
    /// A donated buffer that waits for its dependency.
    Donation;
    /// `PJRT_FulfillAliasBufferCallback`.
    AliasPromise;
    /// `PJRT_AsyncHostToDeviceTransferManager`.
    TransferManager;
    /// `PJRT_CopyToDeviceStream`.
    CopyToDeviceStream;
    /// `PJRT_Executable`.
    Executable;
    /// `PJRT_LoadedExecutable`.
    LoadedExecutable;
    /// `PJRT_ExecuteContext`.
    ExecuteContext;
    /// Bytes that C was handed: `PJRT_SerializedExecutable` and the like.
    Serialized;
    /// `PJRT_Layouts_MemoryLayout`.
    MemoryLayout;
    /// `PLUGIN_Profiler`.
    Profiler;
}
