//! Reductions: combiners of elements from several members.

use std::sync::Arc;

use xla_hlo::ops::{BinaryOp, simple_combiner};
use xla_hlo::{CompId, Computation, ElementType, Module, Result};

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
        if let Some(reduction) = module.get(computation).and_then(Reduction::single) {
            return Ok(reduction);
        }
        let reducer = ComputationReducer::new(module, computation)?;
        Ok(Reduction { operation: None, accumulator: reducer.accumulator(), reducer: Arc::new(reducer) })
    }

    /// Returns the reduction by a combiner that applies one associative operation to accumulator and element, in this
    /// order; `None` for other combiners.
    pub fn single(combiner: &Computation) -> Option<Reduction> {
        single_operation(combiner).map(|(operation, accumulator)| Reduction::simple(operation, accumulator))
    }

    /// Returns the reduction by one operation on values of type `accumulator`.
    pub fn simple(operation: BinaryOp, accumulator: ElementType) -> Reduction {
        let reducer = Arc::new(SimpleReducer::new(operation, accumulator));
        Reduction { operation: Some(operation), accumulator, reducer }
    }
}

/// Returns operation and type of a combiner that applies one operation to accumulator and element, in this order.
fn single_operation(combiner: &Computation) -> Option<(BinaryOp, ElementType)> {
    let operation = simple_combiner(combiner)?;
    let (root, parameters) = (&combiner[combiner.root()], combiner.parameters());
    let accumulator = root.shape().as_array().filter(|shape| shape.dims().is_empty())?.element_type();
    let has_one_type = parameters.iter().all(|&parameter| combiner[parameter].shape().compatible(root.shape()));
    (has_one_type && root.operands() == parameters).then_some((operation, accumulator))
}

impl PartialEq for Reduction {
    fn eq(&self, other: &Reduction) -> bool {
        let is_same = self.operation.is_some() || Arc::ptr_eq(&self.reducer, &other.reducer);
        is_same && self.operation == other.operation && self.accumulator == other.accumulator
    }
}
