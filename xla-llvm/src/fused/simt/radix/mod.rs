//! Digits of keys, as many threads sort and select by them.
//!
//! ```text
//! histogram.rs  counts of digits in shared memory
//! plan.rs       the launches of a sort of rows, one digit after the other
//! sort.rs       their kernels
//!   count.rs      how often each digit is where
//!   rank.rs       moving elements to their places
//! ```
//!
//! `top_k/select.rs` selects by digits.

mod count;
pub(crate) mod histogram;
pub(crate) mod plan;
mod rank;
mod sort;

/// Bits of a digit.
pub(crate) const DIGIT_BITS: u32 = 8;
/// Digits that differ.
pub(crate) const DIGITS: u64 = 1 << DIGIT_BITS;
