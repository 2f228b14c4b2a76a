//! Call-graph flattening: each call site of a loop, branch, call or fusion gets a computation of its own.

use std::collections::{HashSet, VecDeque};

use xla_hlo::ops::CallContext;
use xla_hlo::{CompId, Error, InstrId, Module, Result};

use crate::{Pass, PassContext};

/// Instructions beyond which modules are not grown.
const MAX_INSTRUCTIONS: usize = 1 << 18;

/// Copies computations until each one that runs as a program or a kernel is called from one place, once.
///
/// Then buffers of a loop body can be assigned for that loop alone. Combiners, comparators and mapped functions stay
/// shared: they are compiled into their callers.
pub struct FlattenCallGraph;

impl Pass for FlattenCallGraph {
    fn name(&self) -> &'static str {
        "flatten-call-graph"
    }

    fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
        let mut owned = HashSet::from([module.entry_id()]);
        let mut queue = VecDeque::from([module.entry_id()]);
        while let Some(caller) = queue.pop_front() {
            for (call, callees) in owning_calls(module, caller) {
                let mut own = Vec::with_capacity(callees.len());
                for callee in callees {
                    let mine = if owned.contains(&callee) { copy(module, callee)? } else { callee };
                    owned.insert(mine);
                    queue.push_back(mine);
                    own.push(mine);
                }
                set_callees(module, caller, call, &own);
            }
        }
        Ok(())
    }
}

fn owning_calls(module: &Module, caller: CompId) -> Vec<(InstrId, Vec<CompId>)> {
    module[caller]
        .iter()
        .filter(|(_, i)| matches!(i.op().call_context(), CallContext::Control | CallContext::Fusion))
        .map(|(id, i)| (id, i.op().called_computations()))
        .collect()
}

/// A copy of a computation; an error where the module gets too large.
pub(crate) fn copy(module: &mut Module, callee: CompId) -> Result<CompId> {
    let clone = module[callee].clone();
    if module.instruction_count().saturating_add(clone.len()) > MAX_INSTRUCTIONS {
        return Err(Error::resource_exhausted(format!(
            "giving each call its own copy of {} makes more than {MAX_INSTRUCTIONS} instructions; call it from fewer places",
            clone.name()
        )));
    }
    Ok(module.add(clone))
}

fn set_callees(module: &mut Module, caller: CompId, call: InstrId, callees: &[CompId]) {
    let mut op = module[caller][call].op().clone();
    let mut next = callees.iter().copied();
    if op.map_called_computations(&mut |old| next.next().unwrap_or(old)) {
        module.computation_mut(caller).set_op(call, op);
    }
}
