//! Sharding propagation: completes the shardings of a program over a mesh of devices from the stated ones.
//!
//! ```text
//! Module ── Graph ── worklist: project ── propagate factors ── shardings of all values
//!           values, rules, data-flow edges          by priority, then by class of operation
//! ```
//!
//! The algorithm is Shardy's: operations relate their arrays by factors ([`ShardingRule`](xla_hlo::sdy::ShardingRule)),
//! and axes move along factors between operands and results until nothing changes. This crate depends on no device and
//! no backend, and changes no module.

#![warn(missing_docs)]

mod factors;
mod graph;
mod projection;
mod shardings;
mod worklist;

use xla_hlo::{Module, Result};

pub use shardings::Shardings;

/// Completes the shardings of all values of a verified module.
///
/// Control flow must have one caller for each computation, as after `flatten-call-graph`. Fails with
/// `Error::Unimplemented` for computations with several callers and for regions that are manual along some axes of the
/// mesh only, and with `Error::InvalidArgument` for invalid shardings.
pub fn propagate(module: &Module) -> Result<Shardings> {
    let mut graph = graph::Graph::new(module)?;
    worklist::run(&mut graph)?;
    Ok(Shardings::new(graph))
}
