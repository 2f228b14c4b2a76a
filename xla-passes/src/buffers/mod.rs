//! Buffer assignment: memory offsets for the values of a scheduled module.
//!
//! ```text
//! schedule_module ──> insert_copies ──> assign_buffers ──> BufferAssignment
//!  an order that       copies where two   classes of values    slice(comp, instr, path)
//!  keeps memory low    values would need  that share memory,   allocations(), output_slices()
//!                      one buffer         packed by lifetime   Display: the report
//! ```
//!
//! Every array leaf of every *executed* instruction has a [`Slice`] of an [`Allocation`]. Executed instructions are
//! those of the entry computation, of while conditions and bodies, of conditional branches and of calls. Instructions
//! inside fusions, combiners and other scalar computations are not executed. Tuples exist only at compile time: a tuple
//! has the slices of its leaves and no memory of its own. Tokens and opaque values have no memory.
//!
//! Equal slices mean that no data moves. A `tuple`, `get-tuple-element`, `opt-barrier`, `bitcast`, or `reshape` (of
//! equal row-major bytes) has the slice of the value that it forwards. So do while loops and conditionals, with the
//! parameters and roots of their computations. Emit no code for these. For an instruction that computes a value:
//!
//! - **Its output is an operand's slice** only if [`may_share`](crate::analysis::alias::may_share) permits it. Either
//!   every element is read before the store that overwrites it (elementwise operations, loop fusions, row kernels with
//!   an alias, results of one element), or the operand is updated in place (`dynamic-update-slice`, `scatter`, fusions
//!   rooted in one). A `copy` onto itself needs no code.
//! - **A `dynamic-update-slice` or `scatter` whose output is not operand 0's slice** must copy operand 0 first.
//!
//! All other slices that an instruction reads are disjoint from all slices that it writes.

mod assign;
pub(crate) mod pack;
mod report;
mod types;
mod verify;

pub use assign::assign_buffers;
pub(crate) use pack::{Item, pack};
pub use types::{
    Allocation, AllocationId, AllocationKind, BufferAssignment, BufferOptions, LiveValue, OutputSlice, Peak, Slice,
};
pub use verify::verify_assignment;
