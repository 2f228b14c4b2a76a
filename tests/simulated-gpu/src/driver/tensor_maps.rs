//! Tensor maps of `cuTensorMapEncodeTiled`, checked against the requirements of NVIDIA's documentation.

use super::handle::{DriverResult, misuse};
use super::status::Status;
use crate::machine::{MOST_DIMENSIONS, Swizzle, TensorMap};

/// Exclusive upper limit of strides.
const STRIDE_LIMIT: u64 = 1 << 40;

/// Arguments of a call; enumerations are numbers of the header.
#[derive(Clone, Debug)]
pub(crate) struct TiledTensor<'a> {
    /// Element type.
    pub ty: u32,
    pub address: u64,
    /// Number of elements by dimension, the fastest one first.
    pub sizes: &'a [u64],
    /// Strides in bytes of all dimensions but the first one.
    pub strides: &'a [u64],
    /// Size of a box by dimension.
    pub extents: &'a [u32],
    pub steps: &'a [u32],
    pub interleave: u32,
    pub swizzle: u32,
    pub promotion: u32,
    pub fill: u32,
}

impl TiledTensor<'_> {
    /// Returns the map. Interleaved layouts and NaN fill are not supported.
    pub fn map(&self) -> DriverResult<TensorMap> {
        let wrong = |what: String| misuse(&format!("cuTensorMapEncodeTiled: {what}"), Status::INVALID_VALUE);
        let rank = self.sizes.len();
        let Some(width) = width(self.ty) else { return wrong(format!("there is no element type {}", self.ty)) };
        if !(1..=MOST_DIMENSIONS).contains(&rank) {
            return wrong(format!("a tensor of {rank} dimensions"));
        }
        if !self.address.is_multiple_of(16) {
            return wrong(format!("the address {:#x} is not a multiple of 16", self.address));
        }
        if let Some(size) = self.sizes.iter().find(|size| !(1..=1 << 32).contains(*size)) {
            return wrong(format!("a dimension of {size} elements"));
        }
        if let Some(stride) = self.strides.iter().find(|stride| !stride.is_multiple_of(16) || **stride >= STRIDE_LIMIT)
        {
            return wrong(format!("a stride of {stride} bytes is no multiple of 16 below 2^40"));
        }
        if let Some(extent) = self.extents.iter().find(|extent| !(1..=256).contains(*extent)) {
            return wrong(format!("a box of {extent} elements in a dimension"));
        }
        if let Some(step) = self.steps.iter().find(|step| !(1..=8).contains(*step)) {
            return wrong(format!("an element stride of {step}"));
        }
        let numbers = [(self.interleave, 2), (self.swizzle, 3), (self.promotion, 3), (self.fill, 1)];
        if numbers.iter().any(|(number, most)| number > most) {
            return wrong(format!("interleave, swizzle, promotion and fill, each with its last one, are {numbers:?}"));
        }
        if self.interleave != 0 || self.fill != 0 {
            return misuse("cuTensorMapEncodeTiled: interleaved, or filled with NaN", Status::NOT_SUPPORTED);
        }
        let row = self.extents[0] as usize * width;
        let swizzle = [Swizzle::None, Swizzle::Bytes32, Swizzle::Bytes64, Swizzle::Bytes128][self.swizzle as usize];
        if !row.is_multiple_of(16) || swizzle != Swizzle::None && row > swizzle.span() {
            return wrong(format!("a box with rows of {row} bytes, swizzled within {}", swizzle.span()));
        }
        let padded = |from: &[u32]| std::array::from_fn(|d| from.get(d).copied().unwrap_or(1));
        let stride = |d: usize| if d == 0 { width as u64 } else { self.strides.get(d - 1).copied().unwrap_or(0) };
        Ok(TensorMap {
            width,
            rank,
            address: self.address,
            sizes: std::array::from_fn(|d| self.sizes.get(d).copied().unwrap_or(1)),
            strides: std::array::from_fn(stride),
            extents: padded(self.extents),
            steps: padded(self.steps),
            swizzle,
        })
    }
}

/// Returns the size in bytes of an element type: `u8`, `u16`, `u32`, `i32`, `u64`, `i64`, `f16`, `f32`, `f64`, `bf16`,
/// `f32` with flushed subnormals, `tf32`, and `tf32` with flushed subnormals.
fn width(ty: u32) -> Option<usize> {
    [1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4].get(ty as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Valid map of a tensor of halves.
    const PLAIN: TiledTensor<'_> = TiledTensor {
        ty: 6,
        address: 0x1000,
        sizes: &[100, 7, 9],
        strides: &[208, 1456],
        extents: &[64, 8, 1],
        steps: &[1, 2, 1],
        interleave: 0,
        swizzle: 3,
        promotion: 2,
        fill: 0,
    };

    #[test]
    fn maps_are_made() {
        let map = PLAIN.map().unwrap();
        assert_eq!((map.width, map.rank, map.address, map.swizzle), (2, 3, 0x1000, Swizzle::Bytes128));
        assert_eq!((map.sizes, map.strides), ([100, 7, 9, 1, 1], [2, 208, 1456, 0, 0]));
        assert_eq!((map.extents, map.steps), ([64, 8, 1, 1, 1], [1, 2, 1, 1, 1]));
        assert_eq!(TiledTensor { extents: &[32, 8, 1], swizzle: 2, ..PLAIN }.map().unwrap().swizzle, Swizzle::Bytes64);
        assert!(TiledTensor { sizes: &[1 << 32, 1, 1], strides: &[16, (1 << 40) - 16], ..PLAIN }.map().is_ok());
        assert!(TiledTensor { extents: &[256, 256, 256], swizzle: 0, ..PLAIN }.map().is_ok());
    }

    #[test]
    fn maps_that_are_wrong() {
        let wrong = [
            TiledTensor { ty: 13, ..PLAIN },
            TiledTensor { sizes: &[], strides: &[], extents: &[], steps: &[], ..PLAIN },
            TiledTensor { address: 0x1008, ..PLAIN },
            TiledTensor { sizes: &[100, 0, 9], ..PLAIN },
            TiledTensor { sizes: &[100, 7, (1 << 32) + 1], ..PLAIN },
            TiledTensor { strides: &[200, 1456], ..PLAIN },
            TiledTensor { strides: &[208, 1 << 40], ..PLAIN },
            TiledTensor { extents: &[64, 0, 1], ..PLAIN },
            TiledTensor { extents: &[64, 257, 1], ..PLAIN },
            TiledTensor { extents: &[60, 8, 1], ..PLAIN },
            TiledTensor { extents: &[72, 8, 1], ..PLAIN },
            TiledTensor { swizzle: 2, ..PLAIN },
            TiledTensor { swizzle: 4, ..PLAIN },
            TiledTensor { steps: &[1, 9, 1], ..PLAIN },
            TiledTensor { steps: &[1, 0, 1], ..PLAIN },
            TiledTensor { interleave: 3, ..PLAIN },
            TiledTensor { promotion: 4, ..PLAIN },
            TiledTensor { fill: 2, ..PLAIN },
        ];
        for wrong in wrong {
            assert_eq!(wrong.map(), Err(Status::INVALID_VALUE), "{wrong:?}");
        }
        assert_eq!(TiledTensor { fill: 1, ..PLAIN }.map(), Err(Status::NOT_SUPPORTED));
    }
}
