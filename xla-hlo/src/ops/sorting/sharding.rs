//! Sharding rules of sort and top-k.

use super::{Sort, TopK};
use crate::Result;
use crate::ops::OpSharding;
use crate::sdy::{FactorKind, RuleBuilder, RuleContext, ShardingRule};

impl OpSharding for Sort {
    /// Axes are carried along the sorted dimension only if another dimension can take them for the sort.
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let dims = cx.operand(0);
        let has_other = dims.iter().enumerate().any(|(d, &size)| d != self.dimension && size != 1);
        let mut builder = RuleBuilder::new(cx);
        for (d, &size) in dims.iter().enumerate() {
            if d == self.dimension {
                builder.add_to_all(size, FactorKind::NeedReplication, d);
                builder.block_last(!has_other);
            } else {
                builder.add_to_all(size, FactorKind::PassThrough, d);
            }
        }
        Ok(Some(builder.finish()))
    }
}

impl OpSharding for TopK {
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let (operand, result) = (cx.operand(0), cx.result(0));
        let mut builder = RuleBuilder::new(cx);
        let Some(last) = operand.len().checked_sub(1) else { return Ok(None) };
        builder.pointwise_dims(&operand[..last], |_| FactorKind::PassThrough);
        if operand[last] == result[last] {
            // All elements are kept, in order: a sort.
            builder.add_to_all(operand[last], FactorKind::NeedReplication, last);
        } else {
            builder.add_to_all(operand[last], FactorKind::NeedReplication, last);
            builder.block_last(true);
        }
        Ok(Some(builder.finish()))
    }
}
