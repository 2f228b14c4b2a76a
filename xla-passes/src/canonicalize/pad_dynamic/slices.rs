//! Slices, gathers and scatters of arrays with dynamic sizes.
//!
//! A slice with the full bound of its array along a dimension ends at the array's size if the result is dynamic (`<=`)
//! there. Starts are clamped and slices are dropped by sizes, not by bounds.

use xla_hlo::ops::{BinaryOp, CompareDirection, DynamicSlice, DynamicUpdateSlice, Gather, Pad, PadDim, Scatter, Slice};
use xla_hlo::{ArrayShape, ElementKind, ElementType, Error, InstrId, Result, Scalar};

use super::{Padder, Sizes};

/// Type for comparing starts with sizes; every size fits.
const START: ElementType = ElementType::S64;

impl Padder<'_> {
    pub(super) fn slice(&mut self, id: InstrId, slice: &Slice, operand: InstrId) -> Result<Vec<Sizes>> {
        let mut sizes = self.array_sizes(operand);
        let dims = self.at.dims(operand);
        for (d, range) in slice.ranges.iter().enumerate() {
            let Some(size) = sizes[d] else { continue };
            let is_whole = (range.start, range.limit, range.stride) == (0, dims[d], 1);
            sizes[d] = match self.has_bounds(id, d) {
                true if is_whole => Some(size),
                true => {
                    // ceil((min(size, limit) - start) / stride), at least 0.
                    self.known(dims[d].saturating_add(range.stride))?;
                    let (start, zero) = (self.known(range.start)?, self.known(0)?);
                    let end = self.clamped(size, range.limit)?;
                    let length = self.at.binary(BinaryOp::Subtract, end, start)?;
                    let length = self.at.binary(BinaryOp::Maximum, length, zero)?;
                    let (stride, up) = (self.known(range.stride)?, self.known(range.stride - 1)?);
                    let length = self.at.binary(BinaryOp::Add, length, up)?;
                    Some(self.at.binary(BinaryOp::Divide, length, stride)?)
                }
                false => None,
            };
        }
        Ok(vec![sizes])
    }

    pub(super) fn dynamic_slice(&mut self, id: InstrId, op: &DynamicSlice, operands: &[InstrId]) -> Result<Vec<Sizes>> {
        let sizes = self.array_sizes(operands[0]);
        let mut starts = self.scalar_starts(&operands[1..])?;
        let mut result: Sizes = vec![None; sizes.len()];
        for (d, &size) in sizes.iter().enumerate() {
            let Some(size) = size else { continue };
            result[d] = self.part_of(id, d, size, op.sizes[d])?;
            let length = self.size_or(result[d], op.sizes[d])?;
            starts[d] = self.fitting(starts[d], size, length)?;
        }
        let slice = self.at.add(op.clone(), [&operands[..1], &starts[..]].concat())?;
        self.stand_for(id, slice, vec![result])
    }

    /// Keeps the elements of the base beyond the end of the update.
    pub(super) fn dynamic_update_slice(&mut self, id: InstrId, operands: &[InstrId]) -> Result<Vec<Sizes>> {
        let (mut base, mut update) = (operands[0], operands[1]);
        let (sizes, update_sizes) = (self.array_sizes(base), self.array_sizes(update));
        let (dims, update_dims) = (self.at.dims(base), self.at.dims(update));
        let mut starts = self.scalar_starts(&operands[2..])?;
        for d in 0..dims.len() {
            if sizes[d].is_some() || update_sizes[d].is_some() {
                let (size, length) = (self.size_or(sizes[d], dims[d])?, self.size_or(update_sizes[d], update_dims[d])?);
                starts[d] = self.fitting(starts[d], size, length)?;
            }
        }
        let every: Vec<usize> = (0..dims.len()).collect();
        if let Some(inside) = self.inside(&update_dims, &update_sizes, &every)? {
            // Adds room for the update's elements beyond its size, so that its start is not clamped.
            let room = |d: usize| if update_sizes[d].is_some() { update_dims[d] as i64 } else { 0 };
            let behind = every.iter().map(|&d| PadDim { low: 0, high: room(d), interior: 0 }).collect();
            let zero = self.at.zeros(&ArrayShape::scalar(self.at.element_type(base)?))?;
            base = self.at.add(Pad { dims: behind }, [base, zero])?;
            let read = [&[base], &starts[..]].concat();
            let old = self.at.add(DynamicSlice { sizes: update_dims.clone() }, read)?;
            update = self.at.select(inside, update, old)?;
        }
        let mut value = self.at.add(DynamicUpdateSlice, [&[base, update], &starts[..]].concat())?;
        for (d, &size) in dims.iter().enumerate() {
            value = self.at.slice(value, d, 0, size)?;
        }
        self.stand_for(id, value, vec![sizes])
    }

    pub(super) fn gather(&mut self, id: InstrId, op: &Gather, operands: &[InstrId]) -> Result<Vec<Sizes>> {
        let (sizes, list_sizes) = (self.array_sizes(operands[0]), self.array_sizes(operands[1]));
        let roles = Roles {
            offset_dims: &op.offset_dims,
            left_out: [&op.collapsed_slice_dims[..], &op.operand_batching_dims].concat(),
            index_vector_dim: op.index_vector_dim,
        };
        let mut result: Sizes = vec![None; self.at.array(id)?.rank()];
        for (place, d) in roles.batch(result.len(), list_sizes.len()) {
            result[place] = list_sizes[d];
        }
        for (&d, &i) in op.operand_batching_dims.iter().zip(&op.start_indices_batching_dims) {
            for (place, _) in roles.batch(result.len(), list_sizes.len()).into_iter().filter(|&(_, of)| of == i) {
                result[place] = self.smaller(result[place], sizes[d])?;
            }
        }
        let mut lengths: Sizes = vec![None; sizes.len()];
        for (place, d) in roles.window(sizes.len()) {
            if let Some(size) = sizes[d] {
                lengths[d] = self.part_of(id, place, size, op.slice_sizes[d])?;
                result[place] = lengths[d];
            }
        }
        let mut limits = Vec::with_capacity(op.start_index_map.len());
        for &d in &op.start_index_map {
            limits.push(match sizes[d] {
                Some(size) => {
                    let length = self.size_or(lengths[d], op.slice_sizes[d])?;
                    Some(self.last_start(size, length)?)
                }
                None => None,
            });
        }
        let list = self.below(operands[1], &limits, op.index_vector_dim)?;
        let gather = self.at.add(op.clone(), [operands[0], list])?;
        self.stand_for(id, gather, vec![result])
    }

    /// Replaces indices beyond the size of the list, and those of absent updates, by -1, so that they are dropped.
    pub(super) fn scatter(&mut self, id: InstrId, op: &Scatter, operands: &[InstrId]) -> Result<Vec<Sizes>> {
        let count = operands.len() / 2;
        let (list, updates) = (operands[count], &operands[count + 1..]);
        let roles = Roles {
            offset_dims: &op.update_window_dims,
            left_out: [&op.inserted_window_dims[..], &op.input_batching_dims].concat(),
            index_vector_dim: op.index_vector_dim,
        };
        let (list_dims, update_dims) = (self.at.dims(list), self.at.dims(updates[0]));
        let mut sizes = self.array_sizes(operands[0]);
        let mut update_sizes = self.array_sizes(updates[0]);
        for i in 1..count {
            sizes = self.agreed(&sizes, &self.array_sizes(operands[i]))?;
            update_sizes = self.agreed(&update_sizes, &self.array_sizes(updates[i]))?;
        }
        let mut list_sizes = self.array_sizes(list);
        for (place, d) in roles.batch(update_dims.len(), list_dims.len()) {
            list_sizes[d] = self.smaller(list_sizes[d], update_sizes[place])?;
        }
        let mut lengths = vec![1; sizes.len()];
        for (place, d) in roles.window(sizes.len()) {
            // The padding of an update with its array's full length is written beyond that array's size.
            let is_whole = sizes[d] == update_sizes[place] && !op.scatter_dims_to_operand_dims.contains(&d);
            if update_sizes[place].is_some() && !is_whole {
                return Err(Error::unimplemented("scatter of windows of dynamic size is not implemented"));
            }
            lengths[d] = update_dims[place];
        }
        let mut limits: Sizes = Vec::with_capacity(op.scatter_dims_to_operand_dims.len());
        for &d in &op.scatter_dims_to_operand_dims {
            limits.push(match sizes[d] {
                Some(size) => {
                    let length = self.known(lengths[d])?;
                    Some(self.at.binary(BinaryOp::Subtract, size, length)?)
                }
                None => None,
            });
        }
        let masked = self.masked_places(list, &list_sizes, &limits, op.index_vector_dim)?;
        let mut all = operands.to_vec();
        all[count] = masked;
        let scatter = self.at.add(Scatter { indices_are_sorted: false, unique_indices: false, ..op.clone() }, all)?;
        self.stand_for(id, scatter, vec![sizes; count])
    }

    /// Replaces starts in a list by -1 beyond the end of the list and where a component exceeds its limit.
    fn masked_places(&mut self, list: InstrId, sizes: &Sizes, limits: &Sizes, components: usize) -> Result<InstrId> {
        let dims = self.at.dims(list);
        if sizes.iter().chain(limits).all(Option::is_none) {
            return Ok(list);
        }
        if limits.is_empty() {
            return Err(Error::unimplemented("scatter without indices into arrays of dynamic size is not implemented"));
        }
        let places = self.as_starts(list)?;
        let every: Vec<usize> = (0..dims.len()).filter(|&d| d != components).collect();
        let mut kept = self.inside(&dims, sizes, &every)?;
        if limits.iter().any(Option::is_some) {
            let limit = self.limits(limits, &dims, components)?;
            let mut fits = self.at.compare(CompareDirection::Le, places, limit)?;
            if components < dims.len() {
                // A slice must fit along all dimensions.
                let all = self.at.scalar(ElementType::Pred, Scalar::Pred(true))?;
                let rows = self.at.reduce(BinaryOp::And, fits, all, &[components])?;
                fits = self.at.broadcast(rows, &dims, &every)?;
            }
            kept = Some(match kept {
                Some(kept) => self.at.binary(BinaryOp::And, kept, fits)?,
                None => fits,
            });
        }
        let Some(kept) = kept else { return Ok(places) };
        let nowhere = self.at.splat(&ArrayShape::new(START, dims), Scalar::Signed(-1))?;
        self.at.select(kept, places, nowhere)
    }

    /// Clamps starts to the limits of their components.
    fn below(&mut self, list: InstrId, limits: &Sizes, components: usize) -> Result<InstrId> {
        if limits.iter().all(Option::is_none) {
            return Ok(list);
        }
        let starts = self.as_starts(list)?;
        let limits = self.limits(limits, &self.at.dims(list), components)?;
        self.at.binary(BinaryOp::Minimum, starts, limits)
    }

    /// Returns the limit for each component in a list of starts. Without a limit, it is a value that no start reaches.
    fn limits(&mut self, limits: &Sizes, dims: &[usize], components: usize) -> Result<InstrId> {
        let mut each = Vec::with_capacity(limits.len());
        for &limit in limits {
            let limit = match limit {
                Some(limit) => self.at.convert(limit, START)?,
                None => self.at.integer(START, i64::MAX)?,
            };
            each.push(self.at.reshape(limit, &[1])?);
        }
        let all = self.at.concatenate(&each, 0)?;
        if components < dims.len() {
            return self.at.broadcast(all, dims, &[components]);
        }
        let only = self.at.reshape(all, &[])?;
        self.at.broadcast(only, dims, &[])
    }

    /// Returns one start per dimension, as [`START`].
    fn scalar_starts(&mut self, starts: &[InstrId]) -> Result<Vec<InstrId>> {
        match starts {
            &[vector] if self.at.array(vector)?.rank() == 1 => {
                let vector = self.as_starts(vector)?;
                (0..self.at.dims(vector)[0])
                    .map(|i| {
                        let start = self.at.slice(vector, 0, i, i + 1)?;
                        self.at.reshape(start, &[])
                    })
                    .collect()
            }
            scalars => scalars.iter().map(|&start| self.as_starts(start)).collect(),
        }
    }

    /// Converts integers to [`START`]. Larger values become the maximum, which is out of range as well.
    fn as_starts(&mut self, x: InstrId) -> Result<InstrId> {
        let ty = self.at.element_type(x)?;
        let x = match ty.kind() {
            ElementKind::Unsigned if ty.bit_width() == START.bit_width() => {
                self.at.binary_with(BinaryOp::Minimum, x, Scalar::from_i64(ty, i64::MAX))?
            }
            _ => x,
        };
        self.at.convert(x, START)
    }

    /// Clamps a start so that `length` elements fit into `size`.
    fn fitting(&mut self, start: InstrId, size: InstrId, length: InstrId) -> Result<InstrId> {
        let last = self.last_start(size, length)?;
        let last = self.at.convert(last, START)?;
        let zero = self.at.integer(START, 0)?;
        let start = self.at.binary(BinaryOp::Maximum, start, zero)?;
        self.at.binary(BinaryOp::Minimum, start, last)
    }

    /// Returns the greatest start for which `length` elements fit into `size`, at least 0.
    fn last_start(&mut self, size: InstrId, length: InstrId) -> Result<InstrId> {
        let last = self.at.binary(BinaryOp::Subtract, size, length)?;
        let zero = self.known(0)?;
        self.at.binary(BinaryOp::Maximum, last, zero)
    }

    /// Returns the size of dimension `d` of the result, a slice of at most `length` elements of `size`; `None` if it is
    /// declared as static.
    fn part_of(&mut self, id: InstrId, d: usize, size: InstrId, length: usize) -> Result<Option<InstrId>> {
        match self.has_bounds(id, d) {
            true => self.clamped(size, length).map(Some),
            false => Ok(None),
        }
    }
}

/// Roles of the dimensions of gathered slices or scattered updates.
struct Roles<'a> {
    offset_dims: &'a [usize],
    /// Dimensions of the array that are not in slices.
    left_out: Vec<usize>,
    index_vector_dim: usize,
}

impl Roles<'_> {
    /// Pairs the dimensions inside a slice with dimensions of the array.
    fn window(&self, rank: usize) -> Vec<(usize, usize)> {
        let kept = (0..rank).filter(|d| !self.left_out.contains(d));
        self.offset_dims.iter().copied().zip(kept).collect()
    }

    /// Pairs the dimensions along the list of starts with dimensions of the list.
    fn batch(&self, slice_rank: usize, list_rank: usize) -> Vec<(usize, usize)> {
        let places = (0..slice_rank).filter(|d| !self.offset_dims.contains(d));
        places.zip((0..list_rank).filter(|&d| d != self.index_vector_dim)).collect()
    }
}
