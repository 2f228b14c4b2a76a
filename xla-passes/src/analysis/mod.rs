//! What there is to know of a module, as data: what it costs and needs, who calls whom, what instructions hold and wait for.

pub mod call_graph;
pub mod cost;
pub mod dataflow;
pub(crate) mod flops;
pub mod memory;
pub mod reachability;

use serde::Serialize;

/// A report of an analysis as JSON, for programs.
pub fn json(report: &impl Serialize) -> String {
    // Reports are numbers and texts, of which writing cannot fail.
    serde_json::to_string_pretty(report).unwrap_or_default() + "\n"
}
