//! The plugin's profiler, which the caller's profilers start and stop together with their own.

use crate::abi::kinds;
use crate::abi::profiler::{
    ProfilerCollectDataArgs, ProfilerCreateArgs, ProfilerDestroyArgs, ProfilerStartArgs, ProfilerStopArgs,
};
use crate::ffi::{Address, Handle, Kind};
use crate::profile::Profiler;
use crate::status::Status;

impl Kind for kinds::Profiler {
    type Value = Profiler;
    const NAME: &'static str = "PLUGIN_Profiler";
}

/// `PLUGIN_Profiler_Create`: creates a profiler. The options, detail levels of the caller's host and device profilers,
/// are ignored.
pub(super) fn create(args: &ProfilerCreateArgs) -> Result<(), Status> {
    args.profiler.set(Handle::new(Profiler::default()));
    Ok(())
}

pub(super) fn destroy(args: &ProfilerDestroyArgs) -> Result<(), Status> {
    args.profiler.destroy()
}

pub(super) fn start(args: &ProfilerStartArgs) -> Result<(), Status> {
    args.profiler.get()?.start()
}

pub(super) fn stop(args: &ProfilerStopArgs) -> Result<(), Status> {
    args.profiler.get()?.stop()
}

/// `PLUGIN_Profiler_CollectData`: copies the data into the caller's buffer. Without a buffer, the caller gets a pointer
/// to the profiler's own data, which is valid until the profiler is started again or destroyed. jaxlib relies on this
/// pointer, although the header requires callers to provide a buffer.
pub(super) fn collect_data(args: &ProfilerCollectDataArgs) -> Result<(), Status> {
    let data = args.profiler.get()?.data()?;
    let (buffer, own) = (args.buffer.get(), data.as_ptr().expose_provenance());
    if buffer.is_null() {
        args.buffer.set(Address::of_number(own));
    } else if buffer.number() != own {
        let room = args.buffer_size_in_bytes.get();
        if room < data.len() {
            let message = format!("the profile has {} bytes, but the caller has room for {room}", data.len());
            return Err(Status::invalid_argument(message));
        }
        buffer.write(&data)?;
    }
    args.buffer_size_in_bytes.set(data.len());
    Ok(())
}
