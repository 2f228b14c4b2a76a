//! Lowering of StableHLO to HLO: functions and regions become computations, operations become instructions.
//!
//! A function is one computation, whatever the number of its calls. Regions become computations too; values that they
//! capture become operands (of loops, branches) or, constants alone, are made again inside. Several results are a tuple
//! and its elements.

mod annotations;
mod approximate;
mod asynchronous;
mod attributes;
mod broadcasting;
mod call;
mod captures;
mod collective;
mod constants;
mod context;
mod contraction;
mod control_flow;
mod custom;
mod data;
mod dead;
mod dictionary;
mod dimensions;
mod dynamic;
mod einsum;
mod elementwise;
mod entry;
mod fold;
mod frames;
mod function;
mod identities;
mod indexing;
mod layouts;
mod linalg;
mod location;
mod movement;
mod operation;
mod random;
mod reduction;
mod rule;
mod sharded;
mod sharding;
mod special;
mod transfer;
mod types;

use xla_hlo::{Module, Result};

use crate::ir;

/// Lowers a program to an HLO module.
///
/// `Error::InvalidArgument` for a program that breaks a rule, `Error::Unimplemented` for one with an operation or a
/// type that has no counterpart in HLO; both name the operation and its place.
pub fn lower(program: &ir::Module) -> Result<Module> {
    function::lower(program)
}
