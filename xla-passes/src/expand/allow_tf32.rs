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

#[cfg(test)]
mod tests {
    use xla_hlo::text::parse_module;

    use super::*;
    use crate::TargetProfile;

    /// Whether the operation on those types is marked, with or without permission by the profile.
    fn is_marked(types: [&str; 3], operation: &str, tf32: bool) -> bool {
        let [x, y, r] = types;
        let text = format!(
            "ENTRY main {{\n x = {x}[1,4,4] parameter(0)\n y = {y}[1,4,4] parameter(1)\n ROOT r = {r}[1,4,4] {operation}\n}}"
        );
        let mut module = parse_module(&text).unwrap();
        let profile = TargetProfile { tf32, ..TargetProfile::generic() };
        AllowTf32.run(&mut module, &PassContext::new(&profile)).unwrap();
        assert!(!AllowTf32.run(&mut module, &PassContext::new(&profile)).unwrap().is_changed());
        let entry = module.entry();
        let algorithm = match entry[entry.root()].op() {
            Op::Dot(op) => op.algorithm,
            Op::Convolution(op) => op.algorithm,
            other => panic!("{other:?}"),
        };
        algorithm == Some(DotAlgorithm::Tf32Tf32F32)
    }

    const DOT: &str =
        "dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}";
    const CONVOLUTION: &str = "convolution(x, y), window={size=1}, dim_labels=b0f_0io->b0f";

    #[test]
    fn what_asks_for_nothing_better_may_round() {
        let f32 = ["f32"; 3];
        for operation in [DOT, CONVOLUTION] {
            assert!(is_marked(f32, operation, true));
            assert!(!is_marked(f32, operation, false));
            assert!(is_marked(f32, &format!("{operation}, operand_precision={{default,default}}"), true));
            for precision in ["high,default", "default,highest", "highest,highest"] {
                assert!(!is_marked(f32, &format!("{operation}, operand_precision={{{precision}}}"), true));
            }
            assert!(!is_marked(f32, &format!("{operation}, algorithm=dot_f32_f32_f32"), true));
            assert!(!is_marked(f32, &format!("{operation}, algorithm=dot_tf32_tf32_f32_x3"), true));
        }
    }

    #[test]
    fn other_types_stay_as_they_are() {
        for types in [["bf16"; 3], ["f64"; 3], ["c64"; 3], ["f32", "f32", "f64"], ["bf16", "f32", "f32"]] {
            assert!(!is_marked(types, DOT, true), "{types:?}");
        }
    }
}
