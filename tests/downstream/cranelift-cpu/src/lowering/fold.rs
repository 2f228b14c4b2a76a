//! Reductions within an element: loops with accumulators carried in registers.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use xla::hlo::ops::{BinaryOp, Dot, Reduce, ReduceWindow, WindowDim, simple_combiner};
use xla::hlo::{CompId, ElementKind, ElementType, InstrId, Scalar};

use super::element::Expression;
use super::{arithmetic, convert};
use crate::builder::{KernelBuilder, Loop};

impl Expression<'_> {
    pub fn reduce(
        &mut self,
        k: &mut KernelBuilder<'_>,
        op: &Reduce,
        operands: &[InstrId],
        at: &[Value],
    ) -> Option<Vec<Value>> {
        let dims = self.array(operands[0])?.1;
        let (reduced, kept): (Vec<usize>, Vec<usize>) = (0..dims.len()).partition(|d| op.dimensions.contains(d));
        let extents: Vec<usize> = reduced.iter().map(|&d| dims[d]).collect();
        self.fold(k, op.computation, operands, &extents, |k, steps| {
            let mut inside = vec![k.int(0); dims.len()];
            reduced.iter().zip(steps).chain(kept.iter().zip(at)).for_each(|(&d, &i)| inside[d] = i);
            (None, inside)
        })
    }

    pub fn reduce_window(
        &mut self,
        k: &mut KernelBuilder<'_>,
        op: &ReduceWindow,
        operands: &[InstrId],
        at: &[Value],
    ) -> Option<Vec<Value>> {
        let dims = self.array(operands[0])?.1;
        let windows = op.window.dims_for(dims.len()).ok()?;
        let sizes: Vec<usize> = windows.iter().map(|window| window.size).collect();
        let dilations: Vec<usize> = windows.iter().map(|window| window.base_dilation).collect();
        self.fold(k, op.computation, operands, &sizes, |k, steps| {
            let parts = windows.iter().zip(at).zip(steps);
            let places: Vec<Value> = parts.map(|((window, &i), &step)| window_place(k, window, i, step)).collect();
            let (is_inside, inside) = inside(k, &places, &dilations, dims);
            (Some(is_inside), inside)
        })
    }

    /// Emits loops over `extents` that combine arrays (the first half of the operands) with initial values (the other
    /// half). `place` returns the index of the arrays' element, and the condition under which it is combined.
    fn fold(
        &mut self,
        k: &mut KernelBuilder<'_>,
        combiner: CompId,
        operands: &[InstrId],
        extents: &[usize],
        place: impl FnOnce(&mut KernelBuilder<'_>, &[Value]) -> (Option<Value>, Vec<Value>),
    ) -> Option<Vec<Value>> {
        let (arrays, inits) = operands.split_at(operands.len() / 2);
        let combiner = &self.module[combiner];
        let types = self.accumulator_types(combiner)?;
        let mut carried = Vec::with_capacity(inits.len());
        for (&init, &ty) in inits.iter().zip(&types) {
            let value = self.element(k, init, &[])?;
            carried.push(convert::convert(k, value, self.array(init)?.0, ty)?);
        }
        // A sum of f32 is computed in f64 and rounded at the end, as accurate as the evaluator's pairwise sum.
        let is_sum = types[..] == [ElementType::F32] && simple_combiner(combiner) == Some(BinaryOp::Add);
        let (narrow, wide) = (ElementType::F32, ElementType::F64);
        if is_sum {
            carried[0] = convert::convert(k, carried[0], narrow, wide)?;
        }
        let mut loops: Vec<Loop> = Vec::new();
        for &extent in extents {
            loops.push(k.begin_loop_of(extent, &carried));
            carried.clone_from(&loops.last()?.carried);
        }
        let steps: Vec<Value> = loops.iter().map(|this| this.index).collect();
        let (condition, at) = place(k, &steps);
        let branch = condition.map(|condition| k.begin_branch(condition));
        self.enter();
        let mut elements = Vec::with_capacity(arrays.len());
        for &array in arrays {
            elements.push((self.element(k, array, &at)?, self.array(array)?.0));
        }
        let mut next = if is_sum {
            let element = convert::convert(k, elements[0].0, elements[0].1, wide)?;
            vec![k.f.ins().fadd(carried[0], element)]
        } else {
            self.combined(k, combiner, &carried, &elements)?
        };
        self.leave();
        if let Some(branch) = branch {
            k.otherwise(&branch, &next);
            next = k.end_branch(&branch, &carried);
        }
        for this in loops.into_iter().rev() {
            next = k.end_loop(this, &next);
        }
        if is_sum {
            next[0] = convert::convert(k, next[0], wide, narrow)?;
        }
        Some(next)
    }

    /// Computes a dot of types that the library does not support: integers, booleans, mixed types.
    pub fn dot(&mut self, k: &mut KernelBuilder<'_>, id: InstrId, op: &Dot, at: &[Value]) -> Option<Value> {
        let &[lhs, rhs] = self.graph[id].operands() else { return None };
        let ty = self.array(id)?.0;
        let sum = match ty.kind() {
            ElementKind::Pred | ElementKind::Signed | ElementKind::Unsigned => ty,
            ElementKind::Float => ElementType::F64,
            ElementKind::Complex => return None,
        };
        let ((left_type, left_dims), (right_type, right_dims)) = (self.array(lhs)?, self.array(rhs)?);
        let [left, right] = op.dims.operands([left_dims.len(), right_dims.len()]);
        let (mut x, mut y) = (vec![k.int(0); left_dims.len()], vec![k.int(0); right_dims.len()]);
        let (batch, free) = at.split_at_checked(left.batch.len())?;
        let (rows, columns) = free.split_at_checked(left.free.len())?;
        left.batch.iter().zip(batch).chain(left.free.iter().zip(rows)).for_each(|(&d, &i)| x[d] = i);
        right.batch.iter().zip(batch).chain(right.free.iter().zip(columns)).for_each(|(&d, &i)| y[d] = i);
        let mut loops: Vec<Loop> = Vec::new();
        let mut total = k.constant(sum, Scalar::zero(sum));
        for (&l, &r) in left.contracting.iter().zip(right.contracting) {
            let this = k.begin_loop_of(left_dims[l], &[total]);
            (total, x[l], y[r]) = (this.carried[0], this.index, this.index);
            loops.push(this);
        }
        self.enter();
        let (a, b) = (self.element(k, lhs, &x)?, self.element(k, rhs, &y)?);
        let (a, b) = (convert::convert(k, a, left_type, sum)?, convert::convert(k, b, right_type, sum)?);
        self.leave();
        let product = arithmetic::binary(k, BinaryOp::Multiply, sum, a, b)?;
        let mut next = arithmetic::binary(k, BinaryOp::Add, sum, total, product)?;
        for this in loops.into_iter().rev() {
            next = k.end_loop(this, &[next])[0];
        }
        convert::convert(k, next, sum, ty)
    }
}

