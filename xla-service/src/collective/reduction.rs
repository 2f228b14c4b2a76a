//! Reductions: combiners of elements from several members.

use std::sync::Arc;

use xla_hlo::ops::{BinaryOp, simple_combiner};
use xla_hlo::{CompId, ElementType, Module, Result};

use super::reducer::Reducer;
use super::reducers::{ComputationReducer, SimpleReducer};

/// Combiner of a reducing collective. Two are equal if they have the same operation and type, or one reducer.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// Operation, if the combiner is a single one on accumulator and element, in this order.
    pub operation: Option<BinaryOp>,
    /// Type of the combiner's parameters and result. Its kind is that of the elements.
    pub accumulator: ElementType,
    /// Implementation.
    pub reducer: Arc<dyn Reducer>,
}

impl Reduction {
    /// Returns the reduction by a computation of two scalars, as the evaluator computes it.
    pub fn new(module: &Arc<Module>, computation: CompId) -> Result<Reduction> {
        let general = ComputationReducer::new(module, computation)?;
        let accumulator = general.accumulator();
        let callee = &module[computation];
        let is_in_order = callee[callee.root()].operands() == callee.parameters();
        Ok(match simple_combiner(callee).filter(|_| is_in_order) {
            Some(operation) => Reduction::simple(operation, accumulator),
            None => Reduction { operation: None, accumulator, reducer: Arc::new(general) },
        })
    }

    /// Returns the reduction by one operation on values of type `accumulator`.
    pub fn simple(operation: BinaryOp, accumulator: ElementType) -> Reduction {
        let reducer = Arc::new(SimpleReducer::new(operation, accumulator));
        Reduction { operation: Some(operation), accumulator, reducer }
    }
}

impl PartialEq for Reduction {
    fn eq(&self, other: &Reduction) -> bool {
        let is_same = self.operation.is_some() || Arc::ptr_eq(&self.reducer, &other.reducer);
        is_same && self.operation == other.operation && self.accumulator == other.accumulator
    }
}
