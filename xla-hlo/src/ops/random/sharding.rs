//! Sharding rules of random operations.

use super::{Rng, RngBitGenerator, RngGetAndUpdateState, StochasticConvert};
use crate::Result;
use crate::ops::OpSharding;
use crate::sdy::{FactorKind, RuleBuilder, RuleContext, ShardingRule};

impl OpSharding for RngBitGenerator {
    /// Each device has the whole state. The bits have factors of their own, so they may be split.
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let mut builder = RuleBuilder::new(cx);
        for (d, &size) in cx.operand(0).iter().enumerate() {
            builder.add(size, FactorKind::NeedReplication, &[(0, d)], &[(0, d)]);
            builder.block_last(true);
        }
        for (d, &size) in cx.result(1).iter().enumerate() {
            builder.add(size, FactorKind::PassThrough, &[], &[(1, d)]);
        }
        Ok(Some(builder.finish()))
    }
}

impl OpSharding for Rng {
    /// Returns no rule: the operands are scalars.
    fn sharding_rule(&self, _: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        Ok(None)
    }
}

impl OpSharding for RngGetAndUpdateState {
    /// Returns no rule: there are no operands.
    fn sharding_rule(&self, _: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        Ok(None)
    }
}

impl OpSharding for StochasticConvert {
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        Ok(Some(RuleBuilder::elementwise(cx)))
    }
}
