//! Level 6: failures return an error with cause and location, leak nothing, and do not affect the next execution.

mod allocations;
mod cancel;
mod endurance;
mod faults;
mod samples;

use super::Sizes;
use crate::conformance::case::Case;

pub fn cases(sizes: &Sizes) -> Vec<Case> {
    [allocations::cases(sizes), faults::cases(sizes), cancel::cases(), endurance::cases(sizes)]
        .into_iter()
        .flatten()
        .collect()
}
