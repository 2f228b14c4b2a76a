//! Widens linear algebra on narrow floats to `f32`.

use xla_hlo::{CompId, ElementType, InstrId, Instruction, Module, Op, Result};

use crate::rewrite::widen;
use crate::{Pass, PassContext};

/// Computes `cholesky(a)` and `triangular-solve(a, b)` on floats narrower than `f32` in `f32`, between conversions.
pub struct WidenLinalg;

impl Pass for WidenLinalg {
    fn name(&self) -> &'static str {
        "widen-linalg"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let ids: Vec<CompId> = module.ids().collect();
        for id in ids {
            let narrow: Vec<InstrId> = module[id].iter().filter(|(_, i)| is_narrow(i)).map(|(id, _)| id).collect();
            for instruction in narrow.into_iter().filter(|_| cx.allow_rewrite(self.name())) {
                let op = module[id][instruction].op().clone();
                widen::compute_in(module.computation_mut(id), instruction, op, |_| ElementType::F32)?;
            }
        }
        Ok(())
    }
}

fn is_narrow(instruction: &Instruction) -> bool {
    matches!(instruction.op(), Op::Cholesky(_) | Op::TriangularSolve(_))
        && instruction.shape().element_type().is_some_and(|ty| ty.is_float() && ty.bit_width() < 32)
}
