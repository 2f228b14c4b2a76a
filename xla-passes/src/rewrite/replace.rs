//! Replaces single instructions by expansions.

use xla_hlo::{CompId, Computation, InstrId, Module, Result};

use super::builder::Inserter;
use crate::{Pass, PassContext};

/// Replaces each instruction that `wanted` selects by the output of `expand`, as long as the pass may rewrite. `expand`
/// returns the new value.
pub(crate) fn replace_each(
    pass: &dyn Pass,
    module: &mut Module,
    cx: &PassContext<'_>,
    wanted: impl Fn(&Computation, InstrId) -> bool,
    expand: impl Fn(&mut Inserter<'_>, InstrId) -> Result<InstrId>,
) -> Result<()> {
    let computations: Vec<CompId> = module.ids().collect();
    for id in computations {
        let found: Vec<InstrId> = module[id].ids().filter(|&i| wanted(&module[id], i)).collect();
        for old in found.into_iter().filter(|_| cx.allow_rewrite(pass.name())) {
            replace_one(module, id, old, &expand)?;
        }
    }
    Ok(())
}

/// Replaces one instruction by the output of `expand`, which inherits the control dependencies.
pub(crate) fn replace_one(
    module: &mut Module,
    id: CompId,
    old: InstrId,
    expand: impl Fn(&mut Inserter<'_>, InstrId) -> Result<InstrId>,
) -> Result<()> {
    let newest = module[id].ids().next_back();
    let new = expand(&mut Inserter::new(module, id), old)?;
    let computation = module.computation_mut(id);
    let before = computation[old].control_predecessors().to_vec();
    let after = computation[old].control_successors().to_vec();
    let written: Vec<InstrId> = computation.ids().rev().take_while(|i| Some(*i) != newest).collect();
    for instruction in written {
        before.iter().for_each(|&b| computation.add_control_dependency(b, instruction));
        after.iter().for_each(|&a| computation.add_control_dependency(instruction, a));
    }
    computation.set_schedule(None);
    computation.replace_all_uses(old, new);
    computation.remove(old)
}
