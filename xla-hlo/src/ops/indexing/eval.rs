//! Evaluator of the indexing family.

use super::dim_numbers::{DimNumbers, SliceDim};
use super::*;
use crate::ops::checks;
use crate::ops::combiner::{Combiner, reduction_result};
use crate::ops::movement::strided::{View, clamp_start, copy_slice};
use crate::{ElementType, IndexIter, Scalar, linear_index};

/// Copies the slice at each start index, which is clamped so that the slice fits.
pub(super) fn gather(op: &Gather, _: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let [operand, indices] = checks::operands(operands)?;
    let result = shape.expect_array()?;
    if let Some(element) = operand.as_splat() {
        // All elements are equal, so the indices make no difference.
        return Literal::splat_of_bytes(result, element);
    }
    operand.densify()?;
    indices.densify()?;
    let mut out = Literal::zeros(result)?;
    if out.bytes().is_empty() {
        return Ok(out);
    }
    let (dim_numbers, dims) = (DimNumbers::from(op), operand.array_shape().dims());
    let width = result.element_type().byte_width();
    let slices = Slices::new(&dim_numbers, dims.len(), &indices);
    let (whole, result_view) = (View::row_major(dims), View::row_major(result.dims()));
    let mut batches = IndexIter::new(&slices.batch_sizes);
    while let Some(batch) = batches.next_index() {
        let start = dim_numbers.start(dims.len(), &indices, batch);
        let lasts = dims.iter().zip(&op.slice_sizes).map(|(&dim, &size)| dim - size);
        let start: Vec<usize> = start.into_iter().zip(lasts).map(|(start, last)| clamp_start(start, last)).collect();
        let to = slices.place(&result_view, batch);
        let from = whole.clone().at(&start);
        copy_slice(&op.slice_sizes, width, (operand.bytes(), &from), (out.bytes_mut(), &to));
    }
    Ok(out)
}

/// Mapping from windows to the slices array, which is the result of a gather or the updates of a scatter.
struct Slices {
    /// For each operand dimension, the dimension of the slices array that runs along it, if any.
    window: Vec<Option<usize>>,
    /// For each batch dimension of the indices array, the dimension of the slices array.
    batch: Vec<usize>,
    /// Size of each batch dimension.
    batch_sizes: Vec<usize>,
}

impl Slices {
    fn new(dim_numbers: &DimNumbers<'_>, operand_rank: usize, indices: &Literal) -> Slices {
        let indices = indices.array_shape();
        let mut slices = Slices { window: vec![None; operand_rank], batch: Vec::new(), batch_sizes: Vec::new() };
        for (at, dim) in dim_numbers.slice_dims(operand_rank, indices).into_iter().enumerate() {
            match dim {
                SliceDim::Window(d) => slices.window[d] = Some(at),
                SliceDim::Batch(d) => {
                    slices.batch.push(at);
                    slices.batch_sizes.push(indices.dims()[d]);
                }
            }
        }
        slices
    }

    /// Returns the slice of one start index as a view of the slices array, with dimensions in the operand's order.
    fn place(&self, slices: &View, batch: &[usize]) -> View {
        let mut view = slices.clone();
        self.batch.iter().zip(batch).for_each(|(&d, &i)| view.advance(d, i));
        view.select(self.window.iter().copied())
    }
}

/// Combines each window of the updates into the inputs, in row-major order of the start indices. Windows that are not
/// fully in bounds are skipped.
pub(super) fn scatter(op: &Scatter, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let mut inputs = operands;
    let mut rest = inputs.split_off(inputs.len() / 2);
    let updates = rest.split_off(1);
    let (Some(input), Some(indices), Some(update)) = (inputs.first(), rest.first(), updates.first()) else {
        return Err(checks::missing_operand());
    };
    if update.bytes().is_empty() {
        return reduction_result(shape, inputs);
    }
    let dim_numbers = DimNumbers::from(op);
    let dims = input.array_shape().dims().to_vec();
    let slices = Slices::new(&dim_numbers, dims.len(), indices);
    let update_dims = update.array_shape().dims().to_vec();
    let sizes: Vec<usize> = slices.window.iter().map(|d| d.map_or(1, |d| update_dims[d])).collect();
    let mut values = Values::new(op, ev, inputs, updates)?;
    let mut batches = IndexIter::new(&slices.batch_sizes);
    let (mut into, mut from) = (vec![0; dims.len()], vec![0; update_dims.len()]);
    while let Some(batch) = batches.next_index() {
        let start = dim_numbers.start(dims.len(), indices, batch);
        let fits =
            start.iter().zip(&sizes).zip(&dims).all(|((&s, &size), &dim)| s >= 0 && s + size as i128 <= dim as i128);
        if !fits {
            continue;
        }
        slices.batch.iter().zip(batch).for_each(|(&d, &i)| from[d] = i);
        let mut places = IndexIter::new(&sizes);
        while let Some(place) = places.next_index() {
            for (d, &i) in place.iter().enumerate() {
                into[d] = start[d] as usize + i;
                if let Some(u) = slices.window[d] {
                    from[u] = i;
                }
            }
            values.combine(ev, linear_index(&dims, &into), linear_index(&update_dims, &from))?;
        }
    }
    reduction_result(shape, values.inputs)
}

/// The arrays that are written, and the updates that are combined into them.
struct Values {
    inputs: Vec<Literal>,
    updates: Vec<Literal>,
    combiner: Combiner,
    /// Whether elements of the updates are copied unchanged.
    copies: bool,
    current: Vec<Scalar>,
}

impl Values {
    fn new(op: &Scatter, ev: &Evaluator<'_>, inputs: Vec<Literal>, updates: Vec<Literal>) -> Result<Values> {
        let types =
            |arrays: &[Literal]| arrays.iter().map(|a| a.array_shape().element_type()).collect::<Vec<ElementType>>();
        let combiner = Combiner::new(ev, op.computation, &types(&updates))?;
        let copies = combiner.replaces() && types(&inputs) == types(&updates);
        Ok(Values { inputs, updates, combiner, copies, current: Vec::new() })
    }

    /// Combines element `from` of each update into element `into` of its input.
    fn combine(&mut self, ev: &mut Evaluator<'_>, into: usize, from: usize) -> Result<()> {
        if self.copies {
            for (input, update) in self.inputs.iter_mut().zip(&self.updates) {
                let element = update.element_bytes(from);
                input.bytes_mut()[into * element.len()..][..element.len()].copy_from_slice(element);
            }
            return Ok(());
        }
        self.current.clear();
        self.current.extend(self.inputs.iter().map(|input| input.get(into)));
        self.combiner.combine(ev, &mut self.current, self.updates.iter().map(|update| update.get(from)))?;
        for (input, value) in self.inputs.iter_mut().zip(&self.current) {
            input.set(into, *value);
        }
        Ok(())
    }
}
