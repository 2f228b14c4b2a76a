//! Evaluator over a grid of devices: replicas times partitions, each with its own arguments and results.
//!
//! ```text
//! device 0   add ── all-reduce ─┐              ┌─ tanh ── result      each device runs until its next collective,
//! device 1   add ── all-reduce ─┼─ exchange() ─┼─ tanh ── result      and only one runs at a time (lock step)
//! device 2   add ── all-reduce ─┘              └─ tanh ── result
//! ```
//!
//! A collective is executed once all devices of its group wait at it (`lockstep.rs`). Groups advance independently, so
//! loops of different groups may have different numbers of iterations. If no device can advance, the error names the
//! devices and the instructions at which they wait. Results do not depend on timing: reductions are in group order
//! (`ops/collective/among.rs`), and devices run in the order of their ids.
//!
//! Devices are threads, because an evaluator that waits inside of loops and calls needs a stack of its own.

mod devices;
mod link;
mod lockstep;
mod run;

pub use devices::Grid;
pub use run::{evaluate, evaluate_with};
