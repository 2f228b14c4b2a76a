//! Collectives by NCCL: which of them it executes, and the calls of each member.
//!
//! ```text
//! CollectiveSpec ── plan ─┬─ Plan: calls of each rank   by NCCL, in device memory
//!                         └─ Declined                   by the service, in host memory
//! ```

mod declined;
mod element;
mod plan;
mod steps;
#[cfg(test)]
mod tests;

pub(crate) use element::NcclType;
pub(crate) use plan::plan;
pub(crate) use steps::{Place, Step};
