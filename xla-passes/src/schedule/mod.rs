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

use std::collections::{HashMap, HashSet};

use xla_hlo::{CompId, Computation, InstrId, Module, Result};

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

/// Gives each executed computation a schedule and marks the module as scheduled. A module that is marked keeps those of its
/// schedules that are still whole: their order is somebody's decision.
///
/// Takes `n log n` steps in the number of instructions. Fails where a computation is executed by several callers; flatten
/// the call graph first: [`Error::FailedPrecondition`](xla_hlo::Error::FailedPrecondition).
pub fn schedule_module(module: &mut Module) -> Result<()> {
    let is_scheduled = module.attributes().is_scheduled;
    let stale = |c: &Computation| c.schedule().is_some() && !(is_scheduled && is_whole(c));
    let stale: Vec<CompId> = module.iter().filter(|(_, c)| stale(c)).map(|(id, _)| id).collect();
    for id in stale {
        module.computation_mut(id).set_schedule(None);
    }
    let flow = Flow::new(module)?;
    // Bytes that a computation needs besides its parameters; callees come first.
    let mut inner: HashMap<CompId, u64> = HashMap::new();
    for &comp in flow.executed() {
        let graph = Graph::new(module, &flow, comp, &inner);
        if let Some(order) = module[comp].schedule() {
            inner.insert(comp, graph.peak(&graph.numbers(order)));
            continue;
        }
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
            module.computation_mut(comp).set_schedule(Some(order));
        }
    }
    if !module.attributes().is_scheduled {
        module.attributes_mut().is_scheduled = true;
    }
    Ok(())
}

/// Whether a computation's schedule has each instruction once, behind what it needs.
fn is_whole(computation: &Computation) -> bool {
    let Some(order) = computation.schedule() else { return false };
    let mut done: HashSet<InstrId> = HashSet::with_capacity(order.len());
    order.len() == computation.len()
        && order.iter().all(|&id| {
            computation.get(id).is_some_and(|instruction| {
                let mut before = instruction.operands().iter().chain(instruction.control_predecessors());
                before.all(|b| done.contains(b)) && done.insert(id)
            })
        })
}
