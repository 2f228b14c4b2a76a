//! Differential testing: the evaluator, the evaluator after passes, and the platform run the same program.
//!
//! Further checks: round trips through text and protobuf, the platform without optimization, and a second run of the
//! platform.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xla::{
    Buffer, Client, CompilationCache, CompileOptions, Error, ExecuteOptions, LoadedExecutable, OptLevel,
    PlatformRegistry, Result,
};
use xla_hlo::eval::evaluate;
use xla_hlo::text::parse_module;
use xla_hlo::{CompId, Literal, Module, VerifiedModule, proto};

use crate::program::Program;

/// Compares a platform with the evaluator.
pub struct Differential {
    client: Client,
    options: CompileOptions,
}

/// Checks in addition to the comparison with the platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    /// Whether the module, before and after passes, is checked to survive round trips through text and protobuf.
    pub text: bool,
    /// Whether the platform is checked without optimization as well.
    pub unoptimized: bool,
    /// Whether a second compilation is checked to give the same module and the same bits.
    pub again: bool,
}

impl Modes {
    /// All checks.
    pub const ALL: Modes = Modes { text: true, unoptimized: true, again: true };

    /// Returns the checks of a generated program. Text is always checked, the others for every third pair of seeds
    /// each, since all checks for each program would take twice as long.
    pub fn of_seed(seed: u64) -> Modes {
        Modes { text: true, unoptimized: seed / 2 % 3 == 1, again: seed / 2 % 3 == 2 }
    }
}

/// Failure of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Kind of the failure.
    pub kind: FailureKind,
    /// Details of the failure.
    pub message: String,
}

/// Kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureKind {
    /// Invalid program, or a program that the evaluator cannot run.
    Generator,
    /// Crash of the process that compiled or ran the program.
    Crash,
    /// Exceeded time limit.
    Hang,
    /// Change of the program in a round trip through text.
    Text,
    /// Change of the program in a round trip through protobuf.
    Proto,
    /// Compilation failed.
    Compile,
    /// Execution failed.
    Run,
    /// Results changed by the passes.
    Passes,
    /// Results that differ on the platform, although the passes preserve them.
    Platform,
    /// Failure or different results of the second run, with all arguments donated.
    SecondRun,
    /// Different results without optimization.
    Unoptimized,
    /// Different module or bits from a second compilation.
    Again,
}

impl Differential {
    /// Creates a comparison for the first device of a platform.
    pub fn new(registry: &PlatformRegistry, platform: &str, options: CompileOptions) -> Result<Differential> {
        // No cache: each program is compiled once.
        let cache = Arc::new(CompilationCache::new(0));
        Ok(Differential { client: Client::for_device(registry, platform, 0, cache)?, options })
    }

    /// Checks a program in all modes; `None` if all results agree. Returns an error if the program is invalid or the
    /// evaluator fails.
    pub fn failure(&self, program: &Program) -> Result<Option<Failure>> {
        self.failure_in(program, Modes::ALL)
    }

    /// Checks a program like [`Differential::failure`], in some modes.
    pub fn failure_in(&self, program: &Program, modes: Modes) -> Result<Option<Failure>> {
        let module = VerifiedModule::new(program.module.clone())?;
        let expected = evaluate(&module, program.arguments.clone())?;
        Ok(self.check(program, &module, &expected, modes).err())
    }

    fn check(
        &self,
        program: &Program,
        module: &VerifiedModule,
        expected: &Literal,
        modes: Modes,
    ) -> std::result::Result<(), Failure> {
        let same = |kind, actual: &Literal| fail_if(kind, difference(program, expected, actual));
        if modes.text {
            text_round_trip(module)?;
            proto_round_trip(module)?;
        }
        let compiled = self.client.compile(module, &self.options).map_err(is(FailureKind::Compile))?;
        if modes.text {
            text_round_trip(compiled.module())?;
            proto_round_trip(compiled.module())?;
        }
        same(FailureKind::Passes, &evaluated(compiled.module(), program).map_err(is(FailureKind::Passes))?)?;
        let [actual, donated] = run(&compiled, &program.arguments).map_err(is(FailureKind::Run))?;
        same(FailureKind::Platform, &actual)?;
        same(FailureKind::SecondRun, &donated)?;
        if modes.again {
            self.again(program, module, compiled.module(), &actual).map_err(is(FailureKind::Again))??;
        }
        if modes.unoptimized {
            let options = CompileOptions { opt_level: OptLevel::O0, ..self.options.clone() };
            let unoptimized = || run(&self.client.compile(module, &options)?, &program.arguments);
            let [actual, donated] = unoptimized().map_err(is(FailureKind::Unoptimized))?;
            same(FailureKind::Unoptimized, &actual)?;
            same(FailureKind::Unoptimized, &donated)?;
        }
        Ok(())
    }

