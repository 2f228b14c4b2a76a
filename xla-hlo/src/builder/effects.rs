//! Builder methods for tokens, asynchronous operations, collectives and dynamic sizes.

use super::ComputationBuilder;
use crate::ops::{AddDependency, AfterAll, AllReduce, Async, AsyncStart, Collective, Dynamic, Participants};
use crate::{CompId, InstrId, Result, Shape};

impl ComputationBuilder<'_> {
    /// Adds a token that is ordered after `tokens`; without operands, a fresh token.
    pub fn after_all(&mut self, tokens: impl Into<Vec<InstrId>>) -> Result<InstrId> {
        self.instruction(AfterAll, None, tokens)
    }

    /// Returns the value of `x`, ordered after `token`.
    pub fn add_dependency(&mut self, x: InstrId, token: InstrId) -> Result<InstrId> {
        self.instruction(AddDependency, None, [x, token])
    }

    /// Starts `computation` on `operands` asynchronously; await it once with [`ComputationBuilder::async_done`].
    pub fn async_start(&mut self, computation: CompId, operands: impl Into<Vec<InstrId>>) -> Result<InstrId> {
        let operands = operands.into();
        let shapes = operands.iter().map(|&operand| self.shape(operand).clone()).collect();
        let result = self.module[computation].result_shape().clone();
        let shape = Shape::Tuple(vec![Shape::Tuple(shapes), result]);
        self.instruction(Async::Start(AsyncStart { computation, aliases: Vec::new() }), Some(shape), operands)
    }

    /// Waits for a computation started by [`ComputationBuilder::async_start`] and returns its result.
    pub fn async_done(&mut self, start: InstrId) -> Result<InstrId> {
        self.instruction(Async::Done, None, [start])
    }

    /// Reduces arrays with `computation` over the participating devices.
    pub fn all_reduce(
        &mut self,
        arrays: impl Into<Vec<InstrId>>,
        participants: Participants,
        computation: CompId,
    ) -> Result<InstrId> {
        self.instruction(Collective::AllReduce(AllReduce { participants, computation, is_start: false }), None, arrays)
    }

    /// Returns the size of a dimension, `s32[]`.
    pub fn get_dimension_size(&mut self, x: InstrId, dimension: usize) -> Result<InstrId> {
        self.instruction(Dynamic::GetDimensionSize { dimension }, None, [x])
    }

    /// Sets the dynamic size of a dimension of `x` to `size`, an `s32[]`.
    pub fn set_dimension_size(&mut self, x: InstrId, size: InstrId, dimension: usize) -> Result<InstrId> {
        self.instruction(Dynamic::SetDimensionSize { dimension }, None, [x, size])
    }
}
