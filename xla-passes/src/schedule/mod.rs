//! Scheduling: an order for the instructions of each executed computation that keeps the memory low.
//!
//! Three orders are made and the one with the lowest simulated peak is taken (the first of equals, so that results are
//! deterministic): depth first with the subtree that needs most memory first, which also keeps producers next to
//! consumers; a list schedule that always runs what frees most; and the order in which the instructions stand.
//!
//! All of them put an instruction that updates an operand in place (`dynamic-update-slice`, `scatter`, an update of a loop's
//! state) behind the other readers of that operand where the graph allows it: otherwise the operand would have to be
//! copied. Control dependencies are kept.

mod graph;
mod orders;

use std::collections::HashMap;

use xla_hlo::{CompId, InstrId, Module, Result};

use crate::alias::flow::Flow;
use crate::{Pass, PassContext};
use graph::Graph;

/// [`schedule_module`] as a pass.
pub struct Schedule;

impl Pass for Schedule {
    fn name(&self) -> &'static str {
        "schedule"
    }

    fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
        schedule_module(module)
    }
}

/// Gives each executed computation a schedule, replacing those that are there, and marks the module as scheduled.
///
/// Takes `n log n` steps in the number of instructions. Fails where a computation is executed by several callers; flatten
/// the call graph first: [`Error::FailedPrecondition`](xla_hlo::Error::FailedPrecondition).
pub fn schedule_module(module: &mut Module) -> Result<()> {
    let flow = Flow::new(module)?;
    // Bytes that a computation needs besides its parameters; callees come first.
    let mut inner: HashMap<CompId, u64> = HashMap::new();
    for &comp in flow.executed() {
        let graph = Graph::new(module, &flow, comp, &inner);
        let mut best: Option<(u64, Vec<usize>)> = None;
        for order in [graph.depth_first(), graph.most_freed_first(), graph.as_it_stands()] {
            let peak = graph.peak(&order);
            if best.as_ref().is_none_or(|(least, _)| peak < *least) {
                best = Some((peak, order));
            }
        }
        if let Some((peak, order)) = best {
            inner.insert(comp, peak);
            let order: Vec<InstrId> = order.into_iter().map(|node| graph.ids[node]).collect();
            if module[comp].schedule() != Some(&order) {
                module.computation_mut(comp).set_schedule(Some(order));
            }
        }
    }
    if !module.attributes().is_scheduled {
        module.attributes_mut().is_scheduled = true;
    }
    Ok(())
}
