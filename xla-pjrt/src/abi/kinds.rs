//! Kinds of the objects that C refers to by pointer.

/// Declares kinds as empty types. The module that implements an object specifies its Rust type.
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
    /// Source of a raw copy whose target is not known yet.
    RawCopy;
    /// Donated buffer that waits for its dependency.
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
    /// Bytes with a deleter for C: `PJRT_SerializedExecutable` and similar types.
    Serialized;
    /// `PJRT_Layouts_MemoryLayout`.
    MemoryLayout;
    /// `PLUGIN_Profiler`.
    Profiler;
}
