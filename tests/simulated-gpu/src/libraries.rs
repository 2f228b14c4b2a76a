//! Interface for simulated libraries: properties of the current device, and work in stream order.
//!
//! Such a library is linked into one file with the driver (see `tests/simulated-libraries`), so that both share the
//! device.

use std::sync::Arc;

use crate::abi::{call, current, device_where, on_device};
use crate::driver::{self, DEFAULT_STREAM, Gate, LibraryWork, Status, StreamWork};
use crate::finding::Problem;
use crate::machine::Memory;

/// Returns the compute capability of the current device, 90 for sm_90; if the thread has no context, the driver's
/// error.
pub fn capability() -> Result<u32, Status> {
    let mut found = 0;
    match call(|driver| {
        found = driver.options.capability;
        Ok(())
    }) {
        0 => Ok(found),
        status => Err(Status(status)),
    }
}

/// Whether algorithms that cannot be chosen safely are to return wrong results (an option of the driver).
pub fn is_wrong() -> bool {
    let mut found = false;
    let status = call(|driver| {
        found = driver.options.wrong;
        Ok(())
    });
    status == 0 && found
}

/// Submits work to a stream, or adds it as a node to the graph that captures the stream. The work runs once for each
/// submission or graph launch, later and with the driver locked, so it must not call the driver. An error of the work
/// makes the device unusable; messages name `name` as the call.
pub fn enqueue(
    stream: u64,
    name: &str,
    work: impl Fn(&mut Memory) -> Result<(), Problem> + Send + Sync + 'static,
) -> Result<(), Status> {
    let work = StreamWork::Library(LibraryWork { call: name.into(), run: Arc::new(work) });
    match call(|driver| driver.send(stream, work)) {
        0 => Ok(()),
        status => Err(Status(status)),
    }
}

/// Returns the number of the device whose context is current in this thread.
pub fn device() -> Option<usize> {
    current()
}

/// Returns the number of the device that has a range of memory.
pub fn device_of_memory(address: u64, bytes: usize) -> Option<usize> {
    device_where(|driver| driver.device.memory.has(address, bytes))
}

/// Returns the number of the device that has a stream. `None` for the default stream, which each device has.
pub fn device_of_stream(stream: u64) -> Option<usize> {
    device_where(|driver| driver.has_stream(stream)).filter(|_| stream != DEFAULT_STREAM)
}

/// Submits work like [`enqueue`] to a stream of any device. It runs once `is_open` returns true, which may depend on
/// the work of other devices. The stream must not be captured.
pub fn enqueue_gated(
    (device, stream): (usize, u64),
    name: &str,
    is_open: impl Fn() -> bool + Send + Sync + 'static,
    work: impl Fn(&mut Memory) -> Result<(), Problem> + Send + Sync + 'static,
) -> Result<(), Status> {
    let work = StreamWork::Library(LibraryWork { call: name.into(), run: Arc::new(work) });
    let sent = on_device(device, |driver| {
        driver.send_gate(stream, Gate(Arc::new(is_open)))?;
        driver.send(stream, work)
    });
    if sent == 0 { Ok(()) } else { Err(Status(sent)) }
}

/// Prints a sentence on stderr.
pub fn tell(sentence: &str) {
    driver::tell(sentence);
}
