//! Tensor maps.
#![expect(unsafe_code, reason = "a C library is what this is for")]

use std::ffi::{c_uint, c_void};
use std::panic::catch_unwind;

use super::{UNKNOWN, put};
use crate::driver::{DriverResult, Status, TiledTensor, misuse};

/// Alignment of a map.
const ALIGNMENT: usize = 64;

/// Needs no context, and no device.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuTensorMapEncodeTiled(
    map: *mut c_void,
    ty: c_uint,
    rank: c_uint,
    address: *mut c_void,
    sizes: *const u64,
    strides: *const u64,
    extents: *const c_uint,
    steps: *const c_uint,
    interleave: c_uint,
    swizzle: c_uint,
    promotion: c_uint,
    fill: c_uint,
) -> u32 {
    let encoded = catch_unwind(|| {
        if !(1..=5).contains(&rank) {
            return misuse("cuTensorMapEncodeTiled: a tensor has 1 to 5 dimensions", Status::INVALID_VALUE);
        }
        if !map.addr().is_multiple_of(ALIGNMENT) {
            return misuse("cuTensorMapEncodeTiled: a map is not aligned to 64 bytes", Status::INVALID_VALUE);
        }
        let rank = rank as usize;
        // SAFETY: there is a number for each dimension, by the interface; or for each but the first one of strides.
        let (sizes, strides, extents, steps) =
            unsafe { (list(sizes, rank)?, list(strides, rank - 1)?, list(extents, rank)?, list(steps, rank)?) };
        let address = address.addr() as u64;
        let tensor = TiledTensor { ty, address, sizes, strides, extents, steps, interleave, swizzle, promotion, fill };
        // SAFETY: a map has 128 bytes, by the interface.
        unsafe { put(map.cast(), tensor.map()?.encode()) }
    });
    match encoded {
        Ok(Ok(())) => 0,
        Ok(Err(status)) => status.0,
        Err(_) => UNKNOWN,
    }
}

/// Numbers of an argument; none may be at address zero.
///
/// # Safety
/// There are that many, or the address is zero.
unsafe fn list<'a, T>(from: *const T, count: usize) -> DriverResult<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if from.is_null() || !from.is_aligned() {
        return misuse("cuTensorMapEncodeTiled: a list of numbers has no address", Status::INVALID_VALUE);
    }
    // SAFETY: as the caller says.
    Ok(unsafe { std::slice::from_raw_parts(from, count) })
}
