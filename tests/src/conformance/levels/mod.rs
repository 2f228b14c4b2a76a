//! Cases, one file for each subject.

mod copies;
mod corpus;
mod devices;
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
pub(crate) use programs::files as program_files;

/// Numbers of programs and values.
pub(super) struct Sizes {
    /// Suites of the corpus; by default all that run on one device.
    pub corpus: Option<Vec<String>>,
    /// Number of generated programs of each family.
    pub generated: u64,
    /// Whether the run is a quick one.
    pub quick: bool,
}

/// Returns the cases of a level.
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
        Level::Devices => devices::cases(sizes),
    }
}
