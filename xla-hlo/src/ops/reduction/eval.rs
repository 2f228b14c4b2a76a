//! Evaluator of the reduction family.

use std::ops::Range;

use super::*;
use crate::ops::combiner::{Combiner, ReduceOperands, reduction_outputs, reduction_result};
use crate::ops::movement::strided::permuted;
use crate::{ElementType, Error, Scalar};

/// Reduces in row-major order of the reduced dimensions, or by [`Runs::tree`] if the combiner is associative.
pub(super) fn reduce(op: &Reduce, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let operands = ReduceOperands::new(operands);
    let types: Vec<ElementType> = operands.arrays.iter().map(|a| a.array_shape().element_type()).collect();
    let mut combiner = Combiner::new(ev, op.computation, &types)?;
    let runs = Runs::new(op, &operands, types, combiner.accumulators(&operands.inits));
    let mut outputs = reduction_outputs(shape)?;
    let work = combiner.work().map(|work| work.saturating_mul(runs.length));
    ev.fill(&mut outputs, work, &mut combiner, |ev, combiner, mut chunk| {
        for i in chunk.range.clone() {
            chunk.set(i, &runs.reduced(ev, combiner, i)?);
        }
        Ok(())
    })?;
    reduction_result(shape, outputs)
}

/// The arrays with the reduced dimensions innermost, so that each result reduces one contiguous run of elements.
struct Runs {
    inits: Vec<Scalar>,
    arrays: Vec<(ElementType, Vec<u8>)>,
    /// Number of elements reduced into one result.
    length: usize,
}

impl Runs {
    fn new(op: &Reduce, operands: &ReduceOperands, types: Vec<ElementType>, inits: Vec<Scalar>) -> Runs {
        let mut arrays = Vec::with_capacity(types.len());
        let mut length = 0;
        for (array, ty) in operands.arrays.iter().zip(types) {
            let dims = array.array_shape().dims();
            let mut reduced = op.dimensions.clone();
            reduced.sort_unstable();
            // Saturates only if another dimension has size 0; then there is nothing to reduce.
            length = reduced.iter().fold(1usize, |n, &d| n.saturating_mul(dims[d]));
            let order = [shape::kept(op, dims.len()), reduced].concat();
            arrays.push((ty, permuted(array, &order)));
        }
        Runs { inits, arrays, length }
    }

    /// Computes the results at position `i`.
    fn reduced(&self, ev: &mut Evaluator<'_>, combiner: &mut Combiner, i: usize) -> Result<Vec<Scalar>> {
        let mut accumulators = self.inits.clone();
        let run = i * self.length..(i + 1) * self.length;
        if combiner.is_associative() && !run.is_empty() {
            let all = self.tree(ev, combiner, run)?;
            combiner.combine(ev, &mut accumulators, [all])?;
            return Ok(accumulators);
        }
        for at in run {
            let elements = self.arrays.iter().map(|array| element(array, at));
            combiner.combine(ev, &mut accumulators, elements)?;
        }
        Ok(accumulators)
    }

    /// Pairwise reduction: combines the results of halves, so that the error of a long sum grows with the logarithm of
    /// its length and not with its length. If a run is long, several threads compute parts of its tree.
    fn tree(&self, ev: &mut Evaluator<'_>, combiner: &mut Combiner, run: Range<usize>) -> Result<Scalar> {
        let longest = ev.chunk_length(run.len(), combiner.work()).max(LEAF);
        if run.len() <= longest {
            return self.one_tree(ev, combiner, run);
        }
        let mut parts: Vec<_> = parts(run.clone(), longest).into_iter().map(|part| (part, None)).collect();
        ev.for_each(parts.iter_mut().collect(), combiner, |ev, combiner, (part, value)| {
            *value = Some(self.one_tree(ev, combiner, part.clone())?);
            Ok(())
        })?;
        let mut values = parts.into_iter().filter_map(|(_, value)| value);
        let mut value = |_: &mut Evaluator<'_>, _: &mut Combiner, _| {
            values.next().ok_or_else(|| Error::internal("a part of the reduction is missing"))
        };
        halves(ev, combiner, run, longest, &mut value)
    }

    fn one_tree(&self, ev: &mut Evaluator<'_>, combiner: &mut Combiner, run: Range<usize>) -> Result<Scalar> {
        halves(ev, combiner, run, LEAF, &mut |ev, combiner, run| {
            let mut value = element(&self.arrays[0], run.start);
            for at in run.skip(1) {
                let next = element(&self.arrays[0], at);
                value = combiner.pair(ev, value, next)?;
            }
            Ok(value)
        })
    }
}

/// Maximal number of elements in a leaf of the tree.
const LEAF: usize = 8;

/// Reduces a run by combining the results of its halves, recursively down to runs of at most `longest` elements.
fn halves(
    ev: &mut Evaluator<'_>,
    combiner: &mut Combiner,
    run: Range<usize>,
    longest: usize,
    leaf: &mut impl FnMut(&mut Evaluator<'_>, &mut Combiner, Range<usize>) -> Result<Scalar>,
) -> Result<Scalar> {
    let Some([left, right]) = halved(&run, longest) else { return leaf(ev, combiner, run) };
    let (a, b) = (halves(ev, combiner, left, longest, leaf)?, halves(ev, combiner, right, longest, leaf)?);
    combiner.pair(ev, a, b)
}

/// Returns the runs that are the leaves of [`halves`], in order.
fn parts(run: Range<usize>, longest: usize) -> Vec<Range<usize>> {
    match halved(&run, longest) {
        Some([left, right]) => [parts(left, longest), parts(right, longest)].concat(),
        None => vec![run],
    }
}

fn halved(run: &Range<usize>, longest: usize) -> Option<[Range<usize>; 2]> {
    let middle = run.start + run.len() / 2;
    (run.len() > longest).then_some([run.start..middle, middle..run.end])
}

fn element((ty, bytes): &(ElementType, Vec<u8>), at: usize) -> Scalar {
    let width = ty.byte_width();
    Scalar::read(*ty, &bytes[at * width..(at + 1) * width])
}
