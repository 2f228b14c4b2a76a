//! Sharding rules of operations that rearrange elements.

use super::{
    Bitcast, Broadcast, Concatenate, Copy, DynamicSlice, DynamicUpdateSlice, Iota, Pad, Reshape, Reverse, Slice,
    Transpose,
};
use crate::ops::OpSharding;
use crate::sdy::{FactorKind, RuleBuilder, RuleContext, ShardingRule};
use crate::{InstrId, Op, Result};

impl OpSharding for Broadcast {
    /// New dimensions, and dimensions that are expanded from size 1, are factors of the result alone.
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let (mut builder, pass) = (RuleBuilder::new(cx), FactorKind::PassThrough);
        for (d, &size) in cx.result(0).iter().enumerate() {
            let from = self.dimensions.iter().position(|&to| to == d);
            match from {
                Some(from) if cx.operand(0)[from] == size => builder.add(size, pass, &[(0, from)], &[(0, d)]),
                Some(from) => {
                    builder.add(1, pass, &[(0, from)], &[]);
                    builder.add(size, pass, &[], &[(0, d)]);
                }
                None => builder.add(size, pass, &[], &[(0, d)]),
            }
        }
        Ok(Some(builder.finish()))
    }
}

impl OpSharding for Transpose {
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let mut builder = RuleBuilder::new(cx);
        for (d, &from) in self.permutation.iter().enumerate() {
            builder.add(cx.operand(0)[from], FactorKind::PassThrough, &[(0, from)], &[(0, d)]);
        }
        Ok(Some(builder.finish()))
    }
}

impl OpSharding for Reshape {
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        Ok(super::reshape_factors::rule(cx))
    }
}

impl OpSharding for Slice {
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        Ok(Some(resized(cx, (FactorKind::Permutation, false))))
    }
}

impl OpSharding for Pad {
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        Ok(Some(resized(cx, (FactorKind::Permutation, false))))
    }
}

impl OpSharding for DynamicSlice {
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        Ok(Some(resized(cx, (FactorKind::NeedReplication, true))))
    }
}

/// Rule of an operation that changes sizes of dimensions, with the kind of the dimensions that change.
fn resized(cx: &RuleContext<'_>, changed: (FactorKind, bool)) -> ShardingRule {
    let mut builder = RuleBuilder::new(cx);
    builder.pointwise_with_mismatch(cx.operand(0), cx.result(0), changed);
    builder.finish()
}

impl OpSharding for DynamicUpdateSlice {
    /// If the update is smaller than a dimension, each device writes its part of a whole update.
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let (mut builder, pass) = (RuleBuilder::new(cx), FactorKind::PassThrough);
        let indices = 2..cx.instruction().operands().len();
        let are_constant = indices.into_iter().all(|i| matches!(cx.producer(i).op(), Op::Constant(_)));
        let of_update = if are_constant { pass } else { FactorKind::NeedReplication };
        for (d, (&size, &update)) in cx.operand(0).iter().zip(cx.operand(1)).enumerate() {
            if size == update {
                builder.add(size, pass, &[(0, d), (1, d)], &[(0, d)]);
            } else {
                builder.add(size, pass, &[(0, d)], &[(0, d)]);
                builder.add(update, of_update, &[(1, d)], &[]);
            }
        }
        Ok(Some(builder.finish()))
    }
}

impl OpSharding for Concatenate {
    /// The concatenated dimension needs an exchange between neighbours if all operands are slices, or if all are one
    /// value or slices of it. Otherwise it is needed whole.
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let count = cx.instruction().operands().len();
        let is_slice = |i: usize| matches!(cx.producer(i).op(), Op::Slice(_));
        let source =
            |i: usize| -> InstrId { if is_slice(i) { cx.producer(i).operand(0) } else { cx.instruction().operand(i) } };
        let slices = (0..count).filter(|&i| is_slice(i)).count();
        let is_rotation = slices == count || slices > 0 && (1..count).all(|i| source(i) == source(0));
        let kind = if is_rotation { FactorKind::Permutation } else { FactorKind::NeedReplication };
        let mut builder = RuleBuilder::new(cx);
        builder.pointwise_dims(cx.result(0), |d| if d == self.dimension { kind } else { FactorKind::PassThrough });
        Ok(Some(builder.finish()))
    }
}

impl OpSharding for Reverse {
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let mut builder = RuleBuilder::new(cx);
        builder.pointwise_dims(cx.result(0), |d| {
            if self.dimensions.contains(&d) { FactorKind::Permutation } else { FactorKind::PassThrough }
        });
        Ok(Some(builder.finish()))
    }
}

impl OpSharding for Iota {
    /// Returns no rule: there is nothing to relate the result to.
    fn sharding_rule(&self, _: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        Ok(None)
    }
}

impl OpSharding for Copy {
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        Ok(Some(ShardingRule { is_elementwise: true, ..RuleBuilder::identity(cx) }))
    }
}

impl OpSharding for Bitcast {
    /// Returns a rule only if dimensions stay equal: otherwise the relation depends on layouts, which are assigned
    /// after partitioning.
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        Ok((cx.operand(0) == cx.result(0)).then(|| RuleBuilder::elementwise(cx)))
    }
}
