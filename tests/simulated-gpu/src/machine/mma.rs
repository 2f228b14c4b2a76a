//! `mma.sync`: a matrix multiply-accumulate whose elements are distributed over the lanes of a warp as the PTX ISA
//! specifies.
//!
//! Let `group = lane / 4` and `within = lane % 4`, and `i` be the index of an element of a lane. A register holds two
//! elements of 16 bits or one of TF32:
//!
//! | matrix | rows | columns |
//! | --- | --- | --- |
//! | A, 16 x depth, of 16 bits | `group`, and 8 more for elements 2, 3, 6, 7 | `2 * within + i % 2`, and 8 more from element 4 on |
//! | A of TF32 | `group`, and 8 more for elements 1, 3 | `within`, and 4 more from element 2 on |
//! | B, depth x 8, of 16 bits | `2 * within + i % 2`, and 8 more from element 2 on | `group` |
//! | B of TF32 | `within`, and 4 more for element 1 | `group` |
//! | C and D, 16 x 8 | `group`, and 8 more for elements 2, 3 | `2 * within + i % 2` |
//!
//! Products are exact, as on the device. Sums are computed in `f64` and rounded once; the device may lose a few more
//! bits.

use super::access::LANES_OF_WARP;
use crate::code::round::{nearest, read};
use crate::code::{Fragments, TypeKind};

const ROWS: usize = 16;
const COLUMNS: usize = 8;

/// Computes the registers of D by lane from those of A, B and C.
pub(super) fn multiply(fragments: Fragments, a: &[u32], b: &[u32], c: &[u32]) -> Vec<u32> {
    let depth = fragments.depth;
    let in_a_register = 32 / fragments.factors.bits as usize;
    // Returns element number `element` of the `count` elements of a lane.
    let factor = |registers: &[u32], lane: usize, count: usize, element: usize| {
        let register = registers[(lane * count + element) / in_a_register];
        let shift = element % in_a_register * fragments.factors.bits as usize;
        read(fragments.factors, u64::from(register >> shift))
    };
    let is_tensor = fragments.factors.kind == TypeKind::Tensor;
    let mut left = vec![0.0; ROWS * depth];
    let mut right = vec![0.0; depth * COLUMNS];
    for lane in 0..LANES_OF_WARP {
        let (group, within) = (lane / 4, lane % 4);
        for element in 0..depth / 2 {
            let (row, column) = match is_tensor {
                true => (group + element % 2 * 8, within + element / 2 * 4),
                false => (group + element / 2 % 2 * 8, 2 * within + element % 2 + element / 4 * 8),
            };
            left[row * depth + column] = factor(a, lane, depth / 2, element);
        }
        for element in 0..depth / 4 {
            let row = match is_tensor {
                true => within + element * 4,
                false => 2 * within + element % 2 + element / 2 * 8,
            };
            right[row * COLUMNS + group] = factor(b, lane, depth / 4, element);
        }
    }
    let mut results = Vec::with_capacity(LANES_OF_WARP * 4);
    for lane in 0..LANES_OF_WARP {
        let sums: Vec<u64> = (0..4)
            .map(|element| {
                let (row, column) = (lane / 4 + element / 2 * 8, 2 * (lane % 4) + element % 2);
                let products = (0..depth).map(|k| left[row * depth + k] * right[k * COLUMNS + column]);
                nearest(fragments.sums, products.sum::<f64>() + addend(fragments, c, lane, element))
            })
            .collect();
        match fragments.sums.bits {
            32 => results.extend(sums.iter().map(|&sum| sum as u32)),
            _ => results.extend(sums.chunks(2).map(|pair| (pair[0] | pair[1] << 16) as u32)),
        }
    }
    results
}

fn addend(fragments: Fragments, c: &[u32], lane: usize, element: usize) -> f64 {
    let bits = match fragments.sums.bits {
        32 => c[lane * 4 + element],
        _ => c[lane * 2 + element / 2] >> (element % 2 * 16),
    };
    read(fragments.sums, u64::from(bits))
}
