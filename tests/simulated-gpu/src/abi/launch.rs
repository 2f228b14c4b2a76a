//! Exported functions for modules, kernels and launches.
#![expect(unsafe_code, reason = "a C library is what this is for")]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::{call, handle, pointer, put};
use crate::driver::{Driver, DriverResult, LaunchShape, Status, misuse};

/// Options of `cuModuleLoadDataEx` that are evaluated: the buffer of the error log, and its size.
const ERROR_LOG: c_uint = 5;
const ERROR_LOG_BYTES: c_uint = 6;

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut *mut c_void,
    image: *const c_void,
    count: c_uint,
    options: *const c_uint,
    values: *const *mut c_void,
) -> u32 {
    call(|driver| {
        // SAFETY: by the API's contract an image is an ELF file or a text with a terminating zero, and either has at
        // least four bytes.
        let magic = unsafe { image.cast::<[u8; 4]>().read_unaligned() };
        if magic == *b"\x7fELF" {
            return misuse("a module of machine code is loaded; only PTX can be simulated", Status::NO_BINARY_FOR_GPU);
        }
        // SAFETY: the image is no ELF file, so it is a text with a terminating zero.
        let text = unsafe { CStr::from_ptr(image.cast()) }.to_str().map_err(|_| Status::INVALID_IMAGE)?;
        let loaded = driver.load_module(text).map_err(|(status, log)| {
            // SAFETY: by the API's contract there are `count` options and values.
            unsafe { write_log(&log, count as usize, options, values) };
            status
        })?;
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(module, pointer(loaded)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadData(module: *mut *mut c_void, image: *const c_void) -> u32 {
    // SAFETY: the contract is that of the called function, without options.
    unsafe { cuModuleLoadDataEx(module, image, 0, std::ptr::null(), std::ptr::null()) }
}

/// Writes a log to the buffer that the options specify.
///
/// # Safety
/// There are `count` options and `count` values, which satisfy the contract of the driver API.
unsafe fn write_log(log: &str, count: usize, options: *const c_uint, values: *const *mut c_void) {
    let (mut buffer, mut room) = (std::ptr::null_mut::<u8>(), 0);
    for number in 0..count {
        // SAFETY: the caller passes `count` of both.
        let (option, value) = unsafe { (options.add(number).read(), values.add(number).read()) };
        match option {
            ERROR_LOG => buffer = value.cast(),
            ERROR_LOG_BYTES => room = value.addr() & 0xffff_ffff,
            _ => {}
        }
    }
    if buffer.is_null() || room == 0 {
        return;
    }
    let bytes = &log.as_bytes()[..log.len().min(room - 1)];
    // SAFETY: the buffer has `room` bytes, and the text with its terminating zero fits.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer, bytes.len());
        buffer.add(bytes.len()).write(0);
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleUnload(module: *mut c_void) -> u32 {
    call(|driver| driver.unload_module(handle(module)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetFunction(function: *mut *mut c_void, module: *mut c_void, name: *const c_char) -> u32 {
    call(|driver| {
        // SAFETY: by the API's contract a name has a terminating zero.
        let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| Status::NOT_FOUND)?;
        let found = driver.function(handle(module), name)?;
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(function, pointer(found)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuFuncGetAttribute(value: *mut c_int, attribute: c_uint, function: *mut c_void) -> u32 {
    call(|driver| {
        let found = driver.function_attribute(handle(function), attribute)?;
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(value, found) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuFuncSetAttribute(function: *mut c_void, attribute: c_uint, value: c_int) -> u32 {
    call(|driver| driver.set_function_attribute(handle(function), attribute, value))
}

/// Returns the parameters of a launch in their memory layout.
///
/// # Safety
/// There is a pointer for each parameter of the function, to the number of bytes of that parameter.
pub(super) unsafe fn parameters(driver: &Driver, function: u64, pointers: *const *mut c_void) -> DriverResult<Vec<u8>> {
    let sizes = driver.parameter_sizes(function)?;
    let mut bytes = vec![0u8; sizes.last().map_or(0, |(start, size)| start + size)];
    if pointers.is_null() && !sizes.is_empty() {
        return misuse("a kernel with parameters is launched without", Status::INVALID_VALUE);
    }
    for (number, (start, size)) in sizes.into_iter().enumerate() {
        // SAFETY: there is a pointer for each parameter.
        let from = unsafe { pointers.add(number).read() };
        if from.is_null() {
            return misuse(&format!("parameter {number} of a launch has no address"), Status::INVALID_VALUE);
        }
        // SAFETY: it points to `size` bytes.
        let value = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), size) };
        bytes[start..start + size].copy_from_slice(value);
    }
    Ok(bytes)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernel(
    function: *mut c_void,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared: c_uint,
    stream: *mut c_void,
    pointers: *const *mut c_void,
    extra: *const *mut c_void,
) -> u32 {
    call(|driver| {
        if !extra.is_null() {
            return misuse("a launch with its parameters in `extra`", Status::NOT_SUPPORTED);
        }
        // SAFETY: the API's contract implies that of `parameters`.
        let parameters = unsafe { parameters(driver, handle(function), pointers)? };
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        driver.launch(
            handle(function),
            LaunchShape { grid, block, shared: shared as usize },
            parameters,
            handle(stream),
        )
    })
}
