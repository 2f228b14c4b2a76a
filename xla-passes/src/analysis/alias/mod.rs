//! Alias analysis: values that must or may share memory, and their live ranges.
//!
//! ```text
//! Flow      which value each leaf of each instruction holds; joins where control flow meets   (no schedule needed)
//!   v
//! Timeline  the scheduled program as one line of steps, loops and branches in place; when each value is needed
//!   v
//! Classes   values put into one piece of memory as long as no two are needed at the same time
//! ```
//!
//! Copy insertion asks the classes which values cannot meet in one buffer and copies those; buffer assignment demands
//! that all meet, lets instructions write over operands they are the last to read, and assigns each class a place.

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
