//! Alias analysis: values that must or may share memory, and their live ranges.
//!
//! ```text
//! Flow      the value in each leaf of each instruction, with joins where control flow meets (needs no schedule)
//!   v
//! Timeline  the scheduled program as a linear sequence of steps, loops and branches in place; live ranges of values
//!   v
//! Classes   values merged into one piece of memory unless their live ranges overlap
//! ```
//!
//! Copy insertion copies the values that cannot be merged into one buffer. Buffer assignment requires that all moves
//! are merged, lets instructions overwrite operands at their last read, and assigns an offset to each class.

pub(crate) mod classes;
pub(crate) mod flow;
mod in_place;
pub(crate) mod live;
pub(crate) mod role;
pub(crate) mod row_order;
pub(crate) mod timeline;
mod value;

pub use in_place::{ReadOrder, may_share, read_order};
pub(crate) use in_place::{Share, shares};
pub use value::ValueRef;
