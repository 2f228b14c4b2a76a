//! Reducer of any computation, through the evaluator.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use xla_hlo::eval::{Evaluator, ScalarFunction};
use xla_hlo::{CompId, ElementType, Error, Module, Result};

use super::scalars::reduce_scalars;
use crate::collective::reducer::Reducer;

/// Reduces by a computation of two scalars.
pub(in crate::collective) struct ComputationReducer {
    module: Arc<Module>,
    function: ScalarFunction,
    /// Copies of the function that no thread uses: a call writes to its registers.
    idle: Mutex<Vec<ScalarFunction>>,
    accumulator: ElementType,
}

impl ComputationReducer {
    /// Prepares a computation, which takes two scalars of one type and returns one.
    pub fn new(module: &Arc<Module>, computation: CompId) -> Result<ComputationReducer> {
        let function = ScalarFunction::new(module, computation)?;
        match (function.parameter_types(), function.result_types()) {
            (&[a, b], &[accumulator]) if a == accumulator && b == accumulator => {
                Ok(ComputationReducer { module: module.clone(), function, idle: Mutex::default(), accumulator })
            }
            (parameters, results) => Err(Error::invalid_argument(format!(
                "the combiner takes {parameters:?} and returns {results:?}, not one type"
            ))),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<ScalarFunction>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the type of parameters and result.
    pub fn accumulator(&self) -> ElementType {
        self.accumulator
    }
}

impl std::fmt::Debug for ComputationReducer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "computation of {} in {}", self.accumulator, self.module.name())
    }
}

impl Reducer for ComputationReducer {
    fn reduce(&self, ty: ElementType, sources: &[&[u8]], result: &mut [u8]) -> Result<()> {
        let mut evaluator = Evaluator::new(&self.module);
        let idle = self.idle().pop();
        let mut function = idle.unwrap_or_else(|| self.function.clone());
        reduce_scalars((ty, self.accumulator), sources, result, |sum, value| {
            Ok(function.call(&mut evaluator, &[sum, value])?[0])
        })?;
        self.idle().push(function);
        Ok(())
    }
}
