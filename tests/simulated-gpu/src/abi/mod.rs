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
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::driver::{Driver, DriverResult, MOST_SHARED, Options, Status, VARIABLE, misuse, tell};

/// Drivers of the devices of this process, created by `cuInit`.
static DRIVERS: Mutex<Vec<Driver>> = Mutex::new(Vec::new());

/// Handle of the first device's context; the handles of the others follow.
const CONTEXT: usize = 0x5000_0000_0040;

/// Distance of the contexts' handles.
const CONTEXT_STEP: usize = 64;

/// Time between attempts to execute work that waits for a call of another thread.
const PAUSE: Duration = Duration::from_micros(50);

/// `CUDA_ERROR_UNKNOWN`: status for a failure of the simulation itself.
const UNKNOWN: u32 = 999;

thread_local! {
    /// Number of the device whose context is current in this thread.
    static CURRENT: Cell<Option<usize>> = const { Cell::new(None) };
}

fn drivers() -> MutexGuard<'static, Vec<Driver>> {
    DRIVERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a call that needs `cuInit` only. All devices have the same properties.
fn start(work: impl FnOnce(&mut Driver) -> DriverResult) -> u32 {
    of_device(0, work)
}

/// Makes a call of a device, which needs `cuInit` only. A panic becomes an error status.
fn of_device(device: usize, work: impl FnOnce(&mut Driver) -> DriverResult) -> u32 {
    let called =
        catch_unwind(AssertUnwindSafe(|| drivers().get_mut(device).map_or(Err(Status::NOT_INITIALIZED), work)));
    match called {
        Ok(Ok(())) => 0,
        Ok(Err(status)) => status.0,
        Err(_) => UNKNOWN,
    }
}

/// Makes a call that needs a context, which must be current and usable.
pub(crate) fn call(work: impl FnOnce(&mut Driver) -> DriverResult) -> u32 {
    let Some(device) = current() else {
        return start(|_| misuse("a call in a thread in which no context is current", Status::INVALID_CONTEXT));
    };
    on_device(device, work)
}

/// Returns the number of the device whose context is current in this thread.
pub(crate) fn current() -> Option<usize> {
    CURRENT.get()
}

/// Makes a call of a device, which must be usable, whether its context is current or not.
pub(crate) fn on_device(device: usize, work: impl FnOnce(&mut Driver) -> DriverResult) -> u32 {
    of_device(device, |driver| {
        driver.alive()?;
        work(driver)
    })
}

/// Returns the number of the first device that satisfies a predicate.
pub(crate) fn device_where(predicate: impl FnMut(&Driver) -> bool) -> Option<usize> {
    drivers().iter().position(predicate)
}

/// Makes a call that may wait for work of other devices, and repeats it until it does not wait.
fn wait(mut work: impl FnMut(&mut Driver) -> DriverResult) -> u32 {
    loop {
        match call(&mut work) {
            status if status == Status::BLOCKED.0 => {}
            status => return status,
        }
        // An error belongs to the device whose work it is. Later calls of that device return it.
        drivers().iter_mut().for_each(|driver| _ = driver.advance_all());
        std::thread::sleep(PAUSE);
    }
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

/// Returns the handle of a device's context.
fn context_of(device: usize) -> u64 {
    (CONTEXT + device * CONTEXT_STEP) as u64
}

/// Returns the device of a context.
fn device_of_context(context: usize) -> Option<usize> {
    (0..drivers().len()).find(|&device| context_of(device) == context as u64)
}

fn handle(pointer: *mut c_void) -> u64 {
    pointer.addr() as u64
}

#[unsafe(no_mangle)]
extern "C" fn cuInit(flags: c_uint) -> u32 {
    if flags != 0 {
        return Status::INVALID_VALUE.0;
    }
    let mut drivers = drivers();
    if !drivers.is_empty() {
        return 0;
    }
    match Options::parse(&std::env::var(VARIABLE).unwrap_or_default()) {
        Ok(options) => {
            drivers.extend((0..options.devices).map(|number| Driver::of_device(number, options.clone())));
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
    start(|driver| unsafe { put(count, driver.options.devices as c_int) })
}

fn check_device(driver: &Driver, device: c_int) -> DriverResult<usize> {
    let number = usize::try_from(device).ok();
    number.filter(|number| *number < driver.options.devices).ok_or(Status::INVALID_DEVICE)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> u32 {
    start(|driver| {
        check_device(driver, ordinal)?;
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(device, ordinal) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int) -> u32 {
    start(|driver| {
        check_device(driver, device)?;
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
        check_device(driver, device)?;
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(bytes, driver.options.memory) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_uint, device: c_int) -> u32 {
    start(|driver| {
        check_device(driver, device)?;
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
    start(|driver| {
        let number = check_device(driver, device)?;
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(context, pointer(context_of(number))) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> u32 {
    start(|driver| check_device(driver, device).map(drop))
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(context: *mut c_void) -> u32 {
    if context.is_null() {
        CURRENT.set(None);
        return start(|_| Ok(()));
    }
    match device_of_context(context.addr()) {
        Some(number) => {
            CURRENT.set(Some(number));
            on_device(number, |_| Ok(()))
        }
        None => start(|_| misuse("a context is made current that does not exist", Status::INVALID_CONTEXT)),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetCurrent(context: *mut *mut c_void) -> u32 {
    let current = current().map_or(std::ptr::null_mut(), |number| pointer(context_of(number)));
    // SAFETY: the API's contract implies that of `put`.
    start(|_| unsafe { put(context, current) })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSynchronize() -> u32 {
    wait(Driver::synchronize_all)
}
