//! Attribution of a wrong result to the passes or the platform: the evaluator runs the module after passes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use xla::compare::Tolerance;
use xla::{Error, Literal, LoadedExecutable, Result};
use xla_hlo::eval::Evaluator;

use super::case::{Check, Stop};

/// Compares results with the expected ones, array by array, each within its own tolerance.
pub fn difference(
    expected: &[&Literal],
    actual: &[&Literal],
    tolerance: &dyn Fn(usize) -> Tolerance,
) -> Option<String> {
    if expected.len() != actual.len() {
        return Some(format!("{} results, expected {}", actual.len(), expected.len()));
    }
    expected.iter().zip(actual).enumerate().find_map(|(i, (expected, actual))| {
        if expected.shape() != actual.shape() {
            return Some(format!("result {i} is {}, expected {}", actual.shape(), expected.shape()));
        }
        let difference = tolerance(i).difference(expected, actual)?;
        Some(format!("result {i}, {}: {difference}", expected.shape()))
    })
}

/// Fails if results differ from the expected ones, and reports whether the passes or the platform's code caused it.
pub fn same(
    compiled: &LoadedExecutable,
    parameters: &[Literal],
    expected: &Literal,
    actual: &Literal,
    tolerance: &dyn Fn(usize) -> Tolerance,
) -> Check {
    let differ = |actual: &Literal| difference(&expected.leaves(), &actual.leaves(), tolerance);
    let Some(found) = differ(actual) else { return Ok(()) };
    let verdict = match optimized(compiled, parameters) {
        Ok(value) if differ(&value).is_none() => {
            "the platform's code: the module after its passes evaluates to the expected results".to_string()
        }
        Ok(value) if value == *actual => {
            "the passes changed it: the evaluator returns the same for their module".into()
        }
        Ok(value) => {
            format!("the passes changed it: the evaluator finds {}", differ(&value).unwrap_or_default())
        }
        Err(error) => format!("perhaps the passes: their module cannot be evaluated: {error}"),
    };
    Err(Stop::Failed(format!("{found}\n{verdict}")))
}

/// Evaluates the module after the passes.
fn optimized(compiled: &LoadedExecutable, parameters: &[Literal]) -> Result<Literal> {
    let module = compiled.module();
    let work = || Evaluator::new(module).call_entry(parameters.to_vec());
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Error::internal("the evaluator panicked")))
}
