//! Check of each pass in isolation: it preserves the results of a program, and reaches a fixpoint.

use xla_hlo::eval::evaluate;
use xla_hlo::{Error, Literal, Module, Result, VerifiedModule};
use xla_passes::{PassContext, PassOptions, Pipeline, TargetProfile, registry};

use crate::differential::{Failure, FailureKind, difference, evaluated};
use crate::program::Program;

/// Number of runs after which a pass must have reached a fixpoint.
const MOST_RUNS: usize = 12;

/// Runs each pass of the registry alone on the program until a fixpoint; `None` if all preserve the results. A pass is
/// skipped if it reports that it does not accept the program, or that it requires another pass first. Returns an error
/// if the program is invalid.
pub fn failure(program: &Program) -> Result<Option<Failure>> {
    let module = VerifiedModule::new(program.module.clone())?;
    let expected = evaluate(&module, program.arguments.clone())?;
    let profiles = [TargetProfile::able(), TargetProfile::poor()];
    let failed = |name: &str, message: String| Failure {
        kind: FailureKind::Passes,
        message: format!("pass {name} alone: {message}"),
    };
    for (name, _) in registry::list() {
        for profile in &profiles {
            if let Err(message) = check(name, profile, program, &module, &expected) {
                return Ok(Some(failed(name, message)));
            }
        }
    }
    Ok(None)
}

fn check(
    name: &str,
    profile: &TargetProfile,
    program: &Program,
    module: &Module,
    expected: &Literal,
) -> std::result::Result<(), String> {
    let mut after = module.clone();
    match at_rest(name, profile, &mut after) {
        Ok(true) => {}
        Ok(false) => return Ok(()),
        // Passes that require other passes first, or do not accept the program.
        Err(Error::FailedPrecondition(_) | Error::InvalidArgument(_) | Error::Unimplemented(_)) => return Ok(()),
        Err(error) => return Err(error.to_string()),
    }
    let actual = evaluated(&after, program).map_err(|error| format!("{error}\n{after}"))?;
    match difference(program, expected, &actual) {
        Some(difference) => Err(format!("{difference}\n{after}")),
        None => Ok(()),
    }
}

/// Runs a pass until a fixpoint; returns whether it changed anything.
pub fn at_rest(name: &str, profile: &TargetProfile, module: &mut Module) -> Result<bool> {
    let alone = Pipeline::fixed_point("alone", MOST_RUNS).boxed(registry::pass(name)?);
    let options = PassOptions { verify: true, ..PassOptions::default() };
    let report = alone.run(module, &PassContext::new(profile).with_options(options))?;
    match report.unfinished.is_empty() {
        true => Ok(report.is_changed()),
        false => Err(Error::internal(format!("it still changes something in run {MOST_RUNS}:\n{module}"))),
    }
}
