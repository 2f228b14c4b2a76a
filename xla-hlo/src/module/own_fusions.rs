//! Clones fused computations that have other callers, so that each fusion has a private one.

use std::collections::HashSet;

use super::{CompId, InstrId, Module};
use crate::ops::Op;
use crate::{Error, Result};

/// Maximum total number of copied instructions: nested fusions could multiply without bound.
const MOST_COPIED: usize = 1 << 20;

impl Module {
    /// Copies fused computations that have other callers, which XLA's text permits: a fused computation is compiled as
    /// part of its fusion and must have exactly one caller. One of the fusions keeps the original, unless an
    /// instruction that is not a fusion calls it.
    pub(crate) fn own_fusions(&mut self) -> Result<()> {
        let mut taken: HashSet<CompId> = HashSet::new();
        let mut callers: Vec<CompId> = Vec::new();
        for (id, computation) in self.iter() {
            for (_, instruction) in computation.iter() {
                match instruction.op() {
                    Op::Fusion(_) if callers.last() == Some(&id) => {}
                    Op::Fusion(_) => callers.push(id),
                    op => taken.extend(op.called_computations()),
                }
            }
        }
        let mut copied = 0usize;
        while let Some(caller) = callers.pop() {
            let fusions: Vec<(InstrId, CompId)> = fusions(self, caller).collect();
            for (fusion, computation) in fusions {
                if self.get(computation).is_none() || taken.insert(computation) {
                    continue;
                }
                let copy = self[computation].clone();
                copied = copied.saturating_add(copy.len());
                if copied > MOST_COPIED {
                    let message =
                        format!("fusions share computations of more than {MOST_COPIED} instructions in total");
                    return Err(Error::resource_exhausted(message));
                }
                let copy = self.add(copy);
                if let Op::Fusion(mut op) = self[caller][fusion].op().clone() {
                    op.computation = copy;
                    self.computation_mut(caller).set_op(fusion, op.into());
                }
                taken.insert(copy);
                callers.push(copy);
            }
        }
        Ok(())
    }
}

/// Returns the fusions of a computation and the computations that they call.
fn fusions(module: &Module, caller: CompId) -> impl Iterator<Item = (InstrId, CompId)> {
    module[caller].iter().filter_map(|(id, instruction)| match instruction.op() {
        Op::Fusion(fusion) => Some((id, fusion.computation)),
        _ => None,
    })
}
