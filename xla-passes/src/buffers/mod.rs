//! Buffer assignment: places in memory for the values of a scheduled module.
//!
//! ```text
//! schedule_module ──> insert_copies ──> assign_buffers ──> BufferAssignment
//!  an order that       copies where two   classes of values    slice(comp, instr, path)
//!  keeps memory low    values would need  that share memory,   allocations(), output_slices()
//!                      one buffer         packed by lifetime   Display: the report
//! ```
//!
//! Every array leaf of every instruction that is *executed* has a [`Slice`] of an [`Allocation`]. Executed are the
//! instructions of the entry computation, of while conditions and bodies, of conditional branches and of calls; the
//! insides of fusions, combiners and other scalar computations are not. Tuples exist only when compiling: a tuple has
//! the slices of its leaves and no memory of its own; tokens and opaque values have none.
//!
//! Equal slices say that nothing has to move. The slice of a `tuple`, `get-tuple-element`, `opt-barrier`, `bitcast`,
//! `reshape` (of equal row-major bytes), of a while loop and its computations' parameters and roots, of a conditional
//! and its branches, is that of the value it passes on: emit nothing for these. Cases of an instruction that computes
//! something:
//!
//! - **its output is an operand's slice**: only where [`may_share`](crate::analysis::alias::may_share) allows it, which
//!   is where every element is read at the index where it is written (elementwise operations and loop fusions), or
//!   where the operand is updated in place (`dynamic-update-slice`, `scatter`, fusions rooted in one); a `copy` onto
//!   itself is nothing to do;
//! - **a `dynamic-update-slice` or `scatter` whose output is another slice than operand 0's**: copy operand 0 first.
//!
//! Everything else that an instruction reads is disjoint from everything that it writes.

mod assign;
mod pack;
mod report;
mod types;
mod verify;

pub use assign::assign_buffers;
pub(crate) use pack::{Item, pack};
pub use types::{
    Allocation, AllocationId, AllocationKind, BufferAssignment, BufferOptions, LiveValue, OutputSlice, Peak, Slice,
};
pub use verify::verify_assignment;
