//! Coverage of operations by element type and platform, determined by compiling and running a small program for each.

mod page;
mod recipes;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xla::compare::Tolerance;
use xla::{
    Client, CompileOptions, Error, FallbackPolicy, Literal, LoadedExecutable, Module, PlatformRegistry, Result,
    VerifiedModule,
};
use xla_hlo::eval::Evaluator;
use xla_hlo::ops::{CustomCallContext, CustomCallRegistry};
use xla_hlo::text::parse_module;
use xla_hlo::{ElementType, Opcode};

use crate::generate::{Random, Temper, epsilon, literal};
pub use page::page;
pub(crate) use page::{STYLE, escaped, legend, table_html};
pub use recipes::{Check, Recipe, recipe, recipes};

/// Returns the program that tests an operation with an element type; `None` if the operation cannot be written as text.
pub fn program_text(opcode: Opcode, ty: ElementType) -> Option<String> {
    let (computations, entry) = match recipe(opcode)? {
        Recipe::Program { computations, entry, .. } => (computations, entry),
        Recipe::DeviceOnly(entry) => ("", entry),
    };
    Some(recipes::text(opcode, ty, computations, entry))
}

/// Status of an operation with an element type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// Combination that the shape rule does not allow.
    NotAllowed,
    /// Computed by the platform's own code, with the evaluator's results.
    Native,
    /// Computed by the evaluator on the host.
    Fallback,
    /// Declared failure, with its reason.
    Expected(String),
    /// Rejected by the platform as not supported.
    Refused(String),
    /// Failed in another manner, or with results that differ from the evaluator's.
    Wrong(String),
    /// Not implemented.
    Missing,
    /// Operation for more than one device and its memory. It is parsed, verified and printed, and the compiler rejects
    /// it by name.
    DeviceOnly,
}

/// Row of the table: one opcode.
#[derive(Clone, Debug)]
pub struct Row {
    /// Operation.
    pub opcode: Opcode,
    /// Statuses in the order of [`ElementType::ALL`].
    pub statuses: Vec<Status>,
}

/// Table of one platform.
#[derive(Clone, Debug)]
pub struct Table {
    /// Name of the platform.
    pub platform: String,
    /// Rows in the order of [`Opcode::ALL`].
    pub rows: Vec<Row>,
}

impl Table {
    /// Tests every opcode whose name contains `filter`.
    pub fn new(registry: &PlatformRegistry, platform: &str, filter: &str) -> Result<Table> {
        let trials = Trials::new(registry, platform)?;
        let row = |&opcode: &Opcode| {
            let status = |&ty: &ElementType| trials.status(opcode, ty);
            Row { opcode, statuses: ElementType::ALL.iter().map(status).collect() }
        };
        let chosen = Opcode::ALL.iter().filter(|opcode| opcode.name().contains(filter));
        Ok(Table { platform: platform.to_string(), rows: chosen.map(row).collect() })
    }

    /// Returns a table of the statuses that do not depend on the platform: combinations without a valid program.
    pub fn blank(platform: &str) -> Table {
        let row = |&opcode: &Opcode| {
            let status = |&ty: &ElementType| trial(opcode, ty).err().unwrap_or(Status::NotAllowed);
            Row { opcode, statuses: ElementType::ALL.iter().map(status).collect() }
        };
        let written = Opcode::ALL.iter().filter(|&&opcode| recipe(opcode).is_some());
        Table { platform: platform.to_string(), rows: written.map(row).collect() }
    }

    /// Sets a cell, if the table has it.
    pub fn set(&mut self, opcode: Opcode, ty: ElementType, status: Status) {
        let Some(column) = ElementType::ALL.iter().position(|&other| other == ty) else { return };
        if let Some(row) = self.rows.iter_mut().find(|row| row.opcode == opcode) {
            row.statuses[column] = status;
        }
    }

    /// Returns a cell, if the table has it.
    pub fn get(&self, opcode: Opcode, ty: ElementType) -> Option<&Status> {
        let column = ElementType::ALL.iter().position(|&other| other == ty)?;
        self.rows.iter().find(|row| row.opcode == opcode).map(|row| &row.statuses[column])
    }

    /// Returns all statuses with their operations and element types.
    pub fn cells(&self) -> impl Iterator<Item = (Opcode, ElementType, &Status)> {
        self.rows
            .iter()
            .flat_map(|row| ElementType::ALL.iter().zip(&row.statuses).map(|(&ty, status)| (row.opcode, ty, status)))
    }
}

/// Test of an operation with an element type.
pub struct Trial {
    /// Small program.
    pub module: VerifiedModule,
    /// Comparison of its results; `None` if compilation must refuse it.
    pub check: Option<Check>,
}

/// Returns the test of an operation with an element type, or the status if there is no valid program.
pub fn trial(opcode: Opcode, ty: ElementType) -> std::result::Result<Trial, Status> {
    trial_with(opcode, ty, str::to_string)
}

/// Returns a test like [`trial`], with a change of the program's text.
pub fn trial_with(
    opcode: Opcode,
    ty: ElementType,
    change: impl Fn(&str) -> String,
) -> std::result::Result<Trial, Status> {
    let recipe = recipe(opcode).filter(|_| opcode.is_implemented()).ok_or(Status::Missing)?;
    let check = match recipe {
        Recipe::Program { check, .. } => Some(check),
        Recipe::DeviceOnly(_) => None,
    };
    match program(opcode, recipe, ty, change) {
        Ok(module) => Ok(Trial { module, check }),
        Err(Error::Unimplemented(_)) => Err(Status::Missing),
        Err(_) => Err(Status::NotAllowed),
    }
}

