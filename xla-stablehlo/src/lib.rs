//! StableHLO programs: portable artifacts as JAX and PyTorch write them, without MLIR.
//!
//! - [`ir`]: a program in memory: operations, regions, values, attributes and types in flat tables.
//! - [`bytecode`]: the MLIR bytecode container, and the encodings of the dialects that artifacts hold (`builtin`,
//!   `vhlo`, `sdy`).

pub mod bytecode;
pub mod ir;
