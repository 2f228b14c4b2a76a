//! Expands custom calls that represent HLO operations.

use xla_hlo::ops::{CustomCallOperation, Tuple};
use xla_hlo::{CompId, InstrId, Module, Op, Result};

use crate::rewrite::async_chain::complete;
use crate::rewrite::builder::Inserter;
use crate::{Pass, PassContext};

/// Replaces custom calls that have an HLO equivalent ([`CustomCall::operation`](xla_hlo::ops::CustomCall::operation)):
/// annotations of sharding and placement, with or without side effects, by their operands in modules for one device,
/// and `TopK` by `topk`.
pub struct ExpandCustomCalls;

impl Pass for ExpandCustomCalls {
    fn name(&self) -> &'static str {
        "expand-custom-calls"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let ids: Vec<CompId> = module.ids().collect();
        for id in ids {
            for (call, operation) in known(module, id).into_iter().filter(|_| cx.allow_rewrite(self.name())) {
                let operands = module[id][call].operands().to_vec();
                let mut at = Inserter::new(module, id);
                let value = match (operation, &operands[..]) {
                    (CustomCallOperation::Identity, &[operand]) => operand,
                    (CustomCallOperation::Identity, _) => at.add(Tuple, operands)?,
                    (CustomCallOperation::Nothing, _) => at.add(Tuple, [])?,
                    (CustomCallOperation::TopK(op), _) => at.add(op, operands)?,
                };
                complete(at.graph_mut(), &[call], value)?;
            }
        }
        Ok(())
    }
}

/// Returns the custom calls of a computation with their HLO operations. Calls that cannot be executed are skipped and
/// rejected when handlers are looked up.
fn known(module: &Module, id: CompId) -> Vec<(InstrId, CustomCallOperation)> {
    let computation = &module[id];
    let operation = |call: InstrId| match computation[call].op() {
        Op::CustomCall(op) => {
            op.operation(module, &computation.operand_shapes(call), computation[call].shape()).ok()?
        }
        _ => None,
    };
    computation.ids().filter_map(|call| operation(call).map(|operation| (call, operation))).collect()
}
