//! Marks f32 dots and convolutions that may be computed in TF32.

use xla_hlo::ops::{Convolution, Dot, DotAlgorithm, Precision, SparsityConfig};
use xla_hlo::{CompId, Computation, ElementType, InstrId, Module, Op, Result};

use crate::{Pass, PassContext};

/// Sets `algorithm=dot_tf32_tf32_f32` on f32 dots and convolutions, if the [profile](crate::TargetProfile::tf32)
/// permits it and the program requests no higher precision: no algorithm, and only `default` operand precision.
///
/// Runs after other dots and convolutions were converted to f32, and before linear algebra is expanded into dots, which
/// stay exact.
pub struct AllowTf32;

impl Pass for AllowTf32 {
    fn name(&self) -> &'static str {
        "allow-tf32"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        if !cx.profile().tf32 {
            return Ok(());
        }
        let ids: Vec<CompId> = module.ids().collect();
        for id in ids {
            for instruction in module[id].post_order() {
                if let Some(op) = with_tf32(&module[id], instruction)
                    && cx.allow_rewrite(self.name())
                {
                    module.computation_mut(id).set_op(instruction, op);
                }
            }
        }
        Ok(())
    }
}

/// Returns the operation with the TF32 algorithm; `None` if it is not permitted.
fn with_tf32(graph: &Computation, id: InstrId) -> Option<Op> {
    let is_f32 = |id: InstrId| graph[id].shape().element_type() == Some(ElementType::F32);
    if !is_f32(id) || !graph[id].operands().iter().all(|&operand| is_f32(operand)) {
        return None;
    }
    let asks_for_nothing = |precision: &[Precision]| precision.iter().all(|&p| p == Precision::Default);
    let algorithm = Some(DotAlgorithm::Tf32Tf32F32);
    match graph[id].op() {
        Op::Dot(op) if op.algorithm.is_none() && asks_for_nothing(&op.precision) => {
            Some(Dot { algorithm, ..op.clone() }.into())
        }
        Op::Convolution(op)
            if op.algorithm.is_none()
                && asks_for_nothing(&op.precision)
                && op.sparsity == SparsityConfig::default() =>
        {
            Some(Convolution { algorithm, ..op.clone() }.into())
        }
        _ => None,
    }
}
