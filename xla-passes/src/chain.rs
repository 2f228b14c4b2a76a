//! Chains of what is begun, gone on with and awaited, put out of the way once their result is at hand.

use xla_hlo::{Computation, Error, InstrId, Result};

/// The start of a chain and everything up to what awaits it, in order.
pub(crate) fn chain(computation: &Computation, start: InstrId) -> Result<Vec<InstrId>> {
    let mut steps = vec![start];
    let mut last = start;
    while !computation[last].opcode().awaited_by().is_empty() {
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

/// Lets `value`, which computes at once what the steps of a chain begin and await, stand for the last of them.
///
/// What had to run before or after a step still does: `value` runs after what came before the start, and before what came
/// after any step; what came before a later step stays in front of whatever uses the result or came after that step.
pub(crate) fn complete(computation: &mut Computation, steps: &[InstrId], value: InstrId) -> Result<()> {
    let (Some(&first), Some(&last)) = (steps.first(), steps.last()) else { return Ok(()) };
    let outside = |id: &InstrId| !steps.contains(id) && *id != value;
    let mut edges: Vec<(InstrId, InstrId)> = Vec::new();
    let before_start = computation[first].control_predecessors().iter().copied();
    edges.extend(before_start.filter(outside).map(|before| (before, value)));
    for (i, &step) in steps.iter().enumerate() {
        let after = computation[step].control_successors().iter().copied().filter(outside);
        edges.extend(after.map(|after| (value, after)));
        if i == 0 {
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
