//! Expands clamps into minima and maxima.

use xla_hlo::ops::BinaryOp;
use xla_hlo::{InstrId, Module, Opcode, Result};

use crate::rewrite::builder::Inserter;
use crate::{Pass, PassContext};

/// `clamp(min, x, max)` = `minimum(maximum(min, x), max)`, where the target lacks it. Exact, NaN included.
pub struct ExpandClamps;

impl Pass for ExpandClamps {
    fn name(&self) -> &'static str {
        "expand-clamps"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        super::expand_lacking(self, Opcode::Clamp, module, cx, expand)
    }
}

fn expand(at: &mut Inserter<'_>, id: InstrId) -> Result<InstrId> {
    let &[min, x, max] = &at.operands(id)[..] else { return Ok(id) };
    let dims = at.dims(x);
    let (min, max) = (bound(at, min, &dims)?, bound(at, max, &dims)?);
    let raised = at.binary(BinaryOp::Maximum, min, x)?;
    at.binary(BinaryOp::Minimum, raised, max)
}

/// A bound for each element; one may be given for all.
fn bound(at: &mut Inserter<'_>, bound: InstrId, dims: &[usize]) -> Result<InstrId> {
    if at.dims(bound).is_empty() { at.broadcast(bound, dims, &[]) } else { Ok(bound) }
}
