//! Protobuf form of modules, compatible with XLA in both directions.
//!
//! [`parse_module`] converts bytes to a [`Module`](crate::Module), and [`serialize_module`] converts back; a round trip
//! preserves the text of the module. The reader accepts a bare `HloModuleProto` and one inside `HloProto`,
//! `HloSnapshot` or `HloModuleProtoWithConfig` (of which it reads the counts of replicas and partitions). The format
//! leaves some decisions open, which are made as follows:
//!
//! - Computations may be in any order; instructions follow their operands and control predecessors, as XLA requires.
//! - Instruction ids are keys within their computation. They may, but need not, be composed with the computation's id,
//!   as current versions of XLA and this writer do.
//! - Fields that a module cannot represent are skipped: profiles, device assignments, program-wide SPMD shardings,
//!   debug attributes and backend configurations of modules and computations, legacy sparse layouts, unknown fields.
//! - The message of a module cannot represent `replica_count`, `num_partitions`, `alias_passthrough_params`, the
//!   `allow_spmd_sharding_propagation_to_*` flags and `debug_attributes` of the text; they are not written (nor by
//!   XLA).
//! - A large constant of equal elements is written as a broadcast of one element; messages are at most 2 GiB long.
//! - Characters of names that the text form cannot spell become `_`, as in XLA's reader. An array without a layout is
//!   row-major.
//! - Text must be UTF-8; a `backend_config` may be arbitrary bytes.
//! - Messages nest at most 100 levels, the limit of protobuf readers.
//!
//! Errors are [`Error::InvalidArgument`] (or `Unimplemented`, naming the operation) and name the computation,
//! instruction and field at fault. Reading takes time linear in the number of bytes, and memory that is a small
//! multiple of it: computations and instructions are decoded one at a time.

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

/// Returns the error for a message that cannot be decoded.
fn undecodable(what: &str, error: prost::DecodeError) -> Error {
    Error::invalid_argument(format!("{what} is malformed: {error}")).with_source(error)
}
