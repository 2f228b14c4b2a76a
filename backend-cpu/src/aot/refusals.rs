//! Rejects instructions that need a runtime, and reports all of them in one error.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use xla_hlo::{Error, Module, Op, Result, Shape};
use xla_llvm::target::Target;
use xla_service::thunks::{LibraryOp, Thunk, ThunkKind, ThunkSequence};

use super::externals::Externals;

/// Maximum number of instructions that an error names; the rest is counted.
const NAMED: usize = 20;

/// Returns [`Error::Unimplemented`] if thunks need a library or the host.
pub(super) fn check(module: &Module, sequence: &ThunkSequence, target: &Target, externals: &Externals) -> Result<()> {
    let is_refused = |thunk: &&Thunk| !externals.has(module, thunk) && is_refused(module, thunk, target);
    let refused: Vec<&Thunk> = sequence.walk().filter(is_refused).collect();
    if refused.is_empty() {
        return Ok(());
    }
    let mut text = format!("ahead of time, {} has no code yet for", target.triple());
    for (number, thunk) in refused.iter().take(NAMED).enumerate() {
        let graph = &module[thunk.computation];
        let instruction = &graph[thunk.instruction];
        let comma = if number == 0 { "" } else { "," };
        let (opcode, shape) = (instruction.opcode(), instruction.shape().without_layout());
        // Writing to a string does not fail.
        let _ = write!(text, "{comma} %{} ({opcode}, {shape})", thunk.name);
    }
    if refused.len() > NAMED {
        let _ = write!(text, " and {} more", refused.len() - NAMED);
    }
    let targets: BTreeSet<&str> = refused.iter().filter_map(|thunk| custom_call(module, thunk)).collect();
    if !targets.is_empty() {
        let options: Vec<String> = targets.iter().map(|target| format!("--external {target}")).collect();
        let _ = write!(text, "; custom calls become functions of the application with {}", options.join(" "));
    }
    Err(Error::unimplemented(text))
}

/// Returns the target of a custom call on arrays of static size, which a function of the application may implement.
fn custom_call<'m>(module: &'m Module, thunk: &Thunk) -> Option<&'m str> {
    let Op::CustomCall(op) = module[thunk.computation][thunk.instruction].op() else { return None };
    let is_static = thunk.operands.iter().chain(&thunk.results).all(|array| array.shape.is_static());
    (is_static && matches!(thunk.kind, ThunkKind::CustomCall)).then_some(&op.target)
}

fn is_refused(module: &Module, thunk: &Thunk, target: &Target) -> bool {
    match thunk.kind {
        ThunkKind::LibraryCall(ref call) => call.op != LibraryOp::RandomState,
        ThunkKind::Collective(_) | ThunkKind::CustomCall | ThunkKind::HostFallback => true,
        // Big-endian memory has another byte order than the module assumes.
        ThunkKind::Copy => target.is_big_endian() && changes_width(module, thunk),
        ThunkKind::Kernel(_) | ThunkKind::While { .. } | ThunkKind::Conditional { .. } => false,
    }
}

/// Whether a copy reinterprets elements of one width as elements of another width.
fn changes_width(module: &Module, thunk: &Thunk) -> bool {
    let graph = &module[thunk.computation];
    let instruction = &graph[thunk.instruction];
    let bits = |shape: &Shape| shape.element_type().map(|ty| ty.bit_width());
    matches!(instruction.op(), Op::Bitcast(_))
        && instruction.operands().first().is_some_and(|&o| bits(graph[o].shape()) != bits(instruction.shape()))
}
