//! Graph edits: inlining, cloning across computations, and removal of unused instructions.

use std::collections::HashMap;

use xla_hlo::ops::Async;
use xla_hlo::{ArrayShape, CompId, Computation, InstrId, Instruction, Module, Op, Result, Shape};

/// Returns a copy of an instruction with other operands, for the same or another computation. Control dependencies are
/// not copied.
pub fn clone_with_operands(instruction: &Instruction, operands: Vec<InstrId>) -> Instruction {
    Instruction::new(instruction.op().clone(), instruction.shape().clone(), operands)
        .with_name(instruction.name())
        .with_annotations(instruction.annotations().cloned().map(Box::new))
}

/// Copies the instructions of `callee` into `target`, with `arguments` in place of its parameters. Returns the copy of
/// the root.
///
/// Control dependencies inside `callee` are kept. Schedules are not: the caller's schedule must be cleared or
/// recomputed.
pub fn splice(target: &mut Computation, callee: &Computation, arguments: &[InstrId]) -> InstrId {
    let mut map = HashMap::with_capacity(callee.len());
    for id in callee.post_order() {
        let instruction = &callee[id];
        let new = match instruction.op() {
            Op::Parameter(p) => arguments[p.number],
            _ => {
                let operands = instruction.operands().iter().map(|o| map[o]).collect();
                target.add(clone_with_operands(instruction, operands))
            }
        };
        for predecessor in instruction.control_predecessors() {
            if map[predecessor] != new {
                target.add_control_dependency(map[predecessor], new);
            }
        }
        map.insert(id, new);
    }
    map[&callee.root()]
}

/// Replaces a call-like instruction by the instructions of `callee`, applied to `arguments`.
pub fn inline(module: &mut Module, caller: CompId, call: InstrId, callee: CompId, arguments: &[InstrId]) -> Result<()> {
    let callee = module[callee].clone();
    let computation = module.computation_mut(caller);
    let before: Vec<InstrId> = computation[call].control_predecessors().to_vec();
    let after: Vec<InstrId> = computation[call].control_successors().to_vec();
    let existing = computation.ids().next_back();
    let root = splice(computation, &callee, arguments);
    let spliced: Vec<InstrId> = computation.ids().rev().take_while(|id| Some(*id) != existing).collect();
    for &new in &spliced {
        before.iter().for_each(|&b| computation.add_control_dependency(b, new));
        after.iter().for_each(|&a| computation.add_control_dependency(new, a));
    }
    computation.set_schedule(None);
    computation.replace_all_uses(call, root);
    computation.remove(call)?;
    own_async_computations(module, caller, spliced);
    Ok(())
}

/// Clones the computations of asynchronous starts that were just copied, since each must have a single caller.
fn own_async_computations(module: &mut Module, caller: CompId, copied: Vec<InstrId>) {
    let mut work: Vec<(CompId, InstrId)> = copied.into_iter().map(|id| (caller, id)).collect();
    while let Some((caller, id)) = work.pop() {
        let mut op = module[caller][id].op().clone();
        let Op::Async(Async::Start(_)) = op else { continue };
        let mut own = Vec::new();
        op.map_called_computations(&mut |callee| {
            let clone = module[callee].clone();
            own.push(module.add(clone));
            own[own.len() - 1]
        });
        module.computation_mut(caller).set_op(id, op);
        work.extend(own.into_iter().flat_map(|c| module[c].ids().map(move |id| (c, id)).collect::<Vec<_>>()));
    }
}

/// Removes `id` and then transitively every unused operand. Parameters and instructions with control dependencies are
/// kept.
pub fn remove_dead(computation: &mut Computation, id: InstrId) -> Result<()> {
    let mut stack = vec![id];
    while let Some(id) = stack.pop() {
        let Some(instruction) = computation.get(id) else { continue };
        if !is_removable(computation, id) {
            continue;
        }
        let operands = instruction.operands().to_vec();
        computation.remove(id)?;
        stack.extend(operands);
    }
    Ok(())
}

/// Whether `id` is unused, and its removal leaves no computation without a caller.
pub fn is_removable(computation: &Computation, id: InstrId) -> bool {
    let instruction = &computation[id];
    instruction.users().is_empty()
        && instruction.control_successors().is_empty()
        && computation.root_if_set() != Some(id)
        && !matches!(instruction.op(), Op::Parameter(_))
        && !instruction.op().has_side_effect()
        && instruction.op().called_computations().is_empty()
        // Half of an async pair would remain.
        && instruction.opcode().start_opcodes().is_empty()
}

/// Whether two shapes are equal except for layouts.
pub fn same_shape(a: &Shape, b: &Shape) -> bool {
    a.compatible(b)
}

/// Whether an instruction can be replaced: it has no control dependencies.
pub fn is_free(instruction: &Instruction) -> bool {
    instruction.control_predecessors().is_empty() && instruction.control_successors().is_empty()
}

/// Whether an instruction and its operands have static sizes.
pub fn is_static(computation: &Computation, id: InstrId) -> bool {
    let exact = |id: InstrId| {
        computation[id].shape().leaves().iter().all(|(_, s)| s.as_array().is_none_or(ArrayShape::is_static))
    };
    exact(id) && computation[id].operands().iter().all(|&o| exact(o))
}
