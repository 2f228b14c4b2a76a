//! Joins programs for several devices into programs for one: [`join_devices`].
//!
//! For platforms without collectives or without a partitioner: one device does the work of all, and the others hold
//! their parts of arguments and results.
//!
//! ```text
//! arguments   part 0, part 1, ...  ──concatenate──>  the global value                 entry.rs, spread.rs
//! partitions  shardings impose no constraint: the program operates on global values
//! manual      a manual computation, or a replica, is emitted for each device (a lane)  lanes.rs, edges.rs
//!             lanes that compute the same share instructions                           rewrite.rs
//! collectives operations among the lanes: sums, concatenations, slices                 collectives.rs
//! loops       all lanes iterate together; lanes that are done keep their state         control_flow.rs
//! results     the global value  ──slice──>  part 0, part 1, ...
//!             results of open sharding are split like their operands                   propagate.rs
//! ```

mod collectives;
mod control_flow;
mod edges;
pub(crate) mod entry;
mod lanes;
mod parts;
mod propagate;
pub(crate) mod rewrite;
pub(crate) mod spread;

pub use entry::{Joined, join_devices, join_each_device};
pub use parts::ArrayParts;
pub use spread::Spread;
