//! Verification of functions: arguments and returned values against the function's type, calls against the callee.

use super::regions::{block, returned};
use super::symbols::{Symbols, string};
use super::typing::Types;
use super::{Checked, Violation};
use crate::ir::{Attribute, Module, OpId, Type, TypeId, ValueId};

pub(super) fn verify(module: &Module, types: &Types<'_>, symbols: &Symbols<'_>, op: OpId) -> Checked {
    let operation = &module.operations[op];
    let compared = |values: &[ValueId], wanted: &[TypeId], what: &str| {
        let found: Vec<TypeId> = values.iter().map(|&value| module.values[value].ty).collect();
        if found.len() != wanted.len() {
            return Err(Violation::new(op, format!("has {} {what}, but its type has {}", found.len(), wanted.len())));
        }
        match found.iter().zip(wanted).find(|&(&found, &wanted)| !types.agree(found, wanted)) {
            Some((&found, &wanted)) => {
                let (found, wanted) = (module.type_text(found), module.type_text(wanted));
                Err(Violation::new(op, format!("has {found} among the {what}, but its type has {wanted}")))
            }
            None => Ok(()),
        }
    };
    match &*module.strings[operation.name] {
        b"vhlo.func_v1" | b"func.func" => {
            let Some((inputs, results)) = function_type(module, op) else {
                return Err(Violation::new(op, "has a function_type that is not a function type"));
            };
            let &[body] = &operation.regions[..] else { return Ok(()) };
            if module.is_declaration(op) {
                return Ok(());
            }
            compared(&block(module, body).arguments, inputs, "arguments")?;
            compared(returned(module, body), results, "returned values")
        }
        b"vhlo.call_v1" | b"func.call" => {
            let callee = string(module, op, "callee").unwrap_or_default();
            let function = symbols.get(op, callee).and_then(|function| function_type(module, function));
            let Some((inputs, results)) = function else {
                return Err(Violation::new(
                    op,
                    format!("calls @{}, which is not a function", String::from_utf8_lossy(callee)),
                ));
            };
            compared(&operation.operands, inputs, "operands")?;
            compared(&operation.results, results, "results")
        }
        _ => Ok(()),
    }
}

/// Returns the types of a function's arguments and results.
fn function_type(module: &Module, op: OpId) -> Option<(&[TypeId], &[TypeId])> {
    let Attribute::Type(ty) = module.attributes[module.attribute(op, "function_type")?] else { return None };
    match &module.types[ty] {
        Type::Function { inputs, results } => Some((inputs, results)),
        _ => None,
    }
}
