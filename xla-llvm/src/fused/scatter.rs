//! Scatter: runs of updates combined into the arrays they belong to, at places that the caller lists.

use xla_hlo::ops::Scatter;
use xla_hlo::{ArrayShape, ElementType, Error, InstrId, Result};

use super::address::compute_bits;
use super::index::{Coord, SymbolId};
use super::kernel::{Kernel, KernelSource, finish, kernel_function, parameter, pointers};
use super::nest::Range;
use super::{FusedEmitter, Source};
use crate::elemental::{self, Value};
use crate::emitter::Emitter;

/// How many elements of a window lie beside each other both in the input and in the update, which are row major.
///
/// A window consists of such runs.
pub fn scatter_run(op: &Scatter, input: &ArrayShape, update: &ArrayShape) -> usize {
    let mut window = op.update_window_dims.iter().rev();
    let mut last = update.rank();
    let mut run = 1;
    for d in (0..input.rank()).rev() {
        if op.inserted_window_dims.contains(&d) || op.input_batching_dims.contains(&d) {
            if input.dims()[d] == 1 {
                continue;
            }
            break;
        }
        match window.next() {
            Some(&u) if u + 1 == last => last = u,
            Some(_) | None => break,
        }
        run *= update.dims()[last];
        if update.dims()[last] != input.dims()[d] {
            break;
        }
    }
    run
}

/// Writes the function that combines runs, as [`super::emit_kernel`] describes it.
pub(super) fn emit(emitter: &Emitter<'_>, source: &KernelSource<'_>, op: &Scatter, name: &str) -> Result<Kernel> {
    let graph = &source.module[source.computation];
    let operands = graph[source.root].operands();
    let count = operands.len() / 2;
    let shape = |id: InstrId| graph[id].shape().expect_array().cloned();
    let inputs = operands[..count].iter().map(|&id| shape(id)).collect::<Result<Vec<_>>>()?;
    let updates = operands[count + 1..].iter().map(|&id| shape(id)).collect::<Result<Vec<_>>>()?;
    let (Some(input), Some(update)) = (inputs.first(), updates.first()) else {
        return Err(Error::internal("a scatter without arrays"));
    };
    let run = scatter_run(op, input, update) as u64;
    let mut width = emitter.target().lanes(widest(&inputs, &updates));
    while width > 1 && u64::from(width) >= 2 * run {
        width /= 2;
    }
    let function = kernel_function(emitter, name);
    let mut fused = FusedEmitter::new(emitter, source.module, source.computation)?;
    let bases = pointers(emitter, function, 2 * count + 2)?;
    let flat = |shapes: &[ArrayShape], first: usize| -> Vec<Source<'_>> {
        let line = |(i, shape): (usize, &ArrayShape)| Source {
            base: bases[first + i],
            shape: ArrayShape::new(shape.element_type(), [shape.element_count()]),
        };
        shapes.iter().enumerate().map(line).collect()
    };
    let runs = Runs { op, root: source.root, inputs: flat(&inputs, 0), updates: flat(&updates, count) };
    let list = |i: usize| Source { base: bases[2 * count + i], shape: ArrayShape::new(ElementType::S64, [1]) };
    let (into, from) = (list(0), list(1));
    let (start, end) = (parameter(emitter, function, 1)?, parameter(emitter, function, 2)?);
    let range = Range { start, end, extent: None, width: 1, whole: true };
    fused.for_each(range, Vec::new(), &mut |s, number, _| {
        let into = listed(s, source.root, &into, number, input.element_count())?;
        let from = listed(s, source.root, &from, number, update.element_count())?;
        if run == 1 {
            runs.combine(s, &into, &from)?;
            return Ok(Vec::new());
        }
        let range = s.full_range(run, width);
        s.for_each(range, Vec::new(), &mut |s, lane, _| {
            let lane = Coord::symbol(lane);
            runs.combine(s, &into.clone().plus(&lane), &from.clone().plus(&lane))?;
            Ok(Vec::new())
        })?;
        Ok(Vec::new())
    })?;
    finish(emitter)?;
    Ok(Kernel { name: name.to_string(), units: 1, work: update.element_count() as f64 })
}

