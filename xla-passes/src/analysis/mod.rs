//! What a module costs and needs, as data: work and bytes of each instruction, memory and who makes its peak.

pub mod cost;
pub(crate) mod flops;
pub mod memory;

use serde::Serialize;

/// A report of an analysis as JSON, for programs.
pub fn json(report: &impl Serialize) -> String {
    // Reports are numbers and texts, of which writing cannot fail.
    serde_json::to_string_pretty(report).unwrap_or_default() + "\n"
}
