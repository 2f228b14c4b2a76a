//! Scheduling: orders the instructions of each executed computation for low memory usage.
//!
//! Several orders are computed, and the one with the lowest simulated peak is selected (the first among equals, so that
//! results are deterministic):
//!
//! - depth first, with the subtree that needs most memory first, which also places producers close to consumers;
//! - the same order with writes to results moved forward;
//! - a list schedule that always runs the node that frees most memory;
//! - the current order of the instructions.
//!
//! The memory of a program's results exists during the whole execution, and the share that other values can borrow
//! depends on live ranges. For the entry of small programs, buffers are therefore assigned in a trial.
//!
//! Each order runs an instruction that updates an operand in place (`dynamic-update-slice`, `scatter`, an update of a
//! loop's state) after the other readers of that operand if the graph permits it; otherwise the operand would have to
//! be copied. Control dependencies are kept, and instructions with side effects keep their current order.

mod assign_memory_spaces;
mod graph;
pub mod insert_copies;
mod orders;
mod rematerialize;

pub use assign_memory_spaces::AssignMemorySpaces;
pub use insert_copies::InsertCopies;
pub use rematerialize::Rematerialize;

use std::collections::{HashMap, HashSet};

use graph::ScheduleGraph;
use xla_hlo::effects::Effects;
use xla_hlo::{CompId, Computation, InstrId, Module, Result};

use crate::analysis::alias::flow::Flow;
use crate::buffers::{BufferOptions, assign_buffers};
use crate::schedule::insert_copies::insert_copies;
use crate::{Pass, PassContext};

/// Pass that runs [`schedule_module`].
pub struct Schedule;

impl Pass for Schedule {
    fn name(&self) -> &'static str {
        "schedule"
    }

    fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
        schedule_module(module)
    }
}

/// Assigns each executed computation a schedule and marks the module as scheduled. If the module was already marked,
/// its complete schedules are kept, since their order is deliberate.
///
/// Takes `n log n` steps in the number of instructions. Returns
/// [`Error::FailedPrecondition`](xla_hlo::Error::FailedPrecondition) if a computation has several callers; flatten the
/// call graph first.
pub fn schedule_module(module: &mut Module) -> Result<()> {
    let is_scheduled = module.attributes().is_scheduled;
    let stale = |c: &Computation| c.schedule().is_some() && !(is_scheduled && is_whole(c));
    let stale: Vec<CompId> = module.iter().filter(|(_, c)| stale(c)).map(|(id, _)| id).collect();
    for id in stale {
        module.computation_mut(id).set_schedule(None);
    }
    let (flow, effects) = (Flow::new(module)?, Effects::of(module));
    // Bytes that a computation needs in addition to its parameters; callees come first.
    let mut inner: HashMap<CompId, u64> = HashMap::new();
    for &comp in flow.executed() {
        let graph = ScheduleGraph::new(module, (&flow, &effects), comp, &inner);
        if let Some(order) = module[comp].schedule() {
            inner.insert(comp, graph.peak(&graph.numbers(order)));
            continue;
        }
        let mut orders: Vec<(u64, Vec<usize>)> = Vec::new();
        let depth_first = graph.depth_first();
        let early = graph.results_early(&depth_first);
        for order in [depth_first, graph.most_freed_first(), graph.as_it_stands(), early] {
            if orders.iter().all(|(_, other)| *other != order) {
                orders.push((graph.peak(&order), order));
            }
        }
        // Sorting is stable, so that the first order wins among equals.
        orders.sort_by_key(|(peak, _)| *peak);
        let named = |order: &[usize]| -> Vec<InstrId> { order.iter().map(|&node| graph.ids[node]).collect() };
        inner.insert(comp, orders.first().map_or(0, |(peak, _)| *peak));
        let orders: Vec<Vec<InstrId>> = orders.iter().map(|(_, order)| named(order)).collect();
        let order = if comp == module.entry_id() { tried(module, orders) } else { orders.into_iter().next() };
        module.computation_mut(comp).set_schedule(order);
    }
    if !module.attributes().is_scheduled {
        module.attributes_mut().is_scheduled = true;
    }
    Ok(())
}

/// Maximum number of instructions for trials, which take time. Larger programs use the order with the lowest simulated
/// peak.
const MAX_TRIED: usize = 2048;

/// Returns the order of the entry with which the program needs the least memory, when all other computations are
/// scheduled. Orders that need more copies than the first one are rejected.
fn tried(module: &Module, orders: Vec<Vec<InstrId>>) -> Option<Vec<InstrId>> {
    if orders.len() < 2 || module.instruction_count() > MAX_TRIED {
        return orders.into_iter().next();
    }
    let copies_and_bytes = |order: &[InstrId]| -> Result<(usize, usize)> {
        let mut trial = module.clone();
        let entry = trial.entry_id();
        trial.computation_mut(entry).set_schedule(Some(order.to_vec()));
        let copies = insert_copies(&mut trial)?;
        let options = BufferOptions { verify: false, ..BufferOptions::default() };
        Ok((copies, assign_buffers(&trial, &options)?.total_bytes()))
    };
    // Errors of buffer assignment are ignored here; the later assignment reports them.
    let trials: Vec<Option<(usize, usize)>> = orders.iter().map(|order| copies_and_bytes(order).ok()).collect();
    let most_copies = trials[0].map_or(0, |(copies, _)| copies);
    let bytes = |trial: &Option<(usize, usize)>| trial.filter(|t| t.0 <= most_copies).map_or(usize::MAX, |t| t.1);
    orders.into_iter().zip(trials).min_by_key(|(_, trial)| bytes(trial)).map(|(order, _)| order)
}

/// Whether a computation's schedule contains each instruction once, after its dependencies.
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
