//! Gather and scatter: windows at positions that an array of indices specifies.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use xla::hlo::ops::{Gather, Scatter};
use xla::hlo::{InstrId, Module};
use xla::service::thunks::LoweringContext;

use super::element::Expression;
use super::movement::{clamped, index};
use crate::builder::{KernelBuilder, Loop};
use crate::machine::Work;

impl Expression<'_> {
    /// Computes an element of a gather: window starts are clamped so that windows fit.
    pub fn gather(
        &mut self,
        k: &mut KernelBuilder<'_>,
        op: &Gather,
        operands: &[InstrId],
        at: &[Value],
    ) -> Option<Value> {
        let &[array, indices] = operands else { return None };
        let (dims, (ty, indices_dims)) = (self.array(array)?.1, self.array(indices)?);
        let mut place = starts(k, op, at, (dims.len(), indices_dims.len()), &mut |k, place| {
            let value = self.element(k, indices, place)?;
            index(k, value, ty)
        })?;
        for &d in &op.start_index_map {
            place[d] = clamped(k, place[d], (dims[d] - op.slice_sizes[d]) as i64);
        }
        for (d, &slice) in window_dims(op, dims.len()).zip(&op.offset_dims) {
            place[d] = k.f.ins().iadd(place[d], at[slice]);
        }
        self.element(k, array, &place)
    }
}

/// Returns the dimensions of an array of `rank` dimensions that windows span.
fn window_dims(op: &Gather, rank: usize) -> impl Iterator<Item = usize> {
    (0..rank).filter(|d| !op.collapsed_slice_dims.contains(d) && !op.operand_batching_dims.contains(d))
}

/// Returns the start, along each dimension of the array, of the window that contains element `at` of the slices. Ranks
/// are those of the array and the indices; `load` loads an index.
fn starts(
    k: &mut KernelBuilder<'_>,
    op: &Gather,
    at: &[Value],
    (rank, indices_rank): (usize, usize),
    load: &mut dyn FnMut(&mut KernelBuilder<'_>, &[Value]) -> Option<Value>,
) -> Option<Vec<Value>> {
    let zero = k.int(0);
    let mut batch = (0..at.len()).filter(|d| !op.offset_dims.contains(d)).map(|d| at[d]);
    let mut place = vec![zero; indices_rank];
    for d in (0..indices_rank).filter(|&d| d != op.index_vector_dim) {
        place[d] = batch.next()?;
    }
    let mut starts = vec![zero; rank];
    for (component, &d) in op.start_index_map.iter().enumerate() {
        if let Some(i) = place.get_mut(op.index_vector_dim) {
            *i = k.int(component as i64);
        }
        starts[d] = load(k, &place)?;
    }
    op.operand_batching_dims.iter().zip(&op.start_indices_batching_dims).for_each(|(&d, &i)| starts[d] = place[i]);
    Some(starts)
}

/// Emits the kernel of a scatter, with one work item: combines the updates with the results, window by window, without
/// windows that do not fit. The arrays are N inputs, the indices, N updates, N results.
pub(super) fn scatter(
    k: &mut KernelBuilder<'_>,
    module: &Module,
    cx: &LoweringContext<'_>,
    op: &Scatter,
) -> Option<Work> {
    let count = cx.results.len();
    let [input, indices, update] = [0, count, count + 1].map(|i| cx.operands.get(i).map(|array| &array.shape));
    let (input, indices, update) = (input?, indices?, update?);
    let mut loops: Vec<Loop> = vec![k.begin_loop(k.items, &[])];
    let mut at = vec![loops[0].index; update.rank()];
    // Windows are in sequence, in the order of the indices.
    let (inner, outer): (Vec<usize>, Vec<usize>) = (0..at.len()).partition(|d| op.update_window_dims.contains(d));
    for d in outer.into_iter().chain(inner) {
        let this = k.begin_loop_of(update.dims()[d], &[]);
        at[d] = this.index;
        loops.push(this);
    }
    // Gather that reads the elements that this scatter writes.
    let mut sizes = vec![1; input.rank()];
    let mut reads = Gather {
        offset_dims: op.update_window_dims.clone(),
        collapsed_slice_dims: op.inserted_window_dims.clone(),
        start_index_map: op.scatter_dims_to_operand_dims.clone(),
        operand_batching_dims: op.input_batching_dims.clone(),
        start_indices_batching_dims: op.scatter_indices_batching_dims.clone(),
        index_vector_dim: op.index_vector_dim,
        slice_sizes: Vec::new(),
        indices_are_sorted: false,
    };
    let dims = window_dims(&reads, sizes.len()).zip(&op.update_window_dims);
    dims.for_each(|(d, &slice)| sizes[d] = update.dims()[slice]);
    reads.slice_sizes = sizes;
    let places = k.array(count, indices);
    let mut place = starts(k, &reads, &at, (input.rank(), indices.rank()), &mut |k, place| {
        let value = k.load(&places, place);
        index(k, value, indices.element_type())
    })?;
    let mut fits = k.f.ins().iconst(types::I8, 1);
    for &d in &reads.start_index_map {
        // A negative start is a large unsigned number.
        let bound = k.int((input.dims()[d] + 1).saturating_sub(reads.slice_sizes[d]) as i64);
        let here = k.f.ins().icmp(IntCC::UnsignedLessThan, place[d], bound);
        fits = k.f.ins().band(fits, here);
    }
    for (d, &slice) in window_dims(&reads, input.rank()).zip(&op.update_window_dims) {
        place[d] = k.f.ins().iadd(place[d], at[slice]);
    }
    let branch = k.begin_branch(fits);
    combine(k, module, cx, op, (&place, &at))?;
    k.otherwise(&branch, &[]);
    k.end_branch(&branch, &[]);
    loops.into_iter().rev().for_each(|this| _ = k.end_loop(this, &[]));
    Some(Work { items: 1, elements: update.element_count() })
}

/// Combines the updates at one index with the results at another index.
fn combine(
    k: &mut KernelBuilder<'_>,
    module: &Module,
    cx: &LoweringContext<'_>,
    op: &Scatter,
    (into, from): (&[Value], &[Value]),
) -> Option<()> {
    let combiner = &module[op.computation];
    let expression = Expression::of_values(module, combiner, &[]);
    let (mut current, mut updates, mut results) = (Vec::new(), Vec::new(), Vec::new());
    for (i, (result, ty)) in cx.results.iter().zip(expression.accumulator_types(combiner)?).enumerate() {
        if result.shape.element_type() != ty {
            return None;
        }
        let place = cx.results.len() + 1 + i;
        let update = &cx.operands[place].shape;
        let array = k.array(place, update);
        updates.push((k.load(&array, from), update.element_type()));
        results.push(k.array(cx.operands.len() + i, &result.shape));
        current.push(k.load(&results[i], into));
    }
    let values = expression.combined(k, combiner, &current, &updates)?;
    values.into_iter().zip(results).for_each(|(value, array)| k.store(value, &array, into));
    Some(())
}
