//! Level 5: generated programs, compared between the evaluator, the passes and the platform, also without optimization
//! and in a second run.

use xla::CompileOptions;

use super::Sizes;
use crate::conformance::case::{Case, Check, Level, Stop, Subject};
use crate::differential::{Differential, FailureKind, Modes};
use crate::generate::{Family, program};
use crate::program::Program;

pub fn cases(sizes: &Sizes) -> Vec<Case> {
    // Programs with large arrays take long, and few of them find all bugs that they can find.
    let count = |family| if family == Family::Large { sizes.generated.div_ceil(8) } else { sizes.generated };
    let case = |family: Family, seed: u64| {
        Case::new(Level::Generated, format!("{}/{seed}", family.name()), move |subject| {
            agree(subject, &program(family, seed), Modes::of_seed(seed))
        })
    };
    Family::ALL.into_iter().flat_map(|family| (0..count(family)).map(move |seed| case(family, seed))).collect()
}

/// Compares the platform with the evaluator on one program.
pub(super) fn agree(subject: &Subject, program: &Program, modes: Modes) -> Check {
    let differential = Differential::new(subject.registry(), subject.name(), CompileOptions::default())?;
    let failure = differential.failure_in(program, modes)?;
    let Some(failure) = failure else { return Ok(()) };
    let whose = match failure.kind {
        FailureKind::Passes => "the passes changed it",
        FailureKind::Platform => "the platform's code: the module after its passes evaluates to the expected results",
        FailureKind::SecondRun => "only with its arguments donated",
        FailureKind::Unoptimized => "without optimisation",
        FailureKind::Again => "compiled a second time",
        FailureKind::Compile => "it does not compile",
        FailureKind::Run => "it does not run",
        FailureKind::Text => "its text",
        FailureKind::Proto => "its protobuf",
        FailureKind::Generator | FailureKind::Crash | FailureKind::Hang => "the program itself",
    };
    Err(Stop::Failed(format!("{}\n{whose}", failure.message)))
}
