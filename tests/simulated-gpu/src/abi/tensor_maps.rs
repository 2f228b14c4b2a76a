//! Exported functions for tensor maps.
#![expect(unsafe_code, reason = "a C library is what this is for")]

use std::ffi::{c_uint, c_void};
use std::panic::catch_unwind;

use super::{UNKNOWN, put};
use crate::driver::{DriverResult, Status, TiledTensor, misuse};

/// Alignment of a map.
const ALIGNMENT: usize = 64;

/// `cuTensorMapEncodeTiled`: needs no context and no device.
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
        // SAFETY: by the API's contract each list has a number for each dimension; strides have one less.
        let (sizes, strides, extents, steps) =
            unsafe { (list(sizes, rank)?, list(strides, rank - 1)?, list(extents, rank)?, list(steps, rank)?) };
        let address = address.addr() as u64;
        let tensor = TiledTensor { ty, address, sizes, strides, extents, steps, interleave, swizzle, promotion, fill };
        // SAFETY: by the API's contract the map has 128 bytes.
        unsafe { put(map.cast(), tensor.map()?.encode()) }
    });
    match encoded {
        Ok(Ok(())) => 0,
        Ok(Err(status)) => status.0,
        Err(_) => UNKNOWN,
    }
}

/// Returns an argument list; a null or unaligned list is an error.
///
/// # Safety
/// `from` points to `count` elements, or is null.
unsafe fn list<'a, T>(from: *const T, count: usize) -> DriverResult<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if from.is_null() || !from.is_aligned() {
        return misuse("cuTensorMapEncodeTiled: a list of numbers has no address", Status::INVALID_VALUE);
    }
    // SAFETY: the caller guarantees it.
    Ok(unsafe { std::slice::from_raw_parts(from, count) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::TensorMap;

    #[repr(align(64))]
    struct Room([u8; 192]);

    #[test]
    fn a_map_is_written_where_it_may_be() {
        let mut room = Room([0; 192]);
        let mut encode = |at: usize, rank: u32, sizes: *const u64| {
            let (strides, extents, steps) = ([64u64], [16u32, 4], [1u32; 2]);
            let map = room.0[at..].as_mut_ptr().cast();
            let address = std::ptr::without_provenance_mut(0x1000);
            let lists = (strides.as_ptr(), extents.as_ptr(), steps.as_ptr());
            // SAFETY: the map has 128 bytes, and each list has two numbers, except strides, which has one.
            unsafe { cuTensorMapEncodeTiled(map, 9, rank, address, sizes, lists.0, lists.1, lists.2, 0, 1, 0, 0) }
        };
        let sizes = [32u64, 8];
        assert_eq!(encode(64, 2, sizes.as_ptr()), 0);
        assert_eq!(encode(32, 2, sizes.as_ptr()), Status::INVALID_VALUE.0);
        assert_eq!(encode(0, 0, sizes.as_ptr()), Status::INVALID_VALUE.0);
        assert_eq!(encode(0, 6, sizes.as_ptr()), Status::INVALID_VALUE.0);
        assert_eq!(encode(0, 2, std::ptr::null()), Status::INVALID_VALUE.0);
        let map = TensorMap::decode(&room.0[64..]).unwrap();
        assert_eq!((map.width, map.sizes[1], map.strides[1], map.box_bytes()), (2, 8, 64, 128));
    }
}
