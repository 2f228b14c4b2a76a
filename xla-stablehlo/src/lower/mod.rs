//! Lowering of StableHLO to HLO: functions and regions become computations, operations become instructions.
//!
//! A function becomes one computation, however often it is called. Regions also become computations. Values that they
//! capture become operands of loops and branches; other regions may only capture constants, which are added again
//! inside. An operation with several results becomes a tuple and its elements.

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
/// Errors:
///
/// - `Error::InvalidArgument` for a program that breaks a rule.
/// - `Error::Unimplemented` for a program with an operation or type that has no counterpart in HLO.
///
/// Both name the operation and its position.
pub fn lower(program: &ir::Module) -> Result<Module> {
    refine(program, &ArgumentShapes::default())
}

/// Lowers a program with dynamic dimensions to an HLO module for the given argument shapes.
///
/// Returns the errors of [`lower`], and `Error::InvalidArgument` for an argument with dynamic dimensions but without
/// sizes, a shape that does not fit its argument, and an assertion of the program about shapes that fails.
pub fn refine(program: &ir::Module, arguments: &ArgumentShapes) -> Result<Module> {
    function::lower(program, arguments)
}
