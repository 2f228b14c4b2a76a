//! In-memory form of StableHLO programs, between the readers and the lowering to HLO.
//!
//! All entities are in flat tables and refer to each other by index. Therefore, building, walking and dropping a
//! program of any nesting depth needs no recursion. Attributes and types refer to each other by index too;
//! [`Module::check_tables`] checks that none contains itself.

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
