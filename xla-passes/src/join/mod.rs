//! Programs for several devices as programs for one: [`join_devices`].
//!
//! It is what a platform without collectives, or a partitioner, can run: one device computes what all of them would,
//! the others hold their parts of arguments and results.
//!
//! ```text
//! arguments   part 0, part 1, ...  ──concatenate──>  the global value      entry.rs, spread.rs
//! partitions  shardings constrain nothing: the program is that of the global values
//! by hand     a manual computation, or a replica, is written for each of its devices, its lanes     lanes.rs, edges.rs
//!             lanes that compute the same share it                                                  rewrite.rs
//! collectives operations among the lanes: sums, concatenations, slices                              collectives.rs
//! loops       all lanes go round together; those that are done keep their state                     control_flow.rs
//! results     the global value  ──slice──>  part 0, part 1, ...
//!             where the program leaves it open, they are split as what they are made of             propagate.rs
//! ```

mod collectives;
mod control_flow;
mod edges;
mod entry;
mod lanes;
mod propagate;
mod rewrite;
mod spread;

use xla_hlo::{Module, Op};

pub use entry::{Joined, join_devices};
pub use spread::Spread;

/// Whether devices have parts of a program's work, or send each other something, so that it must be joined to run on
/// one. Replicas that do neither run it each for itself.
pub fn is_for_several_devices(module: &Module) -> bool {
    let (replicas, partitions) = (module.attributes().replica_count, module.attributes().num_partitions);
    let sends = || {
        let ops = module.ids().flat_map(|id| module[id].iter()).map(|(_, instruction)| instruction.op());
        ops.into_iter().any(|op| matches!(op, Op::Collective(_)))
    };
    partitions > 1 || replicas > 1 && sends()
}
