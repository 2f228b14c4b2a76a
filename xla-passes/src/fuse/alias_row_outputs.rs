//! Aliases results of row-reduction kernels with operands that they may overwrite.
//!
//! Such a kernel reads a row, reduces it, and writes the row last; it reads no other row for it. `softmax(x)` may thus
//! overwrite an `x` that is not used afterwards, like an elementwise kernel.

use xla_hlo::ops::{Fusion, FusionKind, OutputOperandAlias};
use xla_hlo::{Computation, InstrId, Instruction, Module, Op, Result};

use super::fuse_rows::{Rows, goes_row_by_row, results};
use super::programs;
use crate::analysis::alias::row_order::RowOrder;
use crate::rewrite::graph::same_shape;
use crate::{Pass, PassContext};

/// Adds operand aliases to row-reduction kernels; buffer assignment uses those that pay. Runs when kernels are
/// complete, since fusions with an alias are not merged.
pub struct AliasRowOutputs;

impl Pass for AliasRowOutputs {
    fn name(&self) -> &'static str {
        "alias-row-outputs"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        if !cx.profile().fusion.row_kernels {
            return Ok(());
        }
        for program in programs(module) {
            let ids: Vec<InstrId> = module[program].ids().collect();
            for id in ids {
                let Op::Fusion(fusion) = module[program][id].op() else { continue };
                if fusion.kind != FusionKind::Input || !fusion.aliases.is_empty() {
                    continue;
                }
                let aliases = aliases(&module[program], &module[program][id], &module[fusion.computation]);
                if !aliases.is_empty() && cx.allow_rewrite(self.name()) {
                    let op = Fusion { aliases, ..fusion.clone() };
                    module.computation_mut(program).set_op(id, op.into());
                }
            }
        }
        Ok(())
    }
}

/// Returns an aliased operand for each full result that has one. Each operand is used once; operands that probably die
/// here come first.
fn aliases(graph: &Computation, kernel: &Instruction, body: &Computation) -> Vec<OutputOperandAlias> {
    let Some(rows) = Rows::of_kernel(body).filter(|rows| goes_row_by_row(body, rows)) else { return Vec::new() };
    let mut operands = RowOrder::of(body).map(|order| order.parameters()).unwrap_or_default();
    operands.sort_by_key(|&p| {
        let operand = &graph[kernel.operand(p)];
        (matches!(operand.op(), Op::Parameter(_) | Op::Constant(_)), operand.users().len())
    });
    let is_tuple = matches!(body[body.root()].op(), Op::Tuple(_));
    let mut found = Vec::new();
    for (number, result) in results(body).into_iter().enumerate() {
        let shape = body[result].shape();
        let fits = |p: &usize| same_shape(body[body.parameters()[*p]].shape(), shape);
        if let Some(at) = operands.iter().position(fits).filter(|_| rows.is_full(shape)) {
            let output = if is_tuple { vec![number] } else { Vec::new() };
            found.push(OutputOperandAlias { output, operand: operands.remove(at), path: Vec::new() });
        }
    }
    found
}