/// Returns the registry with a handler for the target of the recipe of `custom-call`.
pub fn with_handler(registry: &PlatformRegistry) -> PlatformRegistry {
    let registry = registry.clone();
    let given = |_: &CustomCallContext<'_>, operands: Vec<Literal>| Ok(operands[0].clone());
    registry.custom_calls().register("coverage", Arc::new(given));
    registry
}

/// Platform that operations are tested on.
struct Trials {
    client: Client,
    custom_calls: CustomCallRegistry,
}

impl Trials {
    /// Creates a client of a platform.
    fn new(registry: &PlatformRegistry, platform: &str) -> Result<Trials> {
        let registry = with_handler(registry);
        Ok(Trials { client: Client::new(&registry, platform)?, custom_calls: registry.custom_calls().clone() })
    }

    /// Tests one operation with one element type.
    fn status(&self, opcode: Opcode, ty: ElementType) -> Status {
        let Trial { module, check } = match trial(opcode, ty) {
            Ok(trial) => trial,
            Err(status) => return status,
        };
        let work = || match check {
            Some(check) => self.tried(&module, ty, check),
            None => refused(&self.client, opcode, &module),
        };
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Status::Wrong("it panics".to_string()))
    }

    fn tried(&self, module: &VerifiedModule, ty: ElementType, check: Check) -> Status {
        let arguments = arguments(module);
        let mut evaluator = Evaluator::new(module).with_custom_calls(&self.custom_calls);
        let expected = match evaluator.call_entry(arguments.clone()) {
            Ok(expected) => expected,
            Err(error) => return Status::Wrong(format!("the evaluator: {error}")),
        };
        let (compiled, status) = match self.compile(module, FallbackPolicy::Forbid) {
            Ok(compiled) => (compiled, Status::Native),
            Err(Error::Unimplemented(_)) => match self.compile(module, FallbackPolicy::Allow) {
                Ok(compiled) => (compiled, Status::Fallback),
                Err(error @ Error::Unimplemented(_)) => return Status::Refused(error.to_string()),
                Err(error) => return Status::Wrong(error.to_string()),
            },
            Err(error) => return Status::Wrong(error.to_string()),
        };
        match compiled.run(arguments) {
            Ok(actual) => difference(&expected, &actual, ty, check).map_or(status, Status::Wrong),
            Err(error @ Error::Unimplemented(_)) => Status::Refused(error.to_string()),
            Err(error) => Status::Wrong(error.to_string()),
        }
    }

    fn compile(&self, module: &VerifiedModule, host_fallback: FallbackPolicy) -> Result<LoadedExecutable> {
        compile(&self.client, module, host_fallback)
    }
}

fn compile(client: &Client, module: &VerifiedModule, host_fallback: FallbackPolicy) -> Result<LoadedExecutable> {
    client.compile(module, &CompileOptions { host_fallback, ..CompileOptions::default() })
}

/// Checks that a program survives a round trip through text, and that compilation refuses it by the name of the opcode,
/// or of its `-start` operation.
pub fn refused(client: &Client, opcode: Opcode, module: &VerifiedModule) -> Status {
    let printed = module.to_string();
    if parse_module(&printed).ok().map(|again| again.to_string()) != Some(printed) {
        return Status::Wrong("it does not print back the same".to_string());
    }
    let name = opcode.name().trim_end_matches("-done");
    match compile(client, module, FallbackPolicy::Allow) {
        Err(error @ Error::Unimplemented(_)) if error.message().contains(name) => Status::DeviceOnly,
        Err(error) => Status::Wrong(error.to_string()),
        Ok(_) => Status::Wrong("it compiles".to_string()),
    }
}

/// Returns the program of a recipe for an element type.
fn program(opcode: Opcode, recipe: Recipe, ty: ElementType, change: impl Fn(&str) -> String) -> Result<VerifiedModule> {
    let (computations, entry) = match recipe {
        Recipe::Program { computations, entry, .. } => (computations, entry),
        Recipe::DeviceOnly(entry) => ("", entry),
    };
    parse_module(&change(&recipes::text(opcode, ty, computations, entry))).and_then(VerifiedModule::new)
}

/// Returns small numbers for each parameter, equal in every run.
pub fn arguments(module: &Module) -> Vec<Literal> {
    let mut random = Random::new(1);
    let entry = module.entry();
    let shapes = entry.parameters().iter().filter_map(|&id| entry[id].shape().as_array());
    shapes.map(|shape| literal(&mut random, &shape.clone().with_layout(None), Temper::Grid).0).collect()
}

fn difference(expected: &Literal, actual: &Literal, ty: ElementType, check: Check) -> Option<String> {
    // Results computed from narrow floats may differ by a rounding of that type, whatever the type of the result.
    let of_type = epsilon(ty);
    let (expected, actual) = (expected.leaves(), actual.leaves());
    expected.iter().zip(&actual).find_map(|(expected, actual)| {
        if expected.shape() != actual.shape() {
            return Some(format!("{}, expected {}", actual.shape(), expected.shape()));
        }
        let own = epsilon(expected.array_shape().element_type());
        let tolerance = 16.0 * own.max(if own > 0.0 { of_type } else { 0.0 });
        let tolerance = Tolerance { rtol: tolerance, atol: tolerance, signed_zero: false };
        if check == Check::Shapes { None } else { tolerance.difference(expected, actual) }
    })
}
