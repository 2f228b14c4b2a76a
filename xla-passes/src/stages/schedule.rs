//! The last stage: tiles, order of instructions, copies that keep values apart, buffers.

use crate::{InsertCopies, Pipeline, Schedule, TargetProfile, TileLayouts};

/// Where arrays lie, the order in which instructions run, and the copies that running in that order needs. What follows is
/// [`assign_buffers`](crate::buffers::assign_buffers).
pub fn schedule(_: &TargetProfile) -> Pipeline {
    Pipeline::new("schedule").pass(TileLayouts).pass(Schedule).pass(InsertCopies)
}
