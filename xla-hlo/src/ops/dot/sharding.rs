//! Sharding rules of dots.

use super::{Dot, DotDims, RaggedDot, RaggedMode, ScaledDot};
use crate::Result;
use crate::ops::OpSharding;
use crate::sdy::{FactorKind, RuleBuilder, RuleContext, ShardingRule};

impl OpSharding for Dot {
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let mut builder = RuleBuilder::new(cx);
        let dims = &self.dims;
        let results = add_kept(&mut builder, dims, cx, |_, _| true);
        debug_assert_eq!(results, cx.result(0).len(), "the rule of a dot covers its result");
        for (&l, &r) in dims.lhs_contracting.iter().zip(&dims.rhs_contracting) {
            builder.add(cx.operand(0)[l], FactorKind::Reduction, &[(0, l), (1, r)], &[]);
        }
        Ok(Some(builder.finish()))
    }
}

/// Adds factors for batch dimensions, then free dimensions of the left and of the right operand; each is the next
/// dimension of the result. Dimensions that `is_free` denies, by operand and dimension, get factors of their own that
/// need replication. Returns the number of result dimensions.
fn add_kept(
    builder: &mut RuleBuilder,
    dims: &DotDims,
    cx: &RuleContext<'_>,
    is_free: impl Fn(usize, usize) -> bool,
) -> usize {
    let [lhs, rhs] = [cx.operand(0), cx.operand(1)];
    let mut result = 0;
    for (&l, &r) in dims.lhs_batch.iter().zip(&dims.rhs_batch) {
        builder.add(lhs[l], FactorKind::PassThrough, &[(0, l), (1, r)], &[(0, result)]);
        result += 1;
    }
    let [of_lhs, of_rhs] = dims.operands([lhs.len(), rhs.len()]);
    for (operand, sizes, free) in [(0, lhs, of_lhs.free), (1, rhs, of_rhs.free)] {
        for d in free {
            let kind = if is_free(operand, d) { FactorKind::PassThrough } else { FactorKind::NeedReplication };
            builder.add(sizes[d], kind, &[(operand, d)], &[(0, result)]);
            result += 1;
        }
    }
    result
}

impl OpSharding for RaggedDot {
    /// The ragged dimension and the groups are needed whole, since groups do not end where devices do.
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let (dims, mode) = (&self.dims, self.mode());
        let [lhs, rhs, sizes] = [cx.operand(0), cx.operand(1), cx.operand(2)];
        let ragged = self.ragged_dimension;
        let prefix = self.prefix(lhs.len());
        // Sizes without leading dimensions hold for all places.
        let size_dim = |d: usize| prefix.iter().position(|&p| p == d).filter(|_| sizes.len() == prefix.len() + 1);
        let with_sizes = |d: usize, mut operands: Vec<(usize, usize)>| {
            operands.extend(size_dim(d).map(|s| (2, s)));
            operands
        };
        let (mut builder, whole) = (RuleBuilder::new(cx), FactorKind::NeedReplication);
        let mut result = usize::from(mode == RaggedMode::Contracted);
        let kind = |d: usize, usual: FactorKind| if d == ragged { whole } else { usual };
        for (&l, &r) in dims.lhs_batch.iter().zip(&dims.rhs_batch) {
            let places = with_sizes(l, vec![(0, l), (1, r)]);
            let usual =
                if mode == RaggedMode::Batch { FactorKind::PassThrough } else { kind(l, FactorKind::PassThrough) };
            builder.add(lhs[l], usual, &places, &[(0, result)]);
            result += 1;
        }
        for d in dims.lhs(lhs.len()).free {
            builder.add(lhs[d], kind(d, FactorKind::PassThrough), &with_sizes(d, vec![(0, d)]), &[(0, result)]);
            result += 1;
        }
        for d in dims.rhs(rhs.len()).free {
            if Some(d) != self.group_dimension {
                builder.add(rhs[d], FactorKind::PassThrough, &[(1, d)], &[(0, result)]);
                result += 1;
            }
        }
        for (&l, &r) in dims.lhs_contracting.iter().zip(&dims.rhs_contracting) {
            builder.add(lhs[l], kind(l, FactorKind::Reduction), &with_sizes(l, vec![(0, l), (1, r)]), &[]);
        }
        if let (Some(last), Some(&groups)) = (sizes.len().checked_sub(1), sizes.last()) {
            let of_rhs = self.group_dimension.map(|d| (1, d));
            let operands: Vec<_> = of_rhs.into_iter().chain([(2, last)]).collect();
            let results: &[(usize, usize)] = if mode == RaggedMode::Contracted { &[(0, 0)] } else { &[] };
            builder.add(groups, whole, &operands, results);
        }
        builder.replicate_rest();
        Ok(Some(builder.finish()))
    }
}

impl OpSharding for ScaledDot {
    /// A dimension is split only if its scale has one factor for each element, or one for all.
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let dims = &self.dims;
        let (mut builder, whole) = (RuleBuilder::new(cx), FactorKind::NeedReplication);
        let scale_of = |operand: usize, d: usize| cx.operand(2 + operand).get(d).copied().unwrap_or(1);
        let is_free = |operand: usize, d: usize| [1, cx.operand(operand)[d]].contains(&scale_of(operand, d));
        // Scales are split like their arrays where the sizes are equal.
        let places = |list: &[(usize, usize)]| {
            let scales = list.iter().filter(|&&(o, d)| scale_of(o, d) == cx.operand(o)[d] && scale_of(o, d) > 1);
            list.iter().copied().chain(scales.map(|&(o, d)| (2 + o, d))).collect::<Vec<_>>()
        };
        let kind = |list: &[(usize, usize)], usual: FactorKind| {
            if list.iter().all(|&(o, d)| is_free(o, d)) { usual } else { whole }
        };
        let mut kept: Vec<Vec<(usize, usize)>> = Vec::new();
        kept.extend(dims.lhs_batch.iter().zip(&dims.rhs_batch).map(|(&l, &r)| vec![(0, l), (1, r)]));
        kept.extend(dims.lhs(cx.operand(0).len()).free.iter().map(|&d| vec![(0, d)]));
        kept.extend(dims.rhs(cx.operand(1).len()).free.iter().map(|&d| vec![(1, d)]));
        for (result, list) in kept.iter().enumerate() {
            let size = cx.result(0)[result];
            builder.add(size, kind(list, FactorKind::PassThrough), &places(list), &[(0, result)]);
        }
        for (&l, &r) in dims.lhs_contracting.iter().zip(&dims.rhs_contracting) {
            let list = [(0, l), (1, r)];
            builder.add(cx.operand(0)[l], kind(&list, FactorKind::Reduction), &places(&list), &[]);
        }
        builder.replicate_rest();
        Ok(Some(builder.finish()))
    }
}
