//! Verifier of programs from any reader: forms of operations, types, regions, scopes, symbols.
//!
//! Every check takes time linear in the size of the program's tables, without recursion.

mod arity;
mod functions;
mod regions;
mod scope;
mod symbols;
mod typing;

use xla_hlo::Error;

use super::ids::OpId;
use super::module::Module;

/// Rule that an operation breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Offending operation.
    pub op: OpId,
    /// Predicate of the message, which follows the name of the operation: `has 3 operands, not [lhs, rhs]`.
    pub what: String,
    /// Whether the operation is unknown to this reader, as opposed to a broken rule.
    pub is_unknown: bool,
}

type Checked = Result<(), Violation>;

/// Checks that a program is well-formed:
///
/// - Each StableHLO operation has a known form, with matching operands, results, regions, attributes and types.
/// - Regions end with a return of the values that their operation expects.
/// - Values are defined before their uses and are visible there.
/// - Symbols are defined once, and callees have the types of their calls.
///
/// A form of VHLO is accepted in files of any version, because jaxlib itself writes `sine_v2`, a form of 1.10, into
/// files of version 0.9.
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

    /// Returns the error without a position.
    pub fn error(&self, module: &Module) -> Error {
        self.error_after("", module)
    }

    /// Returns the error for a program that was read from bytecode.
    pub fn in_bytecode(&self, module: &Module) -> Error {
        self.error_after(&format!("bytecode, {}: ", module.place(self.op)), module)
    }

    fn error_after(&self, place: &str, module: &Module) -> Error {
        let name = module.text(module.operations[self.op].name);
        let message = format!("{place}{name} {}", self.what);
        if self.is_unknown { Error::unimplemented(message) } else { Error::invalid_argument(message) }
    }
}
