//! Expands clamps into minima and maxima.

use xla_hlo::ops::BinaryOp;
use xla_hlo::{InstrId, Module, Opcode, Result};

use crate::rewrite::builder::Inserter;
use crate::{Pass, PassContext};

/// Expands `clamp(min, x, max)` into `minimum(maximum(min, x), max)` if the target lacks it. Exact, including NaN.
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

/// Broadcasts a scalar bound to all elements.
fn bound(at: &mut Inserter<'_>, bound: InstrId, dims: &[usize]) -> Result<InstrId> {
    if at.dims(bound).is_empty() { at.broadcast(bound, dims, &[]) } else { Ok(bound) }
}
