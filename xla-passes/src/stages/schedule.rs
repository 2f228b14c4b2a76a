//! The last stage: order of instructions, copies that keep values apart, buffers.

use crate::{Pipeline, TargetProfile};

/// The order in which instructions run, and what running in that order needs.
pub fn schedule(_: &TargetProfile) -> Pipeline {
    Pipeline::new("schedule")
}
