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

#[cfg(test)]
mod tests {
    use xla_hlo::Module;
    use xla_hlo::text::parse_module;

    use crate::{ExpandAsync, ExpandCollectives, Pass, PassContext, TargetProfile};

    fn expanded(instructions: &str) -> Module {
        let text = format!("ENTRY main {{\n x = f32[2] parameter(0)\n {instructions}\n}}");
        let mut module = parse_module(&text).unwrap();
        let profile = TargetProfile::generic();
        for pass in [&ExpandAsync as &dyn Pass, &ExpandCollectives] {
            pass.run(&mut module, &PassContext::new(&profile)).unwrap();
            xla_hlo::verify::check(&module).unwrap();
        }
        module
    }

    #[track_caller]
    fn assert_order(module: &Module, names: &[&str]) {
        let entry = module.entry();
        let order: Vec<&str> = entry.sequence().into_iter().map(|id| entry[id].name()).collect();
        let places: Vec<_> = names.iter().map(|name| order.iter().position(|n| n == name)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{names:?} in {order:?}");
    }

    #[test]
    fn what_stood_between_start_and_done_stays_in_front_of_users() {
        let module = expanded(
            "a = f32[2] cosine(x)\n s = ((f32[2]), f32[2], s32[]) sine-start(x), control-predecessors={a}\n \
             b = f32[2] tanh(x), control-predecessors={s}\n d = f32[2] sine-done(s), control-predecessors={b}\n \
             c = f32[2] floor(x), control-predecessors={d}\n u = f32[2] negate(d)\n \
             ROOT r = (f32[2], f32[2], f32[2], f32[2]) tuple(a, b, c, u)",
        );
        assert_order(&module, &["a", "d.1", "b", "u"]);
        assert_order(&module, &["b", "c"]);
    }

    #[test]
    fn what_passes_through_makes_no_circle() {
        let module = expanded(
            "a = f32[2] cosine(x)\n p = f32[2] collective-permute(x), source_target_pairs={{0,0}}, \
             control-predecessors={a}\n u = f32[2] negate(p)\n ROOT r = (f32[2], f32[2]) tuple(a, u)",
        );
        assert_order(&module, &["x", "a", "u"]);
    }
}
