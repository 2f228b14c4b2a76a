//! `mma.sync`: a product of matrices whose elements are spread over the lanes of a warp, by the PTX ISA's figures of fragments.
//!
//! With `group = lane / 4` and `within = lane % 4`, for factors of 16 bits, two elements a register, numbered within a lane:
//!
//! | matrix | rows | columns |
//! | --- | --- | --- |
//! | A, 16 x depth | `group`, and 8 more for elements 2, 3, 6, 7 | `2 * within + i % 2`, and 8 more from element 4 on |
//! | B, depth x 8 | `2 * within + i % 2`, and 8 more from element 2 on | `group` |
//! | C and D, 16 x 8 | `group`, and 8 more for elements 2, 3 | `2 * within + i % 2` |
//!
//! Products are exact, as on the device; they are added in `f64` and rounded once, where the device may lose some bits more.

use super::shadow::LANES_OF_WARP;
use crate::code::Fragments;
use crate::code::round::{nearest, read};

const ROWS: usize = 16;
const COLUMNS: usize = 8;

/// The registers of D by lane, from those of A, B and C.
pub(super) fn multiply(fragments: Fragments, a: &[u32], b: &[u32], c: &[u32]) -> Vec<u32> {
    let depth = fragments.depth;
    let factor = |registers: &[u32], lane: usize, count: usize, element: usize| {
        read(fragments.factors, u64::from(registers[lane * count + element / 2] >> (element % 2 * 16)))
    };
    let mut left = vec![0.0; ROWS * depth];
    let mut right = vec![0.0; depth * COLUMNS];
    for lane in 0..LANES_OF_WARP {
        let (group, within) = (lane / 4, lane % 4);
        for element in 0..depth / 2 {
            let row = group + if element % 4 < 2 { 0 } else { 8 };
            let column = 2 * within + element % 2 + if element < 4 { 0 } else { 8 };
            left[row * depth + column] = factor(a, lane, depth / 4, element);
        }
        for element in 0..depth / 4 {
            let row = 2 * within + element % 2 + if element < 2 { 0 } else { 8 };
            right[row * COLUMNS + group] = factor(b, lane, depth / 8, element);
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
