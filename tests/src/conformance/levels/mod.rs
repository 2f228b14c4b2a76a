//! The cases, a file for each subject.

mod copies;
mod corpus;
mod generated;
mod idioms;
mod memory;
mod operations;
mod programs;
mod registration;
mod resilience;
mod streams;
mod support;
mod transfer;

use super::case::{Case, Level};

/// Numbers of programs and values.
pub(super) struct Sizes {
    /// Suites of the corpus; all that run on one device unless chosen.
    pub corpus: Option<Vec<String>>,
    /// Generated programs of each family.
    pub generated: u64,
    /// Whether to be quick about it.
    pub quick: bool,
}

/// The cases of a level.
pub(super) fn cases(level: Level, sizes: &Sizes) -> Vec<Case> {
    match level {
        Level::Registration => registration::cases(),
        Level::Device => {
            [memory::cases(), copies::cases(), streams::cases(), transfer::cases()].into_iter().flatten().collect()
        }
        Level::Operations => operations::cases(sizes),
        Level::Programs => programs::cases(),
        Level::Corpus => corpus::cases(sizes),
        Level::Generated => [generated::cases(sizes), idioms::cases(sizes)].into_iter().flatten().collect(),
        Level::Resilience => resilience::cases(sizes),
    }
}
