//! Collective instruction and its arrays.

use xla_hlo::ops::Collective;
use xla_hlo::{ArrayShape, Computation, Error, InstrId, Module, Op, Result, Shape};

use crate::thunks::ArraySlice;

/// Collective instruction of a program.
pub(crate) struct Instruction<'a> {
    pub module: &'a Module,
    pub computation: &'a Computation,
    pub id: InstrId,
    pub op: &'a Collective,
    /// Shapes of the operands.
    pub operands: &'a [&'a Shape],
}

/// Arrays of an instruction: operand by operand, each depth first.
pub(super) struct Arrays {
    pub operands: Vec<ArrayShape>,
    pub results: Vec<ArrayShape>,
}

/// Form of the arrays that a member passes to the engine.
#[derive(Clone, Copy)]
pub(crate) enum ArrayForm<'a> {
    /// Bytes of literals, which are row-major.
    Literals,
    /// Memory of a thunk's operands and results, in their layouts.
    Memory(&'a [ArraySlice], &'a [ArraySlice]),
}

impl<'a> Instruction<'a> {
    /// Returns the collective at a position of a module.
    pub fn new(
        module: &'a Module,
        (computation, id): (&'a Computation, InstrId),
        operands: &'a [&'a Shape],
    ) -> Result<Instruction<'a>> {
        match computation[id].op() {
            Op::Collective(op) => Ok(Instruction { module, computation, id, op, operands }),
            _ => Err(Error::internal(format!("%{} is not a collective", computation[id].name()))),
        }
    }

    /// Returns the arrays that a member passes to the engine.
    pub(super) fn arrays(&self, form: ArrayForm<'_>) -> Arrays {
        let leaves = |shape: &Shape| -> Vec<ArrayShape> {
            let shape = shape.without_layout();
            shape.leaves().iter().filter_map(|(_, leaf)| leaf.as_array().cloned()).collect()
        };
        match form {
            ArrayForm::Literals => {
                let shape = self.computation[self.id].shape();
                let result = if self.op.returns_operands() { shape.subshape(&[1]) } else { Some(shape) };
                let operands = self.operands.iter().copied().flat_map(leaves).collect();
                Arrays { operands, results: result.map(leaves).unwrap_or_default() }
            }
            ArrayForm::Memory(operands, results) => {
                let shapes = |arrays: &[ArraySlice]| arrays.iter().map(|a| a.shape.clone()).collect();
                Arrays { operands: shapes(operands), results: shapes(results) }
            }
        }
    }
}
