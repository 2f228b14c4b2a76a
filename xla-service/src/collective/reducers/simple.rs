//! Reducer of a single operation.

use xla_hlo::ops::{Binary, BinaryOp, ElementFunction, Op};
use xla_hlo::{ElementType, Error, Result};

use super::fold_scalars;
use super::native::native;
use crate::collective::Reducer;

/// Reduces by one operation on accumulator and element.
#[derive(Debug)]
pub(in crate::collective) struct SimpleReducer {
    pub operation: BinaryOp,
    pub accumulator: ElementType,
}

impl SimpleReducer {
    fn function(&self) -> Result<ElementFunction> {
        let op = Op::from(Binary { op: self.operation });
        let function = ElementFunction::new(&op, &[self.accumulator; 2], self.accumulator)?;
        function.ok_or_else(|| Error::internal("a binary operation has no function of elements"))
    }
}

impl Reducer for SimpleReducer {
    fn reduce(&self, ty: ElementType, sources: &[&[u8]], result: &mut [u8]) -> Result<()> {
        let step = native(self.operation, ty).filter(|_| ty == self.accumulator);
        let (Some(step), Some((first, others))) = (step, sources.split_first()) else {
            let function = self.function()?;
            let step = |sum, value| Ok(function.apply(&[sum, value]));
            return fold_scalars((ty, self.accumulator), sources, result, step);
        };
        result.copy_from_slice(first);
        others.iter().for_each(|source| step(result, source));
        Ok(())
    }
}
