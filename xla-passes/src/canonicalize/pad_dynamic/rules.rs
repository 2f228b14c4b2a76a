//! Rules for operations on arrays with dynamic sizes.

use xla_hlo::ops::{BinaryOp, Dot, Dynamic, DynamicUpdateSlice, Family, Gather, Pad, PadDim, Reduce};
use xla_hlo::{ArrayShape, Dynamism, ElementType, Error, InstrId, Op, Result};

use super::{Padder, Sizes};

impl Padder<'_> {
    /// Applies the rule of an instruction: neutralizes elements that it reads beyond sizes. Returns the sizes of its
    /// leaves.
    pub(super) fn rule(&mut self, id: InstrId) -> Result<Vec<Sizes>> {
        let instruction = &self.at.graph()[id];
        let (op, operands) = (instruction.op().clone(), instruction.operands().to_vec());
        match &op {
            Op::Dynamic(Dynamic::GetDimensionSize { dimension }) => return self.get_size(id, operands[0], *dimension),
            Op::Dynamic(Dynamic::SetDimensionSize { dimension }) => {
                let mut sizes = self.array_sizes(operands[0]);
                if self.at.array(id)?.dynamism(*dimension) == Dynamism::Static {
                    self.set_whole(id, &mut sizes, *dimension)?;
                    return Ok(vec![sizes]);
                }
                let bound = self.at.array(operands[0])?.dims()[*dimension];
                sizes[*dimension] = Some(self.clamped(operands[1], bound)?);
                return Ok(vec![sizes]);
            }
            Op::Dynamic(Dynamic::DynamicReshape) => return self.dynamic_reshape(id, &operands),
            Op::While(op) => return self.while_loop(id, op, operands[0]),
            Op::Conditional(op) => return self.conditional(id, op, &operands),
            Op::Call(op) => return self.call(id, op, &operands),
            _ => {}
        }
        if !operands.iter().any(|&o| self.is_padded(o)) {
            return Ok(Vec::new());
        }
        match &op {
            Op::Tuple(_) => Ok(operands.iter().flat_map(|&o| self.leaf_sizes(o)).collect()),
            Op::GetTupleElement(element) => Ok(self.element_sizes(operands[0], element.index)),
            Op::OptBarrier(_) | Op::Copy(_) | Op::Domain(_) | Op::AddDependency(_) => Ok(self.leaf_sizes(operands[0])),
            Op::Broadcast(broadcast) => {
                let mut sizes = vec![None; self.at.array(id)?.rank()];
                for (size, &d) in self.array_sizes(operands[0]).into_iter().zip(&broadcast.dimensions) {
                    sizes[d] = size;
                }
                Ok(vec![sizes])
            }
            Op::Transpose(transpose) => {
                let sizes = self.array_sizes(operands[0]);
                Ok(vec![transpose.permutation.iter().map(|&d| sizes[d]).collect()])
            }
            Op::Slice(slice) => self.slice(id, slice, operands[0]),
            Op::DynamicSlice(slice) => self.dynamic_slice(id, slice, &operands),
            Op::DynamicUpdateSlice(_) => self.dynamic_update_slice(id, &operands),
            Op::Gather(gather) => self.gather(id, gather, &operands),
            Op::Scatter(scatter) => self.scatter(id, scatter, &operands),
            Op::Reverse(reverse) => self.reverse(id, reverse, operands[0]),
            Op::Sort(sort) => self.sort(id, sort, &operands),
            Op::TopK(top_k) => self.top_k(id, top_k, operands[0]),
            Op::ReduceWindow(op) => self.reduce_window(id, op, &operands),
            Op::SelectAndScatter(op) => self.select_and_scatter(id, op, &operands),
            Op::Convolution(op) => self.convolution(id, op, &operands),
            Op::Fft(fft) => self.batches(id, fft.fft_length.len(), &operands),
            Op::Cholesky(_) | Op::TriangularSolve(_) => self.batches(id, 2, &operands),
            Op::Pad(pad) => self.pad(id, pad, &operands),
            Op::Concatenate(concatenate) => self.concatenate(id, concatenate.dimension, &operands),
            Op::Reshape(_) => self.reshape(id, operands[0]),
            Op::Reduce(reduce) => self.reduce(id, reduce, &operands),
            Op::Dot(dot) => self.dot(id, dot, &operands),
            op if op.opcode().family() == Family::Elementwise => self.elementwise(id, op, &operands),
            op => Err(self.unknown(op)),
        }
    }

    fn unknown(&self, op: &Op) -> Error {
        Error::unimplemented(format!("{} of an array of dynamic size is not implemented", op.opcode()))
    }

    fn get_size(&mut self, id: InstrId, operand: InstrId, dimension: usize) -> Result<Vec<Sizes>> {
        let size = self.size_of(operand, dimension)?;
        self.replace(id, size)?;
        Ok(Vec::new())
    }

    /// Handles batched operations on the last `inner` dimensions of arrays, which must be static.
    fn batches(&mut self, id: InstrId, inner: usize, operands: &[InstrId]) -> Result<Vec<Sizes>> {
        let mut sizes = self.array_sizes(operands[0]);
        for &operand in &operands[1..] {
            sizes = self.agreed(&sizes, &self.array_sizes(operand))?;
        }
        if sizes.iter().rev().take(inner).any(Option::is_some) {
            return Err(self.unknown(self.at.graph()[id].op()));
        }
        Ok(vec![sizes])
    }

    /// Replaces an instruction by `value` and records its sizes.
    pub(super) fn stand_for(&mut self, id: InstrId, value: InstrId, sizes: Vec<Sizes>) -> Result<Vec<Sizes>> {
        self.replace(id, value)?;
        if sizes.iter().flatten().any(Option::is_some) {
            self.sizes.insert(value, sizes);
        }
        Ok(Vec::new())
    }

    /// Replaces an instruction by `value`.
    pub(super) fn replace(&mut self, id: InstrId, value: InstrId) -> Result<()> {
        crate::rewrite::async_chain::complete(self.at.graph_mut(), &[id], value)
    }

    pub(super) fn element_sizes(&self, tuple: InstrId, index: usize) -> Vec<Sizes> {
        let paths = self.at.graph()[tuple].shape().leaves();
        let inside = paths.iter().map(|(path, _)| path.first() == Some(&index));
        self.leaf_sizes(tuple).into_iter().zip(inside).filter(|(_, inside)| *inside).map(|(sizes, _)| sizes).collect()
    }

    /// Handles elementwise operations: elements match by index, so that all arrays share the smallest sizes.
    fn elementwise(&mut self, id: InstrId, op: &Op, operands: &[InstrId]) -> Result<Vec<Sizes>> {
        let shape = self.at.array(id)?.clone();
        let mut sizes: Sizes = vec![None; shape.rank()];
        for &operand in operands {
            if self.at.array(operand)?.same_dims(&shape) {
                sizes = self.agreed(&sizes, &self.array_sizes(operand))?;
            } else if self.is_padded(operand) {
                return Err(self.unknown(op));
            }
        }
        Ok(vec![sizes])
    }

    fn reduce(&mut self, id: InstrId, reduce: &Reduce, operands: &[InstrId]) -> Result<Vec<Sizes>> {
        let count = operands.len() / 2;
        let mut sizes: Sizes = vec![None; self.at.array(operands[0])?.rank()];
        for (i, &operand) in operands[..count].iter().enumerate() {
            let own = self.array_sizes(operand);
            sizes = self.agreed(&sizes, &own)?;
            let fill = self.identity(reduce.computation, operands[count + i])?;
            // The element type may have another precision than the initial value.
            let fill = self.at.convert(fill, self.at.element_type(operand)?)?;
            let filled = self.filled(operand, &own, &reduce.dimensions, fill)?;
            self.at.graph_mut().replace_operand(id, i, filled);
        }
        let kept: Sizes = (0..sizes.len()).filter(|d| !reduce.dimensions.contains(d)).map(|d| sizes[d]).collect();
        Ok(vec![kept; self.at.graph()[id].shape().leaves().len()])
    }

    fn dot(&mut self, id: InstrId, dot: &Dot, operands: &[InstrId]) -> Result<Vec<Sizes>> {
        let dims = &dot.dims;
        let contracted = [&dims.lhs_contracting, &dims.rhs_contracting];
        let all: [Sizes; 2] = [self.array_sizes(operands[0]), self.array_sizes(operands[1])];
        // For a contracted dimension, the smaller size applies to both sides, which are filled with zeros beyond it.
        for side in 0..2 {
            let mut own = all[side].clone();
            for (&here, &there) in contracted[side].iter().zip(contracted[1 - side]) {
                let there = all[1 - side][there];
                own[here] = if side == 0 { self.smaller(own[here], there)? } else { self.smaller(there, own[here])? };
            }
            let zero = self.at.zeros(&ArrayShape::scalar(self.at.element_type(operands[side])?))?;
            let filled = self.filled(operands[side], &own, contracted[side], zero)?;
            self.at.graph_mut().replace_operand(id, side, filled);
        }
        let mut sizes: Sizes = Vec::with_capacity(self.at.array(id)?.rank());
        for (&l, &r) in dims.lhs_batch.iter().zip(&dims.rhs_batch) {
            sizes.push(self.smaller(all[0][l], all[1][r])?);
        }
        let [left, right] = dims.operands([all[0].len(), all[1].len()]);
        sizes.extend(left.free.into_iter().map(|d| all[0][d]));
        sizes.extend(right.free.into_iter().map(|d| all[1][d]));
        Ok(vec![sizes])
    }

    /// Replaces elements beyond the sizes by padding. The size grows by the padding.
    fn pad(&mut self, id: InstrId, pad: &Pad, operands: &[InstrId]) -> Result<Vec<Sizes>> {
        let mut sizes = self.array_sizes(operands[0]);
        let changed = |d: &usize| pad.dims[*d] != PadDim { low: 0, high: 0, interior: 0 };
        let dimensions: Vec<usize> = (0..sizes.len()).filter(changed).collect();
        let filled = self.filled(operands[0], &sizes, &dimensions, operands[1])?;
        self.at.graph_mut().replace_operand(id, 0, filled);
        for d in dimensions {
            let Some(size) = sizes[d] else { continue };
            let PadDim { low, high, interior } = pad.dims[d];
            let zero = self.known(0)?;
            let one = self.known(1)?;
            // size + max(size - 1, 0) * interior + low + high, at least 0.
            let gaps = self.at.binary(BinaryOp::Subtract, size, one)?;
            let gaps = self.at.binary(BinaryOp::Maximum, gaps, zero)?;
            let interior = self.known(interior)?;
            let gaps = self.at.binary(BinaryOp::Multiply, gaps, interior)?;
            let edges = self.at.integer(ElementType::S32, low.saturating_add(high))?;
            let padded = self.at.binary(BinaryOp::Add, size, gaps)?;
            let padded = self.at.binary(BinaryOp::Add, padded, edges)?;
            sizes[d] = Some(self.at.binary(BinaryOp::Maximum, padded, zero)?);
        }
        Ok(vec![sizes])
    }

    /// Writes each array at the end of the previous array's elements, over the elements beyond its size.
    fn concatenate(&mut self, id: InstrId, dimension: usize, operands: &[InstrId]) -> Result<Vec<Sizes>> {
        let shape = self.at.array(id)?.clone();
        let mut sizes: Sizes = vec![None; shape.rank()];
        let mut has_ends = false;
        for &operand in operands {
            let mut own = self.array_sizes(operand);
            has_ends |= own[dimension].take().is_some();
            sizes = self.agreed(&sizes, &own)?;
        }
        if !has_ends {
            return Ok(vec![sizes]);
        }
        let zero = self.known(0)?;
        let mut result = self.at.zeros(&shape)?;
        let mut end = zero;
        for &operand in operands {
            let mut write = vec![result, operand];
            write.extend((0..shape.rank()).map(|d| if d == dimension { end } else { zero }));
            result = self.at.add(DynamicUpdateSlice, write)?;
            let size = self.size_of(operand, dimension)?;
            end = self.at.binary(BinaryOp::Add, end, size)?;
        }
        sizes[dimension] = Some(end);
        self.stand_for(id, result, vec![sizes])
    }

    fn reshape(&mut self, id: InstrId, operand: InstrId) -> Result<Vec<Sizes>> {
        let (from, to) = (self.at.array(operand)?.clone(), self.at.array(id)?.clone());
        let sizes = self.array_sizes(operand);
        if let Some(sizes) = kept_dimensions(&from, &to, &sizes) {
            return Ok(vec![sizes]);
        }
        let mut dynamic = (0..to.rank()).filter(|&d| to.dynamism(d) != Dynamism::Static);
        let (Some(d), None) = (dynamic.next(), dynamic.next()) else {
            return Err(Error::unimplemented(format!(
                "reshape of {from} to {to} is ambiguous: the sizes of the result do not follow from the operand"
            )));
        };
        let others: usize = (0..to.rank()).filter(|&i| i != d).map(|i| to.dims()[i]).product();
        let mut new: Sizes = vec![None; to.rank()];
        if others == 0 {
            // Without elements, the size is undetermined: use the bound, like the evaluator.
            new[d] = Some(self.known(to.dims()[d])?);
            return Ok(vec![new]);
        }
        let mut count = self.known(1)?;
        for i in 0..from.rank() {
            let size = self.size_of(operand, i)?;
            count = self.at.binary(BinaryOp::Multiply, count, size)?;
        }
        let others = self.known(others)?;
        new[d] = Some(self.at.binary(BinaryOp::Divide, count, others)?);
        self.elements_in_order(id, operand, new)
    }

    fn dynamic_reshape(&mut self, id: InstrId, operands: &[InstrId]) -> Result<Vec<Sizes>> {
        let to = self.at.array(id)?.clone();
        let mut sizes = Vec::with_capacity(to.rank());
        for (d, &bound) in to.dims().iter().enumerate() {
            let is_static = to.dynamism(d) == Dynamism::Static;
            sizes.push(if is_static { None } else { Some(self.clamped(operands[d + 1], bound)?) });
        }
        self.elements_in_order(id, operands[0], sizes)
    }

    /// Arranges the elements of `operand` within its sizes in order within the sizes of the result.
    fn elements_in_order(&mut self, id: InstrId, operand: InstrId, sizes: Sizes) -> Result<Vec<Sizes>> {
        let (own, to) = (self.array_sizes(operand), self.at.array(id)?.clone());
        let result = self.in_order(operand, &own, &to, &sizes)?;
        self.stand_for(id, result, vec![sizes])
    }

    /// Returns an array with the bounds of `to`: the elements of `operand` within the sizes `own`, in order at the
    /// indices within `sizes`.
    pub(super) fn in_order(
        &mut self,
        operand: InstrId,
        own: &Sizes,
        to: &ArrayShape,
        sizes: &Sizes,
    ) -> Result<InstrId> {
        let from = self.at.array(operand)?.clone();
        self.known(from.element_count())?;
        if to.element_count() == 0 {
            return self.at.zeros(to);
        }
        let mut number = self.spread(0, to.dims())?;
        let mut stride = self.known(1)?;
        for d in (0..to.rank()).rev() {
            let index = self.at.iota(ElementType::S32, to.dims(), d)?;
            let step = self.at.broadcast(stride, to.dims(), &[])?;
            let part = self.at.binary(BinaryOp::Multiply, index, step)?;
            number = self.at.binary(BinaryOp::Add, number, part)?;
            let size = match sizes[d] {
                Some(size) => size,
                None => self.known(to.dims()[d])?,
            };
            stride = self.at.binary(BinaryOp::Multiply, stride, size)?;
        }
        let mut place = self.spread(0, to.dims())?;
        let mut bound_stride = 1;
        for d in (0..from.rank()).rev() {
            let size = self.size_or(own[d], from.dims()[d])?;
            let one = self.known(1)?;
            let size = self.at.binary(BinaryOp::Maximum, size, one)?;
            let size = self.at.broadcast(size, to.dims(), &[])?;
            let index = self.at.binary(BinaryOp::Remainder, number, size)?;
            number = self.at.binary(BinaryOp::Divide, number, size)?;
            let step = self.spread(bound_stride, to.dims())?;
            let part = self.at.binary(BinaryOp::Multiply, index, step)?;
            place = self.at.binary(BinaryOp::Add, place, part)?;
            bound_stride *= from.dims()[d];
        }
        self.elements_at(operand, place)
    }

    /// Broadcasts a known number.
    fn spread(&mut self, number: usize, dims: &[usize]) -> Result<InstrId> {
        let number = self.known(number)?;
        self.at.broadcast(number, dims, &[])
    }

    /// Gathers the elements of `x` at row-major indices.
    fn elements_at(&mut self, x: InstrId, places: InstrId) -> Result<InstrId> {
        let flat = self.at.array(x)?.element_count();
        let flat = self.at.reshape(x, &[flat])?;
        let dims = self.at.array(places)?.dims().to_vec();
        let gather = Gather {
            offset_dims: Vec::new(),
            collapsed_slice_dims: vec![0],
            start_index_map: vec![0],
            operand_batching_dims: Vec::new(),
            start_indices_batching_dims: Vec::new(),
            index_vector_dim: dims.len(),
            slice_sizes: vec![1],
            indices_are_sorted: false,
        };
        self.at.add(gather, [flat, places])
    }
}

/// Returns the sizes after a reshape that keeps each dynamic dimension and only adds or removes dimensions of size 1
/// around it.
fn kept_dimensions(from: &ArrayShape, to: &ArrayShape, sizes: &Sizes) -> Option<Sizes> {
    let mut result: Sizes = vec![None; to.rank()];
    for (d, &size) in sizes.iter().enumerate().filter(|(_, size)| size.is_some()) {
        let before: usize = from.dims()[..d].iter().product();
        let same = |&t: &usize| to.dims()[t] == from.dims()[d] && to.dims()[..t].iter().product::<usize>() == before;
        let target = (0..to.rank()).rfind(same)?;
        // A dimension with bound 1 or 0 would be ambiguous.
        if from.dims()[d] <= 1 || before == 0 {
            return None;
        }
        result[target] = size;
    }
    Some(result)
}
