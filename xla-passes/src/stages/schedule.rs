//! The last stage: tiles, order of instructions, copies that keep values apart, buffers.

use crate::{AssignMemorySpaces, InsertCopies, Pipeline, Rematerialize, Schedule, TargetProfile, TileLayouts};

/// Where arrays lie, the order in which instructions run, what is computed again for want of memory, the copies that running in that order needs, and who lives in which memory. What follows is
/// [`assign_buffers`](crate::buffers::assign_buffers).
pub fn schedule(_: &TargetProfile) -> Pipeline {
    Pipeline::new("schedule")
        .pass(TileLayouts)
        .pass(Schedule)
        .pass(Rematerialize)
        .pass(InsertCopies)
        .pass(AssignMemorySpaces)
}
