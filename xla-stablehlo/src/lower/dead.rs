//! Dead code elimination on lowered computations, as XLA does before its own lowering.

use xla_hlo::ops::Op;
use xla_hlo::{Computation, InstrId, Result};

/// Removes unused instructions, except parameters with their elements and instructions with side effects, which XLA
/// also keeps.
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
