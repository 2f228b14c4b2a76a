//! Protobuf form of modules, compatible with XLA in both directions.
//!
//! [`parse_module`] goes from bytes to a [`Module`](crate::Module), [`serialize_module`] goes back; a module has the
//! same text before and after. The reader takes a bare `HloModuleProto` and one inside `HloProto`, `HloSnapshot` or
//! `HloModuleProtoWithConfig` (of which it reads the counts of replicas and partitions). Decisions that the format
//! leaves open:
//!
//! - Computations may come in any order; instructions come after their operands and control predecessors, as XLA
//!   demands.
//! - Instruction ids are keys within their computation: composed with the computation's id (as XLA does it now, and as
//!   they are written here) or not.
//! - Fields that a module has no place for are passed over: profiles, device assignments, program-wide SPMD shardings,
//!   debug attributes and backend configurations of modules and computations, legacy sparse layouts, fields unknown
//!   here.
//! - A module has no place in the message for `replica_count`, `num_partitions`, `alias_passthrough_params`, the
//!   `allow_spmd_sharding_propagation_to_*` flags and `debug_attributes` of the text; they are not written (nor by
//!   XLA).
//! - A constant of many equal elements is written as a broadcast of one; messages are at most 2 GiB long.
//! - Names that text could not spell are spelled with `_`, as XLA's reader does it. An array without a layout is row
//!   major.
//! - Text must be UTF-8; a `backend_config` is any bytes.
//! - Messages nest at most 100 levels, the limit of protobuf readers.
//!
//! Errors are [`Error::InvalidArgument`] (or `Unimplemented`, naming the operation) and say which computation,
//! instruction and field is wrong. Reading is linear in the number of bytes, and memory is a small multiple of it:
//! computations and instructions are decoded one at a time.

mod annotations;
mod attributes;
mod computation;
mod element_type;
mod header;
mod identifiers;
mod known;
pub(crate) mod literal;
mod mesh;
#[allow(missing_docs, reason = "fields have the names and the meaning that the format gives them")]
pub mod messages;
mod metadata;
mod module;
pub(crate) mod numbers;
mod origin;
mod outline;
pub(crate) mod shape;
mod sharding;
mod splats;

pub use attributes::{ProtoAttributes, ProtoReader, ProtoWriter};
pub(crate) use attributes::{ProtoNumber, operand_type, proto_numbers, proto_without_attributes};
pub use identifiers::sanitized;
pub use module::{parse_module, serialize_module};
pub use sharding::{parse_sharding, serialize_sharding};

use crate::Error;

/// The error for a message that cannot be decoded.
fn undecodable(what: &str, error: prost::DecodeError) -> Error {
    Error::invalid_argument(format!("{what} is malformed: {error}")).with_source(error)
}
