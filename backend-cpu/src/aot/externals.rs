//! Custom calls that are compiled to calls of the application's functions: their names, and the arguments of each call.

use std::collections::{BTreeMap, BTreeSet};

use xla_hlo::{Error, Module, Op, Result, Shape};
use xla_service::thunks::{ArraySlice, Thunk, ThunkKind, ThunkSequence};
use xla_service::{AotCompilationOptions, ExternalCall as Listed};

use super::identifiers::is_name;
use crate::program::external::ExternalCall;

/// Functions of the application, by the target of their custom calls.
pub(super) struct Externals {
    symbols: BTreeMap<String, String>,
}

/// Function of the application, with the calls of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub symbol: String,
    /// Target of the custom calls that it implements.
    pub target: String,
    pub calls: Vec<Call>,
}

/// Arrays of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// Name of the custom call in the program.
    pub name: String,
    pub operands: Vec<ArraySlice>,
    pub results: Vec<ArraySlice>,
    pub config: Vec<u8>,
}

impl Externals {
    /// Creates the functions that the options list. [`Error::InvalidArgument`] for invalid C names, for a function that
    /// implements two targets, and for a function with the name of a program.
    pub fn new(options: &AotCompilationOptions, entries: &[String]) -> Result<Externals> {
        let mut symbols = BTreeMap::new();
        for Listed { target, symbol } in &options.externals {
            let name = symbol.as_ref().unwrap_or(target);
            if !is_name(name) {
                let remedy =
                    if symbol.is_some() { "" } else { "; give the name of the function as well: TARGET=SYMBOL" };
                return Err(Error::invalid_argument(format!("the external {name:?} is not a name in C{remedy}")));
            }
            if entries.contains(name) {
                return Err(Error::invalid_argument(format!(
                    "the external {name:?} has the name of a program of the object; rename one of them"
                )));
            }
            if symbols.iter().any(|(other, known)| (other == target) != (known == name)) {
                return Err(Error::invalid_argument(format!(
                    "the external {name:?} for {target:?} is ambiguous: a target has one function, and a function one target"
                )));
            }
            symbols.insert(target.clone(), name.clone());
        }
        Ok(Externals { symbols })
    }

    /// Returns the function that a thunk calls, if it is a listed custom call.
    fn symbol(&self, module: &Module, thunk: &Thunk) -> Option<&str> {
        let Op::CustomCall(op) = module[thunk.computation][thunk.instruction].op() else { return None };
        // The interface cannot pass actual sizes, so arrays of dynamic size are excluded.
        let is_static = thunk.operands.iter().chain(&thunk.results).all(|array| array.shape.is_static());
        let symbol = self.symbols.get(&op.target).map(String::as_str);
        symbol.filter(|_| is_static && matches!(thunk.kind, ThunkKind::CustomCall))
    }

    /// Whether a thunk is a call of a listed function.
    pub fn has(&self, module: &Module, thunk: &Thunk) -> bool {
        self.symbol(module, thunk).is_some()
    }

    /// Returns the calls of a program.
    pub fn calls(&self, module: &Module, sequence: &ThunkSequence) -> Result<Vec<ExternalCall>> {
        let calls = sequence.walk().filter_map(|thunk| Some((thunk, self.symbol(module, thunk)?)));
        calls.map(|(thunk, symbol)| call(module, thunk, symbol)).collect()
    }

    /// Returns the functions that a program calls.
    pub fn functions(&self, module: &Module, sequence: &ThunkSequence) -> Vec<Function> {
        let mut functions: Vec<Function> = Vec::new();
        for (target, symbol) in &self.symbols {
            let thunks = sequence.walk().filter(|thunk| self.symbol(module, thunk) == Some(symbol.as_str()));
            let calls: Vec<Call> = thunks.map(|thunk| described(module, thunk)).collect();
            if !calls.is_empty() {
                functions.push(Function { symbol: symbol.clone(), target: target.clone(), calls });
            }
        }
        functions
    }
}

/// Merges the functions of several programs, in the order of their targets.
pub(super) fn joined<'f>(of_programs: impl Iterator<Item = &'f [Function]>) -> Vec<Function> {
    let mut joined: BTreeMap<&str, Function> = BTreeMap::new();
    for function in of_programs.flatten() {
        match joined.get_mut(function.target.as_str()) {
            Some(known) => known.calls.extend(function.calls.iter().cloned()),
            None => drop(joined.insert(&function.target, function.clone())),
        }
    }
    joined.into_values().collect()
}

/// Returns the names of functions.
pub(super) fn names(functions: &[Function]) -> BTreeSet<&str> {
    functions.iter().map(|function| function.symbol.as_str()).collect()
}

fn described(module: &Module, thunk: &Thunk) -> Call {
    Call {
        name: thunk.name.clone(),
        operands: thunk.operands.clone(),
        results: thunk.results.clone(),
        config: config(module, thunk),
    }
}

/// Returns the configuration (`backend_config`) that the program passes to the function.
fn config(module: &Module, thunk: &Thunk) -> Vec<u8> {
    let annotations = module[thunk.computation][thunk.instruction].annotations();
    annotations.map_or_else(Vec::new, |annotations| annotations.backend_config.as_bytes().to_vec())
}

fn call(module: &Module, thunk: &Thunk, symbol: &str) -> Result<ExternalCall> {
    let graph = &module[thunk.computation];
    let instruction = &graph[thunk.instruction];
    let Op::CustomCall(op) = instruction.op() else {
        return Err(Error::internal(format!("%{} is not a custom call", thunk.name)));
    };
    check_places(thunk, op.operand_layouts.as_deref().unwrap_or_default())?;
    let operands = graph.operand_shapes(thunk.instruction);
    let [of_operands, of_results] = [array_numbers(&operands), array_numbers(&[instruction.shape()])];
    let leaves = op.aliased_leaves(&operands, instruction.shape()).into_iter();
    let number = |numbers: &[Option<usize>], leaf: usize| numbers.get(leaf).copied().flatten();
    let aliases = leaves.filter_map(|(o, r)| Some((number(&of_operands, o)?, number(&of_results, r)?))).collect();
    Ok(ExternalCall { thunk: thunk.id, symbol: symbol.to_string(), config: config(module, thunk), aliases })
}

/// Numbers the array leaves of shapes; tokens have no number.
fn array_numbers(shapes: &[&Shape]) -> Vec<Option<usize>> {
    let mut arrays = 0..;
    let leaves = shapes.iter().flat_map(|shape| shape.leaves());
    leaves
        .map(|(_, leaf)| matches!(leaf, Shape::Array(_) | Shape::Buffer(_)).then(|| arrays.next()).flatten())
        .collect()
}

/// Returns an error if an operand does not have the layout that the call specifies, or if a result overlaps another
/// array.
fn check_places(thunk: &Thunk, stated: &[Shape]) -> Result<()> {
    let stated = stated.iter().flat_map(Shape::leaves).filter_map(|(_, leaf)| leaf.as_array());
    for (stated, operand) in stated.zip(&thunk.operands) {
        if stated.minor_to_major() != operand.shape.minor_to_major() {
            return Err(Error::internal(format!(
                "%{} has an operand of shape {}, not {stated}",
                thunk.name, operand.shape
            )));
        }
    }
    for (i, result) in thunk.results.iter().enumerate() {
        if thunk.results[..i].iter().chain(&thunk.operands).any(|other| other.slice.overlaps(&result.slice)) {
            return Err(Error::internal(format!("operands and results of %{} overlap in memory", thunk.name)));
        }
    }
    Ok(())
}
