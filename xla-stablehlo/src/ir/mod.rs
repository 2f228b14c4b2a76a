//! StableHLO programs in memory, as readers fill them and the lowering to HLO walks them.
//!
//! Everything lies in flat tables and is named by its index, so that a program of any nesting is built, walked and
//! dropped without recursion. Attributes and types refer to each other by index too; [`Module::check_tables`] has found
//! that none contains itself.

mod attribute;
pub mod forms;
mod ids;
mod module;
mod operation;
mod print;
mod sharding;
mod types;
mod verify;

pub(crate) use attribute::extend_signs;
pub use attribute::{Attribute, EnumKind, Location, ResultAccuracy};
pub use ids::{AttrId, BlockId, Name, OpId, RegionId, StringId, TypeId, ValueId};
pub use module::{Lines, Module, Version};
pub use operation::{Block, Few, Operation, Region, Value};
pub use sharding::Sharding;
pub use types::Type;
pub use verify::{Violation, verify};