/// The position below `extent` that stands in a list at that number.
fn listed<'ctx>(
    s: &mut FusedEmitter<'_, 'ctx, '_>,
    root: InstrId,
    list: &Source<'ctx>,
    number: SymbolId,
    extent: usize,
) -> Result<Coord> {
    let position = s.load(root, list, &vec![Coord::symbol(number)])?;
    let level = s.depth();
    Ok(s.computed(position.lanes(), None, Some(extent as u64), level))
}

/// Bits of the widest lane that is computed with.
fn widest(inputs: &[ArrayShape], updates: &[ArrayShape]) -> u32 {
    inputs.iter().chain(updates).map(|shape| compute_bits(shape.element_type())).max().unwrap_or(32)
}

/// The arrays of a scatter, each as one row of elements.
struct Runs<'a, 'ctx> {
    op: &'a Scatter,
    root: InstrId,
    inputs: Vec<Source<'ctx>>,
    updates: Vec<Source<'ctx>>,
}

impl<'ctx> Runs<'_, 'ctx> {
    /// Combines the elements of the updates at one position into those of the arrays at another.
    fn combine<'e>(&self, s: &mut FusedEmitter<'e, 'ctx, '_>, into: &Coord, from: &Coord) -> Result<()> {
        let (into, from) = (vec![into.clone()], vec![from.clone()]);
        let mut arguments: Vec<Value<'e, 'ctx>> = Vec::new();
        for input in &self.inputs {
            arguments.push(s.load(self.root, input, &into)?);
        }
        for update in &self.updates {
            arguments.push(s.load(self.root, update, &from)?);
        }
        let combiner = &s.module[self.op.computation];
        for (argument, &parameter) in arguments.iter_mut().zip(combiner.parameters()) {
            let taken_as = combiner[parameter].shape().element_type();
            if let Some(ty) = taken_as.filter(|&ty| ty != argument.element_type()) {
                *argument = elemental::convert(s.emitter, *argument, ty)?;
            }
        }
        let results = s.call(self.op.computation, &arguments)?;
        if results.len() != self.inputs.len() {
            return Err(Error::internal("a combiner gives another number of values than it takes"));
        }
        for (input, value) in self.inputs.iter().zip(results) {
            s.store(input, &into, value)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use xla_hlo::CompId;
    use xla_hlo::entity::EntityId;

    use super::*;

    #[test]
    fn runs_go_as_far_as_both_arrays_are_alike() {
        let run = |input: &[usize], update: &[usize], window: &[usize], inserted: &[usize]| {
            let op = Scatter {
                update_window_dims: window.to_vec(),
                inserted_window_dims: inserted.to_vec(),
                scatter_dims_to_operand_dims: vec![0],
                input_batching_dims: vec![],
                scatter_indices_batching_dims: vec![],
                index_vector_dim: 1,
                indices_are_sorted: false,
                unique_indices: false,
                computation: CompId::from_index(0),
            };
            let [input, update] = [input, update].map(|dims| ArrayShape::new(ElementType::F32, dims));
            scatter_run(&op, &input, &update)
        };
        assert_eq!(run(&[100], &[7], &[], &[0]), 1);
        assert_eq!(run(&[100, 8], &[7, 8], &[1], &[0]), 8);
        assert_eq!(run(&[100, 4, 8], &[7, 4, 8], &[1, 2], &[0]), 32);
        assert_eq!(run(&[100, 4, 8], &[7, 3, 8], &[1, 2], &[0]), 24);
        assert_eq!(run(&[100, 4, 8], &[7, 4, 5], &[1, 2], &[0]), 5);
        assert_eq!(run(&[100, 8], &[8, 7], &[0], &[0]), 1, "the batch is innermost");
        assert_eq!(run(&[8, 100], &[7, 8], &[1], &[1]), 1, "the window is outermost");
        assert_eq!(run(&[8, 1], &[7, 8], &[1], &[1]), 8);
    }
}
