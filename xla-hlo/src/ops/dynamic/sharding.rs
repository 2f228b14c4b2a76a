//! Sharding rules of operations on dynamic sizes.

use super::Dynamic;
use crate::Result;
use crate::ops::OpSharding;
use crate::sdy::{FactorKind, RuleBuilder, RuleContext, ShardingRule};

impl OpSharding for Dynamic {
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let Dynamic::SetDimensionSize { dimension } = *self else {
            // Sizes are values of the whole array; the dimensions of a dynamic reshape have no fixed factors.
            return Ok(None);
        };
        let mut builder = RuleBuilder::new(cx);
        builder.pointwise_dims(cx.operand(0), |d| {
            if d == dimension { FactorKind::NeedReplication } else { FactorKind::PassThrough }
        });
        Ok(Some(builder.finish()))
    }
}
