//! The structures in which C finds the functions: the API table and the list of extensions.

use crate::ffi::Slot;

/// `PJRT_Api`: the table of the API. Opaque in Rust; only C reads it.
#[repr(C)]
pub struct Api<const N: usize> {
    struct_size: usize,
    extensions: Option<&'static ExtensionHead>,
    version: Version,
    slots: [Slot; N],
}

/// `PJRT_Api_Version`: 24 bytes.
#[repr(C)]
struct Version {
    struct_size: usize,
    extensions: usize,
    major: i32,
    minor: i32,
}

/// `PJRT_Extension_Base`: 24 bytes.
#[repr(C)]
pub(crate) struct ExtensionHead {
    struct_size: usize,
    number: i32,
    next: Option<&'static ExtensionHead>,
}

/// Extension of the API: a head, followed by its functions.
#[repr(C)]
pub(crate) struct Extension<const N: usize> {
    pub head: ExtensionHead,
    slots: [Slot; N],
}

/// `PJRT_Profiler_Extension`: a head, followed by a pointer to a separate function table.
#[repr(C)]
pub(crate) struct ProfilerExtension<const N: usize> {
    pub head: ExtensionHead,
    table: &'static ProfilerTable<N>,
    /// Id of the `TraceMe` context; only used if the extension is attached to a call.
    context: i64,
}

/// `PLUGIN_Profiler_Api`: the function table of the profiler, with its own functions for errors.
#[repr(C)]
pub(crate) struct ProfilerTable<const N: usize> {
    struct_size: usize,
    private: usize,
    slots: [Slot; N],
}

const _: () = {
    assert!(size_of::<ProfilerExtension<8>>() == 40 && size_of::<ProfilerTable<8>>() == 80);
    assert!(size_of::<Version>() == 24 && size_of::<ExtensionHead>() == 24);
    assert!(size_of::<Extension<3>>() == 48);
    assert!(size_of::<Api<138>>() == 1144 && std::mem::offset_of!(Api<138>, slots) == 40);
};

impl<const N: usize> Api<N> {
    /// Creates the API table of this version.
    pub(crate) const fn new(
        major: i32,
        minor: i32,
        extensions: Option<&'static ExtensionHead>,
        slots: [Slot; N],
    ) -> Api<N> {
        let version = Version { struct_size: size_of::<Version>(), extensions: 0, major, minor };
        Api { struct_size: size_of::<Api<N>>(), extensions, version, slots }
    }
}

impl<const N: usize> ProfilerExtension<N> {
    /// Creates an extension with this table; `next` is the following extension in the list.
    pub(crate) const fn new(
        next: Option<&'static ExtensionHead>,
        table: &'static ProfilerTable<N>,
    ) -> ProfilerExtension<N> {
        let head = ExtensionHead { struct_size: size_of::<ProfilerExtension<N>>(), number: 1, next };
        ProfilerExtension { head, table, context: 0 }
    }
}

impl<const N: usize> ProfilerTable<N> {
    /// Creates a table of these functions.
    pub(crate) const fn new(slots: [Slot; N]) -> ProfilerTable<N> {
        ProfilerTable { struct_size: size_of::<ProfilerTable<N>>(), private: 0, slots }
    }
}

impl<const N: usize> Extension<N> {
    /// Creates an extension with this number; `next` is the following extension in the list.
    pub(crate) const fn new(number: i32, next: Option<&'static ExtensionHead>, slots: [Slot; N]) -> Extension<N> {
        Extension { head: ExtensionHead { struct_size: size_of::<Extension<N>>(), number, next }, slots }
    }
}
