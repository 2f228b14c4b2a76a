//! The same program by the reference evaluator, by the evaluator after a platform's passes, and on the platform.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use xla::compare::Tolerance;
use xla::{
    Buffer, Client, CompilationCache, CompileOptions, Error, ExecuteOptions, LoadedExecutable, PlatformRegistry, Result,
};
use xla_hlo::eval::evaluate;
use xla_hlo::{Literal, Module, VerifiedModule};

use crate::generate::{Noise, Numbers, epsilon, least};
use crate::program::Program;

/// Compares a platform with the evaluator.
pub struct Differential {
    client: Client,
    options: CompileOptions,
}

/// How a program went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What was wrong.
    pub kind: FailureKind,
    /// The details.
    pub message: String,
}

/// What was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// It did not compile.
    Compile,
    /// It did not run.
    Run,
    /// The passes changed what it means.
    Passes,
    /// The passes kept the meaning; the platform computes something else.
    Platform,
    /// It ran well, but not when it was run again with its arguments donated.
    SecondRun,
}

impl Differential {
    /// Compares the first device of a platform.
    pub fn new(registry: &PlatformRegistry, platform: &str, options: CompileOptions) -> Result<Differential> {
        // Programs come once.
        let cache = Arc::new(CompilationCache::new(0));
        Ok(Differential { client: Client::for_device(registry, platform, 0, cache)?, options })
    }

    /// `None` if everybody agrees. The error says that the program is none: that it breaks a rule, or that the evaluator fails.
    pub fn failure(&self, program: &Program) -> Result<Option<Failure>> {
        let module = VerifiedModule::new(program.module.clone())?;
        let expected = evaluate(&module, program.arguments.clone())?;
        let fail = |kind, message: String| Ok(Some(Failure { kind, message }));
        let compiled = match self.client.compile(&module, &self.options) {
            Ok(compiled) => compiled,
            Err(error) => return fail(FailureKind::Compile, error.to_string()),
        };
        match evaluated(compiled.module(), program) {
            Ok(actual) => {
                if let Some(difference) = difference(program, &expected, &actual) {
                    return fail(FailureKind::Passes, difference);
                }
            }
            Err(error) => return fail(FailureKind::Passes, error.to_string()),
        }
        match run(&compiled, &program.arguments) {
            Ok([actual, again]) => match difference(program, &expected, &actual) {
                Some(difference) => fail(FailureKind::Platform, difference),
                None => match difference(program, &expected, &again) {
                    Some(difference) => fail(FailureKind::SecondRun, difference),
                    None => Ok(None),
                },
            },
            Err(error) => fail(FailureKind::Run, error.to_string()),
        }
    }

    /// The module after the platform's passes, as text, for a message.
    pub fn optimized(&self, program: &Program) -> Result<String> {
        let module = VerifiedModule::new(program.module.clone())?;
        Ok(self.client.compile(&module, &self.options)?.module().to_string())
    }
}

/// The module by the evaluator, whose panic is an error.
fn evaluated(module: &Module, program: &Program) -> Result<Literal> {
    let work = || evaluate(module, program.arguments.clone());
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Error::internal("the evaluator panicked")))
}

/// The program on its platform, run twice: once keeping the arguments that it may keep, once donating all.
fn run(compiled: &LoadedExecutable, arguments: &[Literal]) -> Result<[Literal; 2]> {
    let aliases = &compiled.module().attributes().input_output_alias;
    let must = aliases.iter().filter(|alias| alias.must_alias).map(|alias| alias.parameter.parameter).collect();
    let launch = |donate: Vec<usize>| {
        let buffers = arguments.iter().enumerate().map(|(i, argument)| compiled.argument_buffer(i, argument));
        let buffers = buffers.collect::<Result<Vec<_>>>()?;
        let options = ExecuteOptions { donate, ..ExecuteOptions::default() };
        compiled.execute_with(&buffers.iter().collect::<Vec<_>>(), &options)
    };
    let (first, second) = (launch(must)?, launch((0..arguments.len()).collect())?);
    // Only now, so that the second run cannot disturb what the first one gave.
    let read = |results: Vec<Buffer>| -> Result<Literal> {
        Ok(Literal::tuple(results.iter().map(Buffer::to_literal).collect::<Result<_>>()?))
    };
    Ok([read(first)?, read(second)?])
}

/// How the first result that differs differs.
fn difference(program: &Program, expected: &Literal, actual: &Literal) -> Option<String> {
    let (expected, actual) = (expected.leaves(), actual.leaves());
    if expected.len() != actual.len() {
        return Some(format!("{} results, expected {}", actual.len(), expected.len()));
    }
    let results = expected.iter().zip(&actual).zip(&program.outputs).enumerate();
    results.into_iter().find_map(|(i, ((expected, actual), output))| {
        if expected.shape() != actual.shape() {
            return Some(format!("result {i} is {}, expected {}", actual.shape(), expected.shape()));
        }
        let tolerance = program.tolerance(*output);
        let difference = tolerance.difference(expected, actual)?;
        Some(format!("result {i}, {}: {difference}", expected.shape()))
    })
}

/// How far results of those numbers may be apart.
pub(crate) fn tolerance(ty: xla_hlo::ElementType, numbers: &Numbers) -> Tolerance {
    let (rtol, atol) = match numbers.noise {
        Noise::None => (0.0, 0.0),
        Noise::Ulps(ulps) => (ulps * epsilon(ty), ulps * least(ty)),
        Noise::Absolute(noise) => (0.0, noise),
    };
    Tolerance { rtol, atol, signed_zero: numbers.is_exact() && numbers.zeros }
}
