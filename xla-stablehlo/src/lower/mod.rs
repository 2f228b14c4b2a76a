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
mod complex_bits;
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
mod dynamic_custom;
mod dynamic_padding;
mod einsum;
mod elementwise;
mod entry;
mod fold;
mod frames;
mod function;
mod futures;
mod identities;
mod indexing;
mod layouts;
mod linalg;
mod location;
mod mhlo;
mod movement;
mod operation;
mod promotion;
mod ragged;
mod random;
mod reduction;
mod refinement;
mod rule;
mod sharded;
mod sharding;
mod special;
mod transfer;
mod types;

use xla_hlo::{Module, Result};

use crate::ir;
use crate::refine::ArgumentShapes;

/// Lowers a program to an HLO module.
///
/// `Error::InvalidArgument` for a program that breaks a rule, `Error::Unimplemented` for one with an operation or a
/// type that has no counterpart in HLO; both name the operation and its place.
pub fn lower(program: &ir::Module) -> Result<Module> {
    refine(program, &ArgumentShapes::default())
}

/// Lowers a program with dynamic dimensions to an HLO module for these shapes of its arguments.
///
/// Errors are those of [`lower`], and `Error::InvalidArgument` for an argument whose dynamic dimensions have no sizes,
/// a shape that an argument cannot have, and an assertion of the program about shapes that does not hold.
pub fn refine(program: &ir::Module, arguments: &ArgumentShapes) -> Result<Module> {
    function::lower(program, arguments)
}
