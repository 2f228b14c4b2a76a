//! C interface of the driver: the functions of `cuda.h` that programs of this repository look up, and some that other
//! programs need.
//!
//! Arguments are checked and converted only here: data behind pointers is copied in, and results are written back.
#![expect(unsafe_code, reason = "a C library is what this is for")]

mod graphs;
mod launch;
mod memory;
mod streams;
mod tensor_maps;

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use crate::driver::{Driver, DriverResult, MOST_SHARED, Options, Status, VARIABLE, misuse, tell};

/// Driver of this process, created by `cuInit`.
static DRIVER: Mutex<Option<Driver>> = Mutex::new(None);

/// Handle of the only context.
const CONTEXT: usize = 0x5000_0000_0040;

/// `CUDA_ERROR_UNKNOWN`: status for a failure of the simulation itself.
const UNKNOWN: u32 = 999;

thread_local! {
    /// Whether the context is current in this thread.
    static CURRENT: Cell<bool> = const { Cell::new(false) };
}

/// Makes a call that needs `cuInit` only. A panic becomes an error status.
fn start(work: impl FnOnce(&mut Driver) -> DriverResult) -> u32 {
    let called = catch_unwind(AssertUnwindSafe(|| {
        let mut driver = DRIVER.lock().unwrap_or_else(PoisonError::into_inner);
        driver.as_mut().map_or(Err(Status::NOT_INITIALIZED), work)
    }));
    match called {
        Ok(Ok(())) => 0,
        Ok(Err(status)) => status.0,
        Err(_) => UNKNOWN,
    }
}

/// Makes a call that needs a context, which must be current and usable.
pub(crate) fn call(work: impl FnOnce(&mut Driver) -> DriverResult) -> u32 {
    start(|driver| {
        if !CURRENT.get() {
            return misuse("a call in a thread in which no context is current", Status::INVALID_CONTEXT);
        }
        driver.alive()?;
        work(driver)
    })
}

/// Writes a result to an address of the program.
///
/// # Safety
/// `into` is null or writable.
unsafe fn put<T>(into: *mut T, value: T) -> DriverResult {
    if into.is_null() {
        return misuse("a result is wanted at address zero", Status::INVALID_VALUE);
    }
    // SAFETY: `into` is not null, so the caller guarantees that it is writable.
    unsafe { into.write_unaligned(value) };
    Ok(())
}

/// Returns the form of a handle that programs see: a pointer without memory.
fn pointer(handle: u64) -> *mut c_void {
    std::ptr::without_provenance_mut(handle as usize)
}

fn handle(pointer: *mut c_void) -> u64 {
    pointer.addr() as u64
}

#[unsafe(no_mangle)]
extern "C" fn cuInit(flags: c_uint) -> u32 {
    if flags != 0 {
        return Status::INVALID_VALUE.0;
    }
    let mut driver = DRIVER.lock().unwrap_or_else(PoisonError::into_inner);
    if driver.is_some() {
        return 0;
    }
    match Options::parse(&std::env::var(VARIABLE).unwrap_or_default()) {
        Ok(options) => {
            *driver = Some(Driver::new(options));
            0
        }
        Err(sentence) => {
            tell(&sentence);
            Status::INVALID_VALUE.0
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> u32 {
    // SAFETY: the API's contract implies that of `put`.
    start(|driver| unsafe { put(version, driver.options.version) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> u32 {
    // SAFETY: the API's contract implies that of `put`.
    start(|_| unsafe { put(count, 1) })
}

fn check_device(device: c_int) -> DriverResult {
    if device == 0 { Ok(()) } else { Err(Status::INVALID_DEVICE) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> u32 {
    start(|_| {
        check_device(ordinal)?;
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(device, 0) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int) -> u32 {
    start(|driver| {
        check_device(device)?;
        let text = format!("Simulated GPU of sm_{}", driver.options.capability);
        let room =
            usize::try_from(length).ok().and_then(|length| length.checked_sub(1)).ok_or(Status::INVALID_VALUE)?;
        let text = &text.as_bytes()[..text.len().min(room)];
        for (at, &byte) in text.iter().chain(&[0]).enumerate() {
            // SAFETY: the text and its terminating zero fit the buffer.
            unsafe { put(name.wrapping_add(at), byte as c_char)? };
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) -> u32 {
    start(|driver| {
        check_device(device)?;
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(bytes, driver.options.memory) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_uint, device: c_int) -> u32 {
    start(|driver| {
        check_device(device)?;
        let capability = driver.options.capability as c_int;
        // Attribute numbers of the header; values of an H100, but with few multiprocessors.
        let found = match attribute {
            1..=3 => 1024,
            4 => 64,
            5 => i32::MAX,
            6 | 7 => 65_535,
            8 => 48 << 10,
            10 => 32,
            13 => 1_980_000,
            16 => 16,
            36 => 2_619_000,
            37 => 5120,
            38 => 50 << 20,
            39 => 2048,
            75 => capability / 10,
            76 => capability % 10,
            81 => 228 << 10,
            97 => MOST_SHARED as c_int,
            _ => return misuse(&format!("device attribute {attribute} is not known"), Status::INVALID_VALUE),
        };
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(value, found) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(status: u32, text: *mut *const c_char) -> u32 {
    // SAFETY: the API's contract implies that of `put`.
    unsafe { told(Status(status).name(), text) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(status: u32, text: *mut *const c_char) -> u32 {
    // SAFETY: the API's contract implies that of `put`.
    unsafe { told(Status(status).text(), text) }
}

/// # Safety
/// `into` is null or writable.
unsafe fn told(text: Option<&'static std::ffi::CStr>, into: *mut *const c_char) -> u32 {
    // SAFETY: the caller guarantees it.
    let put = unsafe { put(into, text.map_or(std::ptr::null(), std::ffi::CStr::as_ptr)) };
    match (put, text) {
        (Ok(()), Some(_)) => 0,
        (Ok(()), None) => Status::INVALID_VALUE.0,
        (Err(status), _) => status.0,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int) -> u32 {
    start(|_| {
        check_device(device)?;
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(context, pointer(CONTEXT as u64)) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> u32 {
    start(|_| check_device(device))
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(context: *mut c_void) -> u32 {
    start(|driver| {
        if !context.is_null() && context.addr() != CONTEXT {
            return misuse("a context is made current that does not exist", Status::INVALID_CONTEXT);
        }
        CURRENT.set(!context.is_null());
        driver.alive()
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetCurrent(context: *mut *mut c_void) -> u32 {
    let current = if CURRENT.get() { pointer(CONTEXT as u64) } else { std::ptr::null_mut() };
    // SAFETY: the API's contract implies that of `put`.
    start(|_| unsafe { put(context, current) })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSynchronize() -> u32 {
    call(Driver::synchronize_all)
}
