//! Kernels of a program as text.

use std::collections::HashSet;
use std::iter;

use xla_hlo::ops::{CallContext, FusionKind};
use xla_hlo::text::parse_module;
use xla_hlo::{CompId, Computation, InstrId, Module, Op, verify};
use xla_passes::{FusionDecision, FusionRecorder, PassContext, PassOptions, TargetProfile, registry};

/// Runs passes on a program; returns the result, and the fusion decisions.
pub fn fuse(text: &str, passes: &str, profile: &TargetProfile) -> (Module, Vec<FusionDecision>) {
    let mut module = parse_module(text).unwrap_or_else(|e| panic!("{e}:\n{text}"));
    verify::check(&module).unwrap_or_else(|e| panic!("{e}:\n{text}"));
    let pipeline = registry::pipeline(passes.split(", ")).expect("passes of the registry");
    let recorder = FusionRecorder::default();
    let cx = PassContext::new(profile)
        .with_observer(&recorder)
        .with_options(PassOptions { verify: true, ..PassOptions::default() });
    pipeline.run(&mut module, &cx).unwrap_or_else(|e| panic!("{e}:\n{text}"));
    let again = pipeline.run(&mut module.clone(), &PassContext::new(profile)).expect("it runs");
    assert!(!again.is_changed(), "a second run changes it:\n{module}");
    (module, recorder.take())
}

/// Returns the kernels of a module in order: the entry's, then those of loops and branches.
pub fn kernels(module: &Module) -> String {
    let instructions = module.iter().flat_map(|(_, computation)| computation.iter());
    let control = instructions.filter(|(_, i)| i.op().call_context() == CallContext::Control);
    let called: HashSet<CompId> = control.flat_map(|(_, i)| i.op().called_computations()).collect();
    let others = module.iter().map(|(id, _)| id).filter(|id| called.contains(id));
    let programs = iter::once(module.entry_id()).chain(others);
    programs.map(|id| kernels_of(module, id)).collect::<Vec<_>>().join(" | ")
}

fn kernels_of(module: &Module, program: CompId) -> String {
    let graph = &module[program];
    let order = graph.post_order().into_iter().filter(|&id| is_computed(graph, id));
    order.map(|id| kernel(module, graph, id)).collect::<Vec<_>>().join("; ")
}

fn is_computed(graph: &Computation, id: InstrId) -> bool {
    !matches!(graph[id].op(), Op::Parameter(_) | Op::Constant(_) | Op::Tuple(_) | Op::GetTupleElement(_))
}

/// Returns `name = opcode(operands)`, or for a fusion `name = kind[opcodes](operands)` with the operand that it
/// overwrites.
fn kernel(module: &Module, graph: &Computation, id: InstrId) -> String {
    let instruction = &graph[id];
    let operands: Vec<String> = instruction.operands().iter().map(|&o| name(graph, o)).collect();
    let operands = operands.join(", ");
    let Op::Fusion(fusion) = instruction.op() else {
        return format!("{} = {}({operands})", name(graph, id), instruction.opcode().name());
    };
    let kind = match fusion.kind {
        FusionKind::Loop => "loop",
        FusionKind::Input => "input",
        FusionKind::Output => "output",
        _ => "custom",
    };
    let body = &module[fusion.computation];
    let inside: Vec<&str> = body
        .post_order()
        .into_iter()
        .filter(|&id| !matches!(body[id].op(), Op::Parameter(_)))
        .filter(|&id| id == body.root() || !body[id].users().is_empty())
        .map(|id| body[id].opcode().name())
        .collect();
    let over: String = fusion.aliases.iter().map(|alias| format!(" over {}", alias.operand)).collect();
    format!("{} = {kind}[{}]({operands}){over}", name(graph, id), inside.join(" "))
}

/// Returns the name of a value; `kernel.1` for an element of a tuple.
fn name(graph: &Computation, id: InstrId) -> String {
    match graph[id].op() {
        Op::GetTupleElement(element) => format!("{}.{}", name(graph, graph[id].operand(0)), element.index),
        _ => graph[id].name().trim_end_matches("_fusion").to_string(),
    }
}