/// Returns the array index of element `step` of the window at position `i`.
fn window_place(k: &mut KernelBuilder<'_>, window: &WindowDim, i: Value, step: Value) -> Value {
    let dilation = window.window_dilation as i64;
    let last = if window.reversal { (window.size as i64 - 1) * dilation } else { 0 };
    let begin = k.times(i, window.stride as i64);
    let offset = k.times(step, if window.reversal { -dilation } else { dilation });
    let place = k.f.ins().iadd(begin, offset);
    k.plus(place, last - window.pad_low)
}

/// Returns whether positions in an array with element distances `steps` have an element, and its index.
pub(super) fn inside(
    k: &mut KernelBuilder<'_>,
    places: &[Value],
    steps: &[usize],
    dims: &[usize],
) -> (Value, Vec<Value>) {
    let mut all = k.f.ins().iconst(types::I8, 1);
    let mut indices = places.to_vec();
    for ((index, &step), &extent) in indices.iter_mut().zip(steps).zip(dims) {
        // Negative positions are large unsigned numbers.
        let bound = k.int(extent.checked_sub(1).map_or(0, |last| last as i64 * step as i64 + 1));
        let is_within = k.f.ins().icmp(IntCC::UnsignedLessThan, *index, bound);
        all = k.f.ins().band(all, is_within);
        if step > 1 {
            let rest = k.f.ins().urem_imm_u(*index, step as i64);
            let is_element = k.f.ins().icmp_imm_s(IntCC::Equal, rest, 0);
            all = k.f.ins().band(all, is_element);
            *index = k.f.ins().udiv_imm_u(*index, step as i64);
        }
    }
    (all, indices)
}
