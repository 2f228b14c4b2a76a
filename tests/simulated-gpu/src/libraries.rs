//! Interface for simulated libraries: the current device, and work in stream order.
//!
//! Such a library is linked with the driver into one file (see `tests/simulated-libraries`), so that both know the same
//! device.

use std::sync::Arc;

use crate::abi::call;
use crate::driver::{self, LibraryWork, Status, StreamWork};
use crate::finding::Problem;
use crate::machine::Memory;

/// The compute capability of the current device, 90 for sm_90; the error is the driver's for a thread without one.
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

/// Whether algorithms are to answer wrongly that could be known for it.
pub fn is_wrong() -> bool {
    let mut found = false;
    let status = call(|driver| {
        found = driver.options.wrong;
        Ok(())
    });
    status == 0 && found
}

/// Sends work to a stream, or as a node to the graph that the stream is captured to. It is done later, as often as it
/// is sent, and with the driver locked: it must make no call. An error of it loses the device; `call` names it in
/// messages.
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

/// Says something to whoever runs the tests.
pub fn tell(sentence: &str) {
    driver::tell(sentence);
}
