//! Radix sort and selection by digits of keys.
//!
//! ```text
//! histogram.rs  histogram of digits in shared memory
//! plan.rs       the launches of a radix sort of rows
//! sort.rs       their kernels
//!   count.rs      histograms of tiles and their prefix sums
//!   rank.rs       moves of elements to their positions
//! ```
//!
//! `top_k/select.rs` selects by digits.

mod count;
pub(crate) mod histogram;
pub(crate) mod plan;
mod rank;
mod sort;

/// Width of a digit in bits.
pub(crate) const DIGIT_BITS: u32 = 8;
/// Number of different digits.
pub(crate) const DIGITS: u64 = 1 << DIGIT_BITS;
