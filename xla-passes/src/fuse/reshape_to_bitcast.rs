//! Free reshapes: a reshape outside of fusions becomes a bitcast, which shares the buffer of its operand.

use xla_hlo::ops::Bitcast;
use xla_hlo::{InstrId, Layout, Module, Op, Result, Shape};

use super::programs;
use crate::{Pass, PassContext};

/// Converts a `reshape` between row-major arrays outside of fusions to a `bitcast`. Tiled arrays are excluded.
pub struct ReshapeToBitcast;

impl Pass for ReshapeToBitcast {
    fn name(&self) -> &'static str {
        "reshape-to-bitcast"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        if cx.profile().tiles.is_some() {
            return Ok(());
        }
        for id in programs(module) {
            let computation = module.computation_mut(id);
            let is_free = |i: &InstrId| {
                let instruction = &computation[*i];
                matches!(instruction.op(), Op::Reshape(_))
                    && [instruction.shape(), computation[instruction.operand(0)].shape()].into_iter().all(is_plain)
            };
            let reshapes: Vec<InstrId> = computation.ids().filter(is_free).collect();
            for reshape in reshapes.into_iter().filter(|_| cx.allow_rewrite(self.name())) {
                computation.set_op(reshape, Bitcast.into());
                computation.rename(reshape, "bitcast");
            }
        }
        Ok(())
    }
}

fn is_plain(shape: &Shape) -> bool {
    let row_major = |l: &Layout| l.is_row_major() && l.is_plain();
    shape.as_array().is_some_and(|a| a.is_static() && a.layout().is_none_or(row_major))
}
