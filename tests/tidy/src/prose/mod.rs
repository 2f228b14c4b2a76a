//! The rules for the prose of comments: openings of documentation, and a budget of phrasings that are hard to read.

mod budget;
mod markers;
mod openings;

pub use budget::{BUDGET, Counts, check as check_budget};
pub use openings::check as check_openings;
