//! Collapses async start/update/done chains whose result is computed synchronously.

use xla_hlo::{Computation, Error, InstrId, Result};

/// Returns the steps of an async chain from start to done, in order.
pub(crate) fn chain(computation: &Computation, start: InstrId) -> Result<Vec<InstrId>> {
    let mut steps = vec![start];
    let mut last = start;
    while !computation[last].opcode().done_opcodes().is_empty() {
        last = match *computation[last].users() {
            [user] => user,
            _ => {
                let name = computation[last].name();
                return Err(Error::internal(format!("%{name} must be used once, as the verifier demands")));
            }
        };
        steps.push(last);
    }
    Ok(steps)
}

/// Replaces the last step of an async chain by `value`, which computes its result synchronously.
///
/// Keeps the order of instructions before and after each step. If `value` is new, it runs after the predecessors of the
/// start and before the successors of all steps. Predecessors of another step still run before the users of the result
/// and the successors of that step.
pub(crate) fn complete(computation: &mut Computation, steps: &[InstrId], value: InstrId) -> Result<()> {
    let Some(&last) = steps.last() else { return Ok(()) };
    // A value that already has users may run before the start's predecessors.
    let is_new = computation[value].users().is_empty();
    let outside = |id: &InstrId| !steps.contains(id) && *id != value;
    let mut edges: Vec<(InstrId, InstrId)> = Vec::new();
    for (i, &step) in steps.iter().enumerate() {
        let after = computation[step].control_successors().iter().copied().filter(outside);
        edges.extend(after.map(|after| (value, after)));
        if i == 0 && is_new {
            let before = computation[step].control_predecessors().iter().copied();
            edges.extend(before.filter(outside).map(|before| (before, value)));
            continue;
        }
        let later = steps[i..].iter().flat_map(|&s| computation[s].control_successors().to_vec());
        let behind: Vec<InstrId> = later.chain(computation[last].users().to_vec()).filter(outside).collect();
        for before in computation[step].control_predecessors().iter().copied().filter(outside) {
            edges.extend(behind.iter().map(|&after| (before, after)));
        }
    }
    for (before, after) in edges {
        computation.add_control_dependency(before, after);
    }
    computation.replace_all_uses(last, value);
    steps.iter().rev().try_for_each(|&step| computation.remove(step))
}
