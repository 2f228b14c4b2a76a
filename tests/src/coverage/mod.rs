//! Which operation works on which element type on which platform, found out by compiling and running a tiny program for each.

mod page;
mod recipes;

use std::panic::{AssertUnwindSafe, catch_unwind};

use xla::compare::Tolerance;
use xla::{Client, CompileOptions, Error, FallbackPolicy, Literal, Module, PlatformRegistry, Result, VerifiedModule};
use xla_hlo::eval::evaluate;
use xla_hlo::text::parse_module;
use xla_hlo::{ElementType, Opcode};

use crate::generate::{Random, Temper, epsilon, literal};
pub use page::page;
pub(crate) use page::{STYLE, escaped, legend, table_html};
pub use recipes::{Check, Recipe, recipe};

/// How an operation fares with an element type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// The shape rule forbids it.
    NotAllowed,
    /// The platform's own code gives what the evaluator gives.
    Native,
    /// The host evaluates it.
    Fallback,
    /// It fails, and that is declared, for this reason.
    Expected(String),
    /// The platform says that it cannot.
    Refused(String),
    /// It fails otherwise, or gives something else than the evaluator.
    Wrong(String),
    /// The operation is not there at all.
    Missing,
    /// It is not tried by itself, and why.
    NotAlone(&'static str),
}

/// One opcode's line of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// The operation.
    pub opcode: Opcode,
    /// In the order of [`ElementType::ALL`].
    pub statuses: Vec<Status>,
}

/// The table of one platform.
#[derive(Clone, Debug)]
pub struct Table {
    /// The platform.
    pub platform: String,
    /// In the order of [`Opcode::ALL`].
    pub rows: Vec<Row>,
}

impl Table {
    /// Tries every opcode whose name contains `filter`.
    pub fn new(registry: &PlatformRegistry, platform: &str, filter: &str) -> Result<Table> {
        let client = Client::new(registry, platform)?;
        let row = |&opcode: &Opcode| {
            let status = |&ty: &ElementType| status(&client, opcode, ty);
            Row { opcode, statuses: ElementType::ALL.iter().map(status).collect() }
        };
        let chosen = Opcode::ALL.iter().filter(|opcode| opcode.name().contains(filter));
        Ok(Table { platform: platform.to_string(), rows: chosen.map(row).collect() })
    }

    /// A table of what can be known without the platform: what is missing, and what is not tried by itself.
    pub fn blank(platform: &str) -> Table {
        let row = |&opcode: &Opcode| {
            let status = |&ty: &ElementType| program(opcode, ty).err().unwrap_or(Status::NotAllowed);
            Row { opcode, statuses: ElementType::ALL.iter().map(status).collect() }
        };
        Table { platform: platform.to_string(), rows: Opcode::ALL.iter().map(row).collect() }
    }

    /// Sets a cell, if the table has it.
    pub fn set(&mut self, opcode: Opcode, ty: ElementType, status: Status) {
        let Some(column) = ElementType::ALL.iter().position(|&other| other == ty) else { return };
        if let Some(row) = self.rows.iter_mut().find(|row| row.opcode == opcode) {
            row.statuses[column] = status;
        }
    }

    /// A cell, if the table has it.
    pub fn get(&self, opcode: Opcode, ty: ElementType) -> Option<&Status> {
        let column = ElementType::ALL.iter().position(|&other| other == ty)?;
        self.rows.iter().find(|row| row.opcode == opcode).map(|row| &row.statuses[column])
    }

    /// All statuses with their places.
    pub fn cells(&self) -> impl Iterator<Item = (Opcode, ElementType, &Status)> {
        self.rows
            .iter()
            .flat_map(|row| ElementType::ALL.iter().zip(&row.statuses).map(|(&ty, status)| (row.opcode, ty, status)))
    }
}

/// The tiny program that uses an opcode on an element type, and how its results are compared; a status where there is none.
pub fn program(opcode: Opcode, ty: ElementType) -> std::result::Result<(VerifiedModule, Check), Status> {
    program_with(opcode, ty, str::to_string)
}

