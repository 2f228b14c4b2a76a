//! Argument structures of the profiler, from `profiler_c_api.h`. jaxlib does not initialize the size fields of these
//! structures.

use super::kinds::Profiler;
use crate::ffi::{Address, Handle, Out, Owned, Text, whole};

whole! {
    "PLUGIN_Profiler_Create" ProfilerCreateArgs 32 {
        0 struct_size: usize,
        8 options: Text,
        24 profiler: Out<Handle<Profiler>>,
    }
    "PLUGIN_Profiler_Destroy" ProfilerDestroyArgs 16 {
        0 struct_size: usize,
        8 profiler: Owned<Profiler>,
    }
    "PLUGIN_Profiler_Start" ProfilerStartArgs 16 {
        0 struct_size: usize,
        8 profiler: Handle<Profiler>,
    }
    "PLUGIN_Profiler_Stop" ProfilerStopArgs 16 {
        0 struct_size: usize,
        8 profiler: Handle<Profiler>,
    }
    "PLUGIN_Profiler_CollectData" ProfilerCollectDataArgs 32 {
        0 struct_size: usize,
        8 profiler: Handle<Profiler>,
        16 buffer: Out<Address>,
        24 buffer_size_in_bytes: Out<usize>,
    }
}
