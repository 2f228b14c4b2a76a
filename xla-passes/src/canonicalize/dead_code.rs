//! Dead code elimination (DCE): removes unused instructions and computations without callers.

use std::collections::HashSet;

use xla_hlo::effects::Effects;
use xla_hlo::{CompId, InstrId, Module, Result};

use crate::{Pass, PassContext};

/// Removes instructions that neither the root nor an effect depends on, then computations that the entry does not
/// reach.
///
/// Parameters are kept, since they are the computation's signature.
pub struct DeadCode;

impl Pass for DeadCode {
    fn name(&self) -> &'static str {
        "dead-code"
    }

    fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
        remove_unreachable(module)?;
        let effects = Effects::of(module);
        let ids: Vec<CompId> = module.ids().collect();
        let mut removed = false;
        for id in ids {
            removed |= sweep(module, id, &effects)?;
        }
        // Dead loops and reductions may have been the only callers of their computations.
        if removed { remove_unreachable(module) } else { Ok(()) }
    }
}

/// Removes instructions of one computation that neither the root nor an effect depends on. Returns whether there were
/// any.
pub(crate) fn sweep(module: &mut Module, id: CompId, effects: &Effects) -> Result<bool> {
    let dead = dead_instructions(module, id, effects);
    if !dead.is_empty() {
        module.computation_mut(id).remove_all(&dead)?;
    }
    Ok(!dead.is_empty())
}

/// Returns the instructions to remove, users before operands.
fn dead_instructions(module: &Module, id: CompId, effects: &Effects) -> Vec<InstrId> {
    let computation = &module[id];
    let live = effects.live(computation);
    if computation.ids().all(|i| live[i]) {
        return Vec::new();
    }
    let mut dead: Vec<InstrId> = computation.post_order().into_iter().filter(|&i| !live[i]).collect();
    dead.reverse();
    dead
}

pub(crate) fn remove_unreachable(module: &mut Module) -> Result<()> {
    let mut reached = HashSet::from([module.entry_id()]);
    let mut stack = vec![module.entry_id()];
    while let Some(id) = stack.pop() {
        stack.extend(module.callees(id).into_iter().filter(|&callee| reached.insert(callee)));
    }
    let dead: Vec<CompId> = module.ids().filter(|id| !reached.contains(id)).collect();
    dead.into_iter().try_for_each(|id| module.remove(id))
}