/// The same with something changed in its text.
pub fn program_with(
    opcode: Opcode,
    ty: ElementType,
    change: impl Fn(&str) -> String,
) -> std::result::Result<(VerifiedModule, Check), Status> {
    let (computations, entry, check) = match recipe(opcode) {
        Recipe::Program { computations, entry, check } => (computations, entry, check),
        Recipe::NotAlone(why) => return Err(Status::NotAlone(why)),
    };
    if !opcode.is_implemented() {
        return Err(Status::Missing);
    }
    let text = change(&recipes::text(opcode, ty, computations, entry));
    match parse_module(&text).and_then(VerifiedModule::new) {
        Ok(module) => Ok((module, check)),
        Err(Error::Unimplemented(_)) => Err(Status::Missing),
        Err(_) => Err(Status::NotAllowed),
    }
}

/// Tries one operation on one element type.
pub fn status(client: &Client, opcode: Opcode, ty: ElementType) -> Status {
    let (module, check) = match program(opcode, ty) {
        Ok(program) => program,
        Err(status) => return status,
    };
    let work = || tried(client, &module, ty, check);
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Status::Wrong("it panics".to_string()))
}

/// Why the recipe of an opcode is no program for a type; for tests and people.
pub fn refusal(opcode: Opcode, ty: ElementType) -> Option<String> {
    let Recipe::Program { computations, entry, .. } = recipe(opcode) else { return None };
    let text = recipes::text(opcode, ty, computations, entry);
    parse_module(&text).and_then(VerifiedModule::new).err().map(|error| error.to_string())
}

fn tried(client: &Client, module: &VerifiedModule, ty: ElementType, check: Check) -> Status {
    let arguments = arguments(module);
    let expected = match evaluate(module, arguments.clone()) {
        Ok(expected) => expected,
        Err(error) => return Status::Wrong(format!("the evaluator: {error}")),
    };
    let compile =
        |host_fallback| client.compile(module, &CompileOptions { host_fallback, ..CompileOptions::default() });
    let (compiled, status) = match compile(FallbackPolicy::Forbid) {
        Ok(compiled) => (compiled, Status::Native),
        Err(Error::Unimplemented(_)) => match compile(FallbackPolicy::Allow) {
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

/// Small numbers for each parameter, the same every time.
pub fn arguments(module: &Module) -> Vec<Literal> {
    let mut random = Random::new(1);
    let entry = module.entry();
    let shapes = entry.parameters().iter().filter_map(|&id| entry[id].shape().as_array());
    shapes.map(|shape| literal(&mut random, &shape.clone().with_layout(None), Temper::Grid).0).collect()
}

fn difference(expected: &Literal, actual: &Literal, ty: ElementType, check: Check) -> Option<String> {
    // What is computed from narrow floats is off by a rounding of theirs, whatever the type of the result.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_recipe_is_a_program_for_some_type() {
        for &opcode in Opcode::ALL.iter().filter(|opcode| opcode.is_implemented()) {
            if let Recipe::Program { .. } = recipe(opcode) {
                let refusals = ElementType::ALL.iter().map(|&ty| refusal(opcode, ty));
                let refusals: Vec<String> = refusals.map_while(|refusal| refusal).collect();
                assert!(refusals.len() < ElementType::ALL.len(), "{opcode}: {}", refusals.last().unwrap());
            }
        }
    }

    #[test]
    fn what_is_allowed_works_on_both_platforms() {
        for platform in ["cpu", "interpreter"] {
            let table = Table::new(&xla::registry(), platform, "").unwrap();
            let wrong: Vec<String> = table
                .cells()
                .filter(|(.., status)| matches!(status, Status::Wrong(_)))
                .map(|(opcode, ty, status)| format!("{opcode} of {ty}: {status:?}"))
                .collect();
            assert!(wrong.is_empty(), "{platform}:\n{}", wrong.join("\n"));
        }
    }
}
