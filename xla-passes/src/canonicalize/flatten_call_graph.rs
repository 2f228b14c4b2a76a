//! Call graph flattening: copies computations so that each call site of a loop, branch, call or fusion has its own.

use std::collections::{HashSet, VecDeque};

use xla_hlo::ops::CallContext;
use xla_hlo::{CompId, InstrId, Module, Result};

use crate::rewrite::growth::Growth;
use crate::{Pass, PassContext};

/// Copies computations until each one that runs as a program or a kernel has one call site.
///
/// Buffers of a loop body can then be assigned for one loop. Combiners, comparators and mapped functions stay shared,
/// since they are compiled into their callers.
pub struct FlattenCallGraph;

impl Pass for FlattenCallGraph {
    fn name(&self) -> &'static str {
        "flatten-call-graph"
    }

    fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
        let mut owned = HashSet::from([module.entry_id()]);
        let mut growth = Growth::of(module);
        let mut queue = VecDeque::from([module.entry_id()]);
        while let Some(caller) = queue.pop_front() {
            for (call, callees) in owning_calls(module, caller) {
                let mut own = Vec::with_capacity(callees.len());
                for callee in callees {
                    let mine = if owned.contains(&callee) { growth.copy(module, callee)? } else { callee };
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

fn set_callees(module: &mut Module, caller: CompId, call: InstrId, callees: &[CompId]) {
    let mut op = module[caller][call].op().clone();
    let mut next = callees.iter().copied();
    if op.map_called_computations(&mut |old| next.next().unwrap_or(old)) {
        module.computation_mut(caller).set_op(call, op);
    }
}
