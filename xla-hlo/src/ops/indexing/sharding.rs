//! Sharding rules of gather and scatter.

use super::dim_numbers::DimNumbers;
use super::{Gather, Scatter};
use crate::Result;
use crate::ops::{OpSharding, simple_combiner};
use crate::sdy::{FactorKind, RuleBuilder, RuleContext, ShardingRule};

/// One factor: its dimensions in the operand, the indices and the slices array, if it has any there.
struct IndexFactor {
    operand: Option<usize>,
    indices: Option<usize>,
    slices: Option<usize>,
    size: usize,
    kind: FactorKind,
    is_blocked: bool,
}

impl IndexFactor {
    fn new(dims: [Option<usize>; 3], size: usize, kind: FactorKind) -> IndexFactor {
        let [operand, indices, slices] = dims;
        IndexFactor { operand, indices, slices, size, kind, is_blocked: false }
    }
}

/// Dimensions of the three arrays.
struct Arrays<'a> {
    operand: &'a [usize],
    indices: &'a [usize],
    slices: &'a [usize],
}

/// Differences between gather and scatter.
struct Kinds {
    is_scatter: bool,
    /// Kind of a batch dimension of indices and slices that the operand lacks.
    batch: FactorKind,
}

/// Returns the factors in the order of the slices' dimensions, then of the collapsed dimensions, then the components of
/// an index.
fn factors(dims: &DimNumbers<'_>, arrays: &Arrays<'_>, kinds: &Kinds) -> Vec<IndexFactor> {
    let mut factors = Vec::new();
    let is_inside = |d: &usize| !dims.collapsed_dims.contains(d) && !dims.operand_batching_dims.contains(d);
    let mut window = (0..arrays.operand.len()).filter(is_inside);
    let mut batch = (0..arrays.indices.len()).filter(|&d| d != dims.index_vector_dim);
    for (d, &size) in arrays.slices.iter().enumerate() {
        if dims.offset_dims.contains(&d) {
            let Some(inside) = window.next() else { continue };
            add_window(&mut factors, (inside, arrays.operand[inside]), (d, size), kinds.is_scatter);
        } else if let Some(index) = batch.next() {
            let paired = dims.indices_batching_dims.iter().position(|&i| i == index);
            let operand = paired.map(|at| dims.operand_batching_dims[at]);
            let kind = if operand.is_some() { FactorKind::PassThrough } else { kinds.batch };
            factors.push(IndexFactor::new([operand, Some(index), Some(d)], size, kind));
        }
    }
    for &d in dims.collapsed_dims {
        let kind = match (kinds.is_scatter, arrays.operand[d]) {
            (true, _) => FactorKind::PassThrough,
            (false, 1) => FactorKind::NeedReplication,
            (false, _) => FactorKind::Reduction,
        };
        factors.push(IndexFactor::new([Some(d), None, None], arrays.operand[d], kind));
    }
    if let Some(&components) = arrays.indices.get(dims.index_vector_dim) {
        let dims = [None, Some(dims.index_vector_dim), None];
        factors.push(IndexFactor::new(dims, components, FactorKind::NeedReplication));
    }
    factors
}

/// Adds the factors of a dimension inside slices, given as `(dimension, size)` in the operand and in the slices.
fn add_window(factors: &mut Vec<IndexFactor>, operand: (usize, usize), slices: (usize, usize), is_scatter: bool) {
    let whole = FactorKind::NeedReplication;
    let of_operand = |kind| IndexFactor::new([Some(operand.0), None, None], operand.1, kind);
    let of_slices = || IndexFactor::new([None, None, Some(slices.0)], slices.1, whole);
    let of_both = |kind| IndexFactor::new([Some(operand.0), None, Some(slices.0)], operand.1, kind);
    if operand.1 == slices.1 {
        factors.push(of_both(FactorKind::PassThrough));
    } else if is_scatter {
        factors.extend([of_operand(whole), of_slices()]);
    } else if slices.1 == 1 {
        factors.extend([of_operand(FactorKind::Reduction), of_slices()]);
    } else {
        factors.push(IndexFactor { is_blocked: true, ..of_both(whole) });
    }
}

impl OpSharding for Gather {
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let arrays = Arrays { operand: cx.operand(0), indices: cx.operand(1), slices: cx.result(0) };
        let kinds = Kinds { is_scatter: false, batch: FactorKind::PassThrough };
        let mut builder = RuleBuilder::new(cx);
        for factor in factors(&self.into(), &arrays, &kinds) {
            let operands = [factor.operand.map(|d| (0, d)), factor.indices.map(|d| (1, d))];
            let operands: Vec<_> = operands.into_iter().flatten().collect();
            let results: Vec<_> = factor.slices.map(|d| (0, d)).into_iter().collect();
            builder.add(factor.size, factor.kind, &operands, &results);
            builder.block_last(factor.is_blocked);
        }
        Ok(Some(builder.finish()))
    }
}

impl OpSharding for Scatter {
    /// Operands are N arrays, the indices and N arrays of updates.
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let mut builder = RuleBuilder::new(cx);
        let count = builder.operand_count() / 2;
        let arrays = Arrays { operand: cx.operand(0), indices: cx.operand(count), slices: cx.operand(count + 1) };
        let combiner = cx.module.get(self.computation).and_then(simple_combiner);
        let batch = if combiner.is_some() { FactorKind::Reduction } else { FactorKind::NeedReplication };
        for factor in factors(&self.into(), &arrays, &Kinds { is_scatter: true, batch }) {
            let each = |first: usize, dim: Option<usize>| {
                dim.into_iter().flat_map(move |d| (first..first + count).map(move |i| (i, d)))
            };
            let indices = factor.indices.map(|d| (count, d));
            let operands = each(0, factor.operand).chain(indices).chain(each(count + 1, factor.slices));
            let results: Vec<_> = each(0, factor.operand).collect();
            builder.add(factor.size, factor.kind, &operands.collect::<Vec<_>>(), &results);
            builder.block_last(factor.is_blocked);
        }
        Ok(Some(builder.finish()))
    }
}