    /// Compiles and runs the program again, and requires the same module and bits.
    fn again(
        &self,
        program: &Program,
        module: &VerifiedModule,
        first: &Module,
        actual: &Literal,
    ) -> Result<std::result::Result<(), Failure>> {
        let compiled = self.client.compile(module, &self.options)?;
        if compiled.module().to_string() != first.to_string() {
            let message = format!("compiled again it becomes another module:\n{}", compiled.module());
            return Ok(fail_if(FailureKind::Again, Some(message)));
        }
        let [again, _] = run(&compiled, &program.arguments)?;
        let message = (again != *actual).then(|| "compiled again it returns other bits".to_string());
        Ok(fail_if(FailureKind::Again, message))
    }

    /// Returns the text of the module after the platform's passes, for messages.
    pub fn optimized(&self, program: &Program) -> Result<String> {
        let module = VerifiedModule::new(program.module.clone())?;
        Ok(self.client.compile(&module, &self.options)?.module().to_string())
    }
}

/// Returns a function that converts an error to a failure of a kind.
fn is(kind: FailureKind) -> impl Fn(Error) -> Failure {
    move |error| Failure { kind, message: error.to_string() }
}

fn fail_if(kind: FailureKind, message: Option<String>) -> std::result::Result<(), Failure> {
    message.map_or(Ok(()), |message| Err(Failure { kind, message }))
}

/// Checks that a module's text parses to a valid module with the same text.
fn text_round_trip(module: &Module) -> std::result::Result<(), Failure> {
    let text = module.to_string();
    let again = parse_module(&text).and_then(VerifiedModule::new).map_err(is(FailureKind::Text))?;
    let other = again.to_string();
    fail_if(FailureKind::Text, (other != text).then(|| format!("printed, read and printed it is:\n{other}")))
}

/// Checks that a module's protobuf parses to a valid module with the same text.
fn proto_round_trip(module: &Module) -> std::result::Result<(), Failure> {
    let module = with_unique_names(module);
    let again = proto::serialize_module(&module).and_then(|message| proto::parse_module(&message));
    let again = again.and_then(VerifiedModule::new).map_err(is(FailureKind::Proto))?;
    let (text, other) = (module.to_string(), again.to_string());
    fail_if(FailureKind::Proto, (other != text).then(|| format!("written and read it is:\n{other}")))
}

/// Returns the module with instruction names that are unique in the whole module, as protobuf requires.
fn with_unique_names(module: &Module) -> Module {
    let mut module = module.clone();
    let ids: Vec<CompId> = module.ids().collect();
    for (i, id) in ids.into_iter().enumerate() {
        let computation = module.computation_mut(id);
        for (place, instruction) in computation.post_order().into_iter().enumerate() {
            computation.rename(instruction, &format!("v{i}-{place}"));
        }
    }
    module
}

/// Evaluates a module; a panic of the evaluator becomes an error.
pub(crate) fn evaluated(module: &Module, program: &Program) -> Result<Literal> {
    let work = || evaluate(module, program.arguments.clone());
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Error::internal("the evaluator panicked")))
}

/// Runs the program twice on its platform: once keeping all arguments that need not be donated, once donating all.
fn run(compiled: &LoadedExecutable, arguments: &[Literal]) -> Result<[Literal; 2]> {
    let aliases = &compiled.module().attributes().input_output_alias;
    let must = aliases.iter().filter(|alias| alias.must_alias).map(|alias| alias.parameter.parameter).collect();
    let launch = |donate: Vec<usize>| {
        let buffers = arguments.iter().enumerate().map(|(i, argument)| compiled.argument_buffer(i, argument));
        let buffers = buffers.collect::<Result<Vec<_>>>()?;
        let options = ExecuteOptions { donate: donate.into(), ..ExecuteOptions::default() };
        compiled.execute_with(&buffers.iter().collect::<Vec<_>>(), &options)
    };
    let (first, second) = (launch(must)?, launch((0..arguments.len()).collect())?);
    // Results are read only after both runs, so that a second run that overwrites results of the first is detected.
    let read = |results: Vec<Buffer>| -> Result<Literal> {
        Ok(Literal::tuple(results.iter().map(Buffer::to_literal).collect::<Result<_>>()?))
    };
    Ok([read(first)?, read(second)?])
}

/// Describes the first difference of two results.
pub(crate) fn difference(program: &Program, expected: &Literal, actual: &Literal) -> Option<String> {
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
