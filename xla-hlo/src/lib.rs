//! The HLO intermediate representation: shapes, literals, operations, text and protobuf forms, verifier, builder,
//! reference evaluator.
//!
//! ```text
//! Module ── computations (CompId) ── instructions (InstrId)
//!                                      │ shape: Shape      shape of the result
//!                                      │ op: Op            one enum, each variant with exactly its attributes
//!                                      │ operands, users   kept consistent by Computation's edit methods
//!                                      └ annotations       metadata, sharding, ...
//! ```
//!
//! Ids are typed 32-bit numbers; only the bytes of literals are reference counted. Operations are defined in
//! [`ops`], one folder for each family. This crate does not depend on passes, backends or devices.

#![warn(missing_docs)]

pub mod builder;
pub mod effects;
mod element_type;
pub mod entity;
mod error;
pub mod eval;
mod literal;
mod module;
pub mod ops;
pub mod out_of_memory;
pub mod proto;
pub mod sdy;
mod shape;
pub mod text;
mod thread_pool;
pub mod verify;

pub use element_type::{ElementKind, ElementType};
pub use error::{Detail, Error, Result, ResultExt};
pub use literal::float_format::{FloatFormat, FloatSpecials};
pub use literal::{Literal, Scalar};
pub use module::dynamic_result;
pub(crate) use module::names;
pub use module::{
    Annotations, BackendConfig, CompId, Computation, DeviceList, FileLocation, FrontendAttributes, InputOutputAlias,
    InstrId, Instruction, LeafSharding, MAIN_THREAD, Metadata, Module, ModuleAttributes, ParameterLeaf, ProgramShape,
    ShardGroup, Sharding, ShardingKind, StackFrame, StackTables, SubgroupKind, TiledSharding,
};
pub use ops::{Op, Opcode};
pub use shape::{
    ArrayShape, Dynamism, IndexIter, Layout, MEMORY_KINDS, MemoryStep, MemoryStepKind, Shape, SplitConfig, Tile,
    TileDim, linear_index, multi_index, strides,
};
pub use thread_pool::has_thread_pool;
pub use verify::VerifiedModule;
