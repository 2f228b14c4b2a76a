//! Exported functions for streams, events and stream capture.
#![expect(unsafe_code, reason = "a C library is what this is for")]

use std::ffi::{c_int, c_uint, c_void};

use super::{call, handle, pointer, put, wait};
use crate::driver::Status;

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreate(stream: *mut *mut c_void, _flags: c_uint) -> u32 {
    call(|driver| {
        let made = driver.create_stream();
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(stream, pointer(made)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreateWithPriority(stream: *mut *mut c_void, flags: c_uint, _priority: c_int) -> u32 {
    // SAFETY: the contract is that of the called function.
    unsafe { cuStreamCreate(stream, flags) }
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamDestroy_v2(stream: *mut c_void) -> u32 {
    wait(|driver| driver.destroy_stream(handle(stream)))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamSynchronize(stream: *mut c_void) -> u32 {
    wait(|driver| driver.synchronize(handle(stream)))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamQuery(stream: *mut c_void) -> u32 {
    call(|driver| if driver.is_idle(handle(stream))? { Ok(()) } else { Err(Status::NOT_READY) })
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWaitEvent(stream: *mut c_void, event: *mut c_void, _flags: c_uint) -> u32 {
    call(|driver| driver.stream_waits(handle(stream), handle(event)))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamBeginCapture_v2(stream: *mut c_void, _mode: c_uint) -> u32 {
    call(|driver| driver.begin_capture(handle(stream)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamEndCapture(stream: *mut c_void, graph: *mut *mut c_void) -> u32 {
    call(|driver| {
        let made = driver.end_capture(handle(stream))?;
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(graph, pointer(made)) }
    })
}

/// `CU_EVENT_DISABLE_TIMING`.
const DISABLE_TIMING: c_uint = 2;

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventCreate(event: *mut *mut c_void, flags: c_uint) -> u32 {
    call(|driver| {
        let made = driver.create_event(flags & DISABLE_TIMING == 0);
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(event, pointer(made)) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuEventDestroy_v2(event: *mut c_void) -> u32 {
    call(|driver| driver.destroy_event(handle(event)))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventRecord(event: *mut c_void, stream: *mut c_void) -> u32 {
    call(|driver| driver.record_event(handle(event), handle(stream)))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventQuery(event: *mut c_void) -> u32 {
    call(|driver| if driver.is_reached(handle(event))? { Ok(()) } else { Err(Status::NOT_READY) })
}

#[unsafe(no_mangle)]
extern "C" fn cuEventSynchronize(event: *mut c_void) -> u32 {
    wait(|driver| driver.wait_for_event(handle(event)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventElapsedTime(milliseconds: *mut f32, from: *mut c_void, to: *mut c_void) -> u32 {
    call(|driver| {
        let elapsed = driver.elapsed(handle(from), handle(to))?;
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(milliseconds, elapsed) }
    })
}
