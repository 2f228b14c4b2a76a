//! Reducer of a single operation.

use std::fmt;
use std::sync::OnceLock;

use xla_hlo::ops::{Binary, BinaryOp, ElementFunction, Op};
use xla_hlo::{ElementType, Error, Result};

use super::native::native;
use super::scalars::reduce_scalars;
use super::table::Table;
use crate::collective::reducer::Reducer;

/// Reduces by one operation on accumulator and element.
pub(in crate::collective) struct SimpleReducer {
    operation: BinaryOp,
    accumulator: ElementType,
    /// Function of values, for types without native arithmetic.
    function: OnceLock<ElementFunction>,
    /// Results for elements of one byte without native arithmetic.
    table: Table,
}

impl SimpleReducer {
    pub fn new(operation: BinaryOp, accumulator: ElementType) -> SimpleReducer {
        SimpleReducer { operation, accumulator, function: OnceLock::new(), table: Table::default() }
    }

    fn function(&self) -> Result<&ElementFunction> {
        if let Some(function) = self.function.get() {
            return Ok(function);
        }
        let op = Op::from(Binary { op: self.operation });
        let function = ElementFunction::new(&op, &[self.accumulator; 2], self.accumulator)?;
        let function = function.ok_or_else(|| Error::internal("a binary operation has no function of elements"))?;
        Ok(self.function.get_or_init(|| function))
    }
}

impl fmt::Debug for SimpleReducer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {}", self.operation, self.accumulator)
    }
}

impl Reducer for SimpleReducer {
    fn reduce(&self, ty: ElementType, sources: &[&[u8]], result: &mut [u8]) -> Result<()> {
        let has_accumulator_type = ty == self.accumulator;
        let Some((first, others)) = sources.split_first() else { return Ok(()) };
        if let Some(step) = native(self.operation, ty).filter(|_| has_accumulator_type) {
            result.copy_from_slice(first);
            others.iter().for_each(|source| step(result, source));
            return Ok(());
        }
        let function = self.function()?;
        if has_accumulator_type
            && ty.byte_width() == 1
            && let Some(results) = self.table.results(ty, others.len() * result.len(), function)
        {
            result.copy_from_slice(first);
            for source in others {
                let pairs = result.iter_mut().zip(*source);
                pairs.for_each(|(sum, &element)| *sum = results[256 * usize::from(*sum) + usize::from(element)]);
            }
            return Ok(());
        }
        let step = |sum, value| Ok(function.apply(&[sum, value]));
        reduce_scalars((ty, self.accumulator), sources, result, step)
    }
}
