//! Removal of what a lowering made and nobody uses, as XLA removes it from the program before it lowers.

use xla_hlo::ops::Op;
use xla_hlo::{Computation, InstrId, Result};

/// Removes unused instructions but those that XLA keeps: parameters with their elements, and whatever may have an
/// effect.
pub(super) fn remove(computation: &mut Computation) -> Result<()> {
    let ids: Vec<InstrId> = computation.ids().rev().collect();
    for id in ids {
        let instruction = &computation[id];
        let is_dead = instruction.users().is_empty() && computation.root_if_set() != Some(id);
        if is_dead && is_pure(instruction.op()) {
            computation.remove(id)?;
        }
    }
    Ok(())
}

fn is_pure(op: &Op) -> bool {
    let is_kept = matches!(
        op,
        Op::Parameter(_)
            | Op::GetTupleElement(_)
            | Op::Call(_)
            | Op::While(_)
            | Op::Conditional(_)
            | Op::Collective(_)
            | Op::CustomCall(_)
    );
    !is_kept && !op.has_side_effect()
}
