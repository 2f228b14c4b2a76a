//! Analyses of a module, as data: cost, memory, call graph, dataflow, reachability, effects.

pub mod alias;
pub mod attention;
pub mod call_graph;
pub mod cost;
pub mod dataflow;
pub mod element_order;
pub(crate) mod elements;
pub mod kernel_needs;
pub(crate) mod loops;
pub mod memory;
pub(crate) mod op_cost;

pub mod reachability;
pub mod score_sums;
pub mod trip_count;

use serde::Serialize;

/// Formats the report of an analysis as JSON.
pub fn json(report: &impl Serialize) -> String {
    // Reports contain only numbers and strings, whose serialization cannot fail.
    serde_json::to_string_pretty(report).unwrap_or_default() + "\n"
}
