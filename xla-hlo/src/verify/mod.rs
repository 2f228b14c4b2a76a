//! Verifier: reports all violations in a module, and creates the [`VerifiedModule`] that compilers require.
//!
//! The checks are split by subject and run in this order. `calls` relies on `structure`, and the others rely on both:
//!
//! - `structure`: operands are live, the arity is right, the graph has no cycle, parameters are numbered without gaps;
//! - `calls`: called computations exist, the call graph is acyclic, fused computations have one caller;
//! - `shapes`: sizes are addressable, layouts fit, each result has the shape that its operation's rule infers;
//! - `pairs`: each start has one done, on the same channel;
//! - `header`: entry layout, aliasing and schedule agree with the computations.

mod calls;
mod header;
mod pairs;
mod shapes;
mod structure;

use std::fmt;
use std::ops::Deref;

use crate::{CompId, Computation, Error, InstrId, Module, Result};

/// Module that has passed the verifier. Compilers accept no other modules.
///
/// It is immutable; take the module out with [`VerifiedModule::into_inner`], edit it, and verify it again.
#[derive(Clone, Debug)]
pub struct VerifiedModule(Module);

impl VerifiedModule {
    /// Verifies a module. The error lists up to 20 violations and the number of further ones.
    pub fn new(module: Module) -> Result<VerifiedModule> {
        check(&module)?;
        Ok(VerifiedModule(module))
    }

    /// Returns the module for editing.
    pub fn into_inner(self) -> Module {
        self.0
    }
}

impl Deref for VerifiedModule {
    type Target = Module;
    fn deref(&self) -> &Module {
        &self.0
    }
}

/// Violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Location: `main`, or `%add.3 in main`; empty for the module itself.
    pub place: String,
    /// Rule that is violated, and the violation.
    pub rule: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.is_empty() { f.write_str(&self.rule) } else { write!(f, "{}: {}", self.place, self.rule) }
    }
}

/// Number of violations that an error message lists; the remaining ones are counted.
const LISTED: usize = 20;

/// Verifies a module in place. The error lists up to 20 violations and the number of further ones.
pub fn check(module: &Module) -> Result<()> {
    let violations = violations(module);
    if violations.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = violations.iter().take(LISTED).map(|v| v.to_string()).collect();
    let more = violations.len().saturating_sub(LISTED);
    let tail = if more > 0 { format!("\n  ... and {more} more") } else { String::new() };
    let count = match violations.len() {
        1 => "1 rule is broken".to_string(),
        n => format!("{n} rules are broken"),
    };
    Err(Error::invalid_argument(format!("module {} is not valid, {count}: {}{tail}", module.name(), list.join("\n  "))))
}

/// Returns the violations in a module, in the order of the checks. `calls` runs only if `structure` finds none;
/// `shapes`, `pairs` and `header` run only if neither of the two does.
pub fn violations(module: &Module) -> Vec<Violation> {
    let mut report = Report { module, found: Vec::new() };
    structure::check(&mut report);
    if report.found.is_empty() {
        calls::check(&mut report);
    }
    if report.found.is_empty() {
        shapes::check(&mut report);
        pairs::check(&mut report);
        header::check(&mut report);
    }
    report.found
}

/// Collector of violations.
struct Report<'m> {
    module: &'m Module,
    found: Vec<Violation>,
}

impl Report<'_> {
    fn module(&mut self, rule: impl Into<String>) {
        self.found.push(Violation { place: String::new(), rule: rule.into() });
    }

    fn computation(&mut self, id: CompId, rule: impl Into<String>) {
        let place = self.module[id].name().to_string();
        self.found.push(Violation { place, rule: rule.into() });
    }

    fn instruction(&mut self, computation: &Computation, id: InstrId, rule: impl Into<String>) {
        let place = format!("%{} in {}", computation[id].name(), computation.name());
        self.found.push(Violation { place, rule: rule.into() });
    }
}
