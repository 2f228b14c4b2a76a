//! Verifier of programs, whichever reader they come from: forms of operations, types, regions, scopes, symbols.
//!
//! Every check takes time linear in the size of the program's tables, and none recurses.

mod arity;
mod functions;
mod regions;
mod scope;
mod symbols;
mod typing;

use xla_hlo::Error;

use super::ids::OpId;
use super::module::Module;

/// A rule that an operation breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The operation.
    pub op: OpId,
    /// Words that follow the name of the operation: `has 3 operands, not [lhs, rhs]`.
    pub what: String,
    /// Whether this reader does not know the operation, instead of a rule being broken.
    pub is_unknown: bool,
}

type Checked = Result<(), Violation>;

/// Checks a program: that each operation of StableHLO has a known form with its operands, results, regions, attributes
/// and types; that regions end with a return of the values that their operation takes; that values are defined before
/// they are used, in sight; that symbols are defined once, and what is called has the types of the call.
///
/// A form of VHLO is accepted in files of any version: jaxlib itself writes `sine_v2`, of 1.10, into files of 0.9.
pub fn verify(module: &Module) -> Checked {
    arity::verify(module)?;
    scope::verify(module)?;
    let symbols = symbols::Symbols::new(module)?;
    let types = typing::Types::new(module);
    for op in module.walk() {
        typing::verify(module, &types, op)?;
        regions::verify(module, &types, op)?;
        functions::verify(module, &types, &symbols, op)?;
    }
    Ok(())
}

impl Violation {
    fn new(op: OpId, what: impl Into<String>) -> Violation {
        Violation { op, what: what.into(), is_unknown: false }
    }

    /// The error without its place.
    pub fn error(&self, module: &Module) -> Error {
        self.error_after("", module)
    }

    /// The error for a program that was read from bytecode.
    pub fn in_bytecode(&self, module: &Module) -> Error {
        self.error_after(&format!("bytecode, {}: ", module.place(self.op)), module)
    }

    fn error_after(&self, place: &str, module: &Module) -> Error {
        let name = module.text(module.operations[self.op].name);
        let message = format!("{place}{name} {}", self.what);
        if self.is_unknown { Error::unimplemented(message) } else { Error::invalid_argument(message) }
    }
}
