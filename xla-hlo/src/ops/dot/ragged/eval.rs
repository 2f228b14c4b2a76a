//! Evaluator of ragged dots, which computes each sum of products separately.

use super::{RaggedDot, RaggedMode};
use crate::ops::dot::Dot;
use crate::ops::dot_arithmetic::{Domain, Wrapping, converted, rounded_sum_type};
use crate::{ArrayShape, ElementKind, IndexIter, Literal, Result, linear_index, multi_index};

pub(super) fn ragged_dot(
    op: &RaggedDot,
    lhs: &Literal,
    rhs: &Literal,
    sizes: &Literal,
    shape: &ArrayShape,
) -> Result<Literal> {
    let [left, right] = [lhs, rhs].map(|operand| operand.array_shape().element_type());
    let result = shape.element_type();
    let ty = rounded_sum_type(Dot::sum_type(left, right, result), result);
    let shape = &shape.clone().with_element_type(ty);
    let sums = Sums { op, lhs, rhs, ends: ends(sizes, lhs.array_shape().dims()[op.ragged_dimension]), sizes, shape };
    let sums = match ty.kind() {
        ElementKind::Pred => sums.all::<bool>(),
        ElementKind::Signed | ElementKind::Unsigned => sums.all::<Wrapping>(),
        ElementKind::Float => sums.all::<f64>(),
        ElementKind::Complex => sums.all::<(f64, f64)>(),
    };
    converted(sums?, result)
}

/// Returns the end of each group, in an array of the shape of `sizes`; no end exceeds `extent`.
fn ends(sizes: &Literal, extent: usize) -> Vec<usize> {
    let groups = sizes.array_shape().dims().last().copied().unwrap_or(0).max(1);
    let mut ends = Vec::with_capacity(sizes.array_shape().element_count());
    for i in 0..sizes.array_shape().element_count() {
        let start = if i % groups == 0 { 0 } else { ends[i - 1] };
        let size = sizes.get(i).as_i128().unwrap_or(0).clamp(0, extent as i128) as usize;
        ends.push((start + size).min(extent));
    }
    ends
}

struct Sums<'a> {
    op: &'a RaggedDot,
    lhs: &'a Literal,
    rhs: &'a Literal,
    sizes: &'a Literal,
    ends: Vec<usize>,
    shape: &'a ArrayShape,
}

impl Sums<'_> {
    fn all<T: Domain>(&self) -> Result<Literal> {
        let ty = self.shape.element_type();
        Literal::from_fn(self.shape, |i| self.one::<T>(&multi_index(self.shape.dims(), i)).to_element(ty))
    }

    /// Computes the sum at one index of the result.
    fn one<T: Domain>(&self, index: &[usize]) -> T {
        let (op, dims) = (self.op, &self.op.dims);
        let (l, r) = (self.lhs.array_shape(), self.rhs.array_shape());
        let (wanted, index) = match op.mode() {
            RaggedMode::Contracted => (Some(index[0]), &index[1..]),
            RaggedMode::Rows | RaggedMode::Batch => (None, index),
        };
        let rows = dims.lhs(l.rank()).free;
        let mut columns = dims.rhs(r.rank()).free;
        columns.retain(|&d| Some(d) != op.group_dimension);
        let (batch, free) = index.split_at(dims.lhs_batch.len());
        let (row, column) = free.split_at(rows.len());
        let (mut at_l, mut at_r) = (vec![0; l.rank()], vec![0; r.rank()]);
        put(&mut at_l, [(&dims.lhs_batch, batch), (&rows, row)]);
        put(&mut at_r, [(&dims.rhs_batch, batch), (&columns, column)]);
        let extents: Vec<usize> = dims.lhs_contracting.iter().map(|&d| l.dims()[d]).collect();
        let mut steps = IndexIter::new(&extents);
        let mut sum = T::ZERO;
        while let Some(step) = steps.next_index() {
            put(&mut at_l, [(&dims.lhs_contracting, step)]);
            put(&mut at_r, [(&dims.rhs_contracting, step)]);
            match (op.mode(), self.group_of(&at_l)) {
                (RaggedMode::Batch, _) => {}
                (RaggedMode::Rows, Some(group)) => put(&mut at_r, [(op.group_dimension.as_slice(), &[group])]),
                (RaggedMode::Contracted, group) if group == wanted => {}
                (RaggedMode::Rows | RaggedMode::Contracted, _) => continue,
            }
            let x = T::from_element(self.lhs.get(linear_index(l.dims(), &at_l)));
            let y = T::from_element(self.rhs.get(linear_index(r.dims(), &at_r)));
            sum = sum.plus_product(x, y);
        }
        sum
    }

    /// Returns the group of an element of the left operand, or `None` if it is in no group.
    fn group_of(&self, index: &[usize]) -> Option<usize> {
        let dims = self.sizes.array_shape().dims();
        let groups = *dims.last()?;
        let outer: Vec<usize> = match dims.len() {
            1 => Vec::new(),
            _ => self.op.prefix(index.len()).iter().map(|&d| index[d]).collect(),
        };
        let first = linear_index(&dims[..dims.len() - 1], &outer) * groups;
        self.ends[first..first + groups].iter().position(|&end| index[self.op.ragged_dimension] < end)
    }
}

/// Sets the coordinates of `index` along `dims` to `values`, for each pair of `roles`.
fn put<const N: usize>(index: &mut [usize], roles: [(&[usize], &[usize]); N]) {
    for (dims, values) in roles {
        dims.iter().zip(values).for_each(|(&d, &v)| index[d] = v);
    }
}
