//! Protobuf messages by field number, with the names of the format.
//!
//! Only fields that a [`Module`](crate::Module) has a place for are declared; readers pass over the others.
//! Enumerations are plain numbers here, and `float` is read as the bits that it is. Computations and instructions stay
//! encoded inside the message around them until they are asked for, so that a large module is never there twice.

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
