//! Linear algebra on narrow floats: done in `f32`, as no library has narrower numbers.

use xla_hlo::ops::Convert;
use xla_hlo::{CompId, Computation, ElementType, InstrId, Instruction, Module, Op, Result};

use crate::{Pass, PassContext};

/// `cholesky(a)` and `triangular-solve(a, b)` on floats narrower than `f32` become conversions around the same in `f32`.
pub struct WidenLinalg;

impl Pass for WidenLinalg {
    fn name(&self) -> &'static str {
        "widen-linalg"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let ids: Vec<CompId> = module.ids().collect();
        for id in ids {
            let computation = module.computation_mut(id);
            let narrow: Vec<InstrId> = computation.ids().filter(|&i| is_narrow(&computation[i])).collect();
            narrow
                .into_iter()
                .filter(|_| cx.allow_rewrite(self.name()))
                .try_for_each(|instruction| widen(computation, instruction))?;
        }
        Ok(())
    }
}

fn is_narrow(instruction: &Instruction) -> bool {
    matches!(instruction.op(), Op::Cholesky(_) | Op::TriangularSolve(_))
        && instruction.shape().element_type().is_some_and(|ty| ty.is_float() && ty.bit_width() < 32)
}

fn widen(computation: &mut Computation, id: InstrId) -> Result<()> {
    let shape = computation[id].shape().expect_array()?.clone();
    let mut operands = Vec::new();
    for operand in computation[id].operands().to_vec() {
        let wide = computation[operand].shape().expect_array()?.clone().with_element_type(ElementType::F32);
        operands.push(computation.add(Instruction::new(Convert.into(), wide.into(), [operand])));
    }
    let op = computation[id].op().clone();
    let wide = computation.add(Instruction::new(op, shape.with_element_type(ElementType::F32).into(), operands));
    // The instruction itself stays, with its name and its control dependencies.
    computation.set_op(id, Convert.into());
    computation.set_operands(id, vec![wide]);
    Ok(())
}
