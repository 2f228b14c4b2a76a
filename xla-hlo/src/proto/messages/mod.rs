//! Protobuf messages by field number, with the names of the format.
//!
//! Only fields that a [`Module`](crate::Module) can represent are declared; readers skip the others. Enumerations are
//! plain numbers here, and `float` is read as its bits. Computations and instructions stay encoded inside the enclosing
//! message until they are needed, so that a large module is never in memory twice.

mod attributes;
mod instruction;
mod literal;
mod module;
mod shape;
mod sharding;

pub use attributes::*;
pub use instruction::*;
pub use literal::LiteralProto;
pub use module::*;
pub use shape::*;
pub use sharding::*;
