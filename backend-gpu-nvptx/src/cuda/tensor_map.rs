//! Tensor maps (`CUtensorMap`): TMA descriptors of arrays, which the driver encodes.
#![expect(unsafe_code, reason = "the driver is a C library")]

use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys::{
    CUtensorMap, CUtensorMapDataType as DataType, CUtensorMapFloatOOBfill_enum as OutOfBounds,
    CUtensorMapInterleave_enum as Interleave, CUtensorMapL2promotion as Promotion, CUtensorMapSwizzle as CuSwizzle,
};
use xla_hlo::{Error, Result};

use super::api::driver as api;
use super::context::Context;
use crate::program::kernel_map::{ALIGNMENT, KernelMap, MapSwizzle};

/// Tensor map of a kernel; encoded again when the address of its array changes.
#[derive(Debug)]
pub(super) struct MapEncoder {
    map: KernelMap,
    /// Address of the last encoding, and its result.
    latest: Mutex<Option<(u64, CUtensorMap)>>,
}

impl MapEncoder {
    pub fn new(map: &KernelMap) -> MapEncoder {
        MapEncoder { map: map.clone(), latest: Mutex::default() }
    }

    /// Returns the map for a launch with these arguments. [`Error::Internal`] if its array is not aligned.
    pub fn encode(&self, context: &Context, arguments: &[u64]) -> Result<CUtensorMap> {
        let array = self.map.array;
        let missing =
            || Error::internal(format!("a tensor map refers to parameter {array}, which the launch does not have"));
        let address = arguments.get(array as usize).copied().ok_or_else(missing)?;
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, encoded)) = *latest
            && known == address
        {
            return Ok(encoded);
        }
        let encoded = encode(&self.map, address, context)?;
        *latest = Some((address, encoded));
        Ok(encoded)
    }
}

/// `cuTensorMapEncodeTiled`: encodes a map. TMA reads zeros beyond the array.
fn encode(map: &KernelMap, address: u64, context: &Context) -> Result<CUtensorMap> {
    let array = map.array;
    if !address.is_multiple_of(ALIGNMENT) {
        return Err(Error::internal(format!(
            "the array of parameter {array} is copied with TMA, but begins at {address:#x}, which is not a multiple of {ALIGNMENT}"
        )));
    }
    if !map.is_sound(array as usize + 1) {
        return Err(Error::internal(format!("the tensor map of parameter {array} is invalid: {map:?}")));
    }
    let start = std::ptr::without_provenance_mut(address as usize);
    let each = vec![1; map.extents.len()];
    let mut encoded = CUtensorMap { opaque: [0; 16] };
    context.call("cuTensorMapEncodeTiled", || {
        // SAFETY: the pointer is to a live map; the check above ensures one extent, one box extent and one step for
        // each dimension, and one stride less. The address of the array is only a number here: nothing is read there.
        unsafe {
            api::maps::cuTensorMapEncodeTiled(
                &mut encoded,
                data_type(map.element_bytes),
                map.extents.len() as u32,
                start,
                map.extents.as_ptr(),
                map.strides.as_ptr(),
                map.box_extents.as_ptr(),
                each.as_ptr(),
                Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                swizzle(map.swizzle),
                Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                OutOfBounds::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        }
    })?;
    Ok(encoded)
}

/// Returns the data type for elements of `bytes` bytes; only their size matters.
fn data_type(bytes: u32) -> DataType {
    match bytes {
        1 => DataType::CU_TENSOR_MAP_DATA_TYPE_UINT8,
        2 => DataType::CU_TENSOR_MAP_DATA_TYPE_UINT16,
        4 => DataType::CU_TENSOR_MAP_DATA_TYPE_UINT32,
        _ => DataType::CU_TENSOR_MAP_DATA_TYPE_UINT64,
    }
}

fn swizzle(swizzle: MapSwizzle) -> CuSwizzle {
    match swizzle {
        MapSwizzle::Bytes32 => CuSwizzle::CU_TENSOR_MAP_SWIZZLE_32B,
        MapSwizzle::Bytes64 => CuSwizzle::CU_TENSOR_MAP_SWIZZLE_64B,
        MapSwizzle::Bytes128 => CuSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
    }
}
