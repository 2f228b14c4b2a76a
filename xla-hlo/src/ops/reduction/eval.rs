//! Evaluator of the reduction family.

use super::*;
use crate::ops::combiner::{Combiner, ReduceOperands, reduction_outputs, reduction_result};
use crate::ops::movement::strided::permuted;
use crate::{ElementType, Scalar};

/// Reduces in row-major order of the reduced dimensions, or as [`Reducer::tree`] does where the combiner allows.
pub(super) fn reduce(op: &Reduce, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let operands = ReduceOperands::new(operands);
    let mut reducer = Reducer::new(op, ev, &operands)?;
    let mut outputs = reduction_outputs(shape)?;
    let count = outputs.first().map_or(0, |output| output.array_shape().element_count());
    for i in 0..count {
        for (output, value) in outputs.iter_mut().zip(reducer.one(ev, i)?) {
            output.set(i, value);
        }
    }
    reduction_result(shape, outputs)
}

/// The arrays with reduced dimensions innermost, so that each result reduces one run of elements.
struct Reducer {
    combiner: Combiner,
    inits: Vec<Scalar>,
    arrays: Vec<(ElementType, Vec<u8>)>,
    /// Elements reduced into one result.
    length: usize,
}

impl Reducer {
    fn new(op: &Reduce, ev: &Evaluator<'_>, operands: &ReduceOperands) -> Result<Reducer> {
        let types: Vec<ElementType> = operands.arrays.iter().map(|a| a.array_shape().element_type()).collect();
        let combiner = Combiner::new(ev, op.computation, &types)?;
        let inits = combiner.accumulators(&operands.inits);
        let mut arrays = Vec::with_capacity(types.len());
        let mut length = 0;
        for (array, ty) in operands.arrays.iter().zip(types) {
            let dims = array.array_shape().dims();
            let mut reduced = op.dimensions.clone();
            reduced.sort_unstable();
            // Saturates only where another dimension is empty; then there is nothing to reduce.
            length = reduced.iter().fold(1usize, |n, &d| n.saturating_mul(dims[d]));
            let order = [shape::kept(op, dims.len()), reduced].concat();
            arrays.push((ty, permuted(array, &order)));
        }
        Ok(Reducer { combiner, inits, arrays, length })
    }

    /// The results at position `i`.
    fn one(&mut self, ev: &mut Evaluator<'_>, i: usize) -> Result<Vec<Scalar>> {
        let mut accumulators = self.inits.clone();
        let run = i * self.length..(i + 1) * self.length;
        if self.combiner.is_associative() && !run.is_empty() {
            let all = self.tree(ev, run)?;
            self.combiner.combine(ev, &mut accumulators, [all])?;
            return Ok(accumulators);
        }
        for at in run {
            let elements = self.arrays.iter().map(|array| element(array, at));
            self.combiner.combine(ev, &mut accumulators, elements)?;
        }
        Ok(accumulators)
    }

    /// Halves combined with halves: the error of a long sum grows with the logarithm of its length, not with the
    /// length.
    fn tree(&mut self, ev: &mut Evaluator<'_>, run: std::ops::Range<usize>) -> Result<Scalar> {
        const LEAF: usize = 8;
        if run.len() > LEAF {
            let middle = run.start + run.len() / 2;
            let (a, b) = (self.tree(ev, run.start..middle)?, self.tree(ev, middle..run.end)?);
            return self.combiner.pair(ev, a, b);
        }
        let mut value = element(&self.arrays[0], run.start);
        for at in run.skip(1) {
            let next = element(&self.arrays[0], at);
            value = self.combiner.pair(ev, value, next)?;
        }
        Ok(value)
    }
}

fn element((ty, bytes): &(ElementType, Vec<u8>), at: usize) -> Scalar {
    let width = ty.byte_width();
    Scalar::read(*ty, &bytes[at * width..(at + 1) * width])
}
