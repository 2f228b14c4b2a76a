//! Sharding rules of reductions and scans.

use super::{Reduce, Scan};
use crate::Result;
use crate::ops::OpSharding;
use crate::sdy::{FactorKind, RuleBuilder, RuleContext, ShardingRule};

impl OpSharding for Reduce {
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let mut builder = RuleBuilder::new(cx);
        let arrays = builder.operand_count() / 2;
        let all = |d: usize| (0..arrays).map(|i| (i, d)).collect::<Vec<_>>();
        let mut result = 0;
        for (d, &size) in cx.operand(0).iter().enumerate() {
            if self.dimensions.contains(&d) {
                builder.add(size, FactorKind::Reduction, &all(d), &[]);
            } else {
                builder.add(size, FactorKind::PassThrough, &all(d), &all(result));
                result += 1;
            }
        }
        Ok(Some(builder.finish()))
    }
}

impl OpSharding for Scan {
    /// The steps need the scanned dimension whole. A step may combine any elements of its slices, so all other
    /// dimensions are needed whole as well.
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let mut builder = RuleBuilder::new(cx);
        builder.replicate_rest();
        Ok(Some(builder.finish()))
    }
}
