//! Exported functions for memory: allocations, copies, fills.
#![expect(unsafe_code, reason = "a C library is what this is for")]

use std::ffi::{c_uchar, c_uint, c_void};

use super::{call, handle, put, wait};
use crate::driver::{DEFAULT_STREAM, Driver};

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> u32 {
    call(|driver| {
        let (available, all) = driver.device.memory.free_and_total();
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(free, available)? };
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(total, all) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> u32 {
    call(|driver| {
        let found = driver.allocate(bytes)?;
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(address, found) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFree_v2(address: u64) -> u32 {
    wait(|driver| driver.free(address))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemHostAlloc(address: *mut *mut c_void, bytes: usize, _flags: c_uint) -> u32 {
    call(|driver| {
        let found = driver.device.pinned.allocate(bytes);
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(address, std::ptr::with_exposed_provenance_mut(found)) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeHost(address: *mut c_void) -> u32 {
    call(|driver| driver.free_pinned(address.addr()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, stream: *mut c_void) -> u32 {
    call(|driver| {
        // SAFETY: by the API's contract there are `bytes` bytes at `from`.
        let staged = || unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) }.to_vec();
        driver.upload(to, from.addr(), bytes, handle(stream), staged)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize) -> u32 {
    wait(|driver| {
        // SAFETY: by the API's contract there are `bytes` bytes at `from`.
        let staged = || unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) }.to_vec();
        driver.upload(to, from.addr(), bytes, DEFAULT_STREAM, staged)?;
        driver.synchronize(DEFAULT_STREAM)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, stream: *mut c_void) -> u32 {
    // SAFETY: the API's contract implies that of `download`.
    wait(|driver| unsafe { download(driver, to, from, bytes, handle(stream)) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) -> u32 {
    wait(|driver| {
        // SAFETY: the API's contract implies that of `download`.
        unsafe { download(driver, to, from, bytes, DEFAULT_STREAM)? };
        driver.synchronize(DEFAULT_STREAM)
    })
}

/// # Safety
/// `bytes` bytes at `to` are writable.
unsafe fn download(
    driver: &mut Driver,
    to: *mut c_void,
    from: u64,
    bytes: usize,
    stream: u64,
) -> crate::driver::DriverResult {
    if let Some(content) = driver.download(from, to.addr(), bytes, stream)? {
        // SAFETY: `content` has `content.len()` bytes, and the caller guarantees that they fit at `to`.
        unsafe { std::ptr::copy_nonoverlapping(content.as_ptr(), to.cast::<u8>(), content.len()) };
    }
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: *mut c_void) -> u32 {
    call(|driver| driver.copy(from, to, bytes, handle(stream)))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD8Async(to: u64, value: c_uchar, count: usize, stream: *mut c_void) -> u32 {
    call(|driver| driver.fill(to, u32::from(value), 1, count, handle(stream)))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD16Async(to: u64, value: u16, count: usize, stream: *mut c_void) -> u32 {
    call(|driver| driver.fill(to, u32::from(value), 2, count, handle(stream)))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD32Async(to: u64, value: c_uint, count: usize, stream: *mut c_void) -> u32 {
    call(|driver| driver.fill(to, value, 4, count, handle(stream)))
}
