//! Sharding rules of reductions over windows. A factor has the size of the number of windows.

use super::{ReduceWindow, SelectAndScatter};
use crate::Result;
use crate::ops::OpSharding;
use crate::sdy::{FactorKind, RuleBuilder, RuleContext, ShardingRule};

impl OpSharding for ReduceWindow {
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let dims = cx.result(0);
        let windows = self.window.dims_for(dims.len())?;
        let mut builder = RuleBuilder::new(cx);
        builder.pointwise_dims(dims, |d| {
            if windows[d].is_unit() { FactorKind::PassThrough } else { FactorKind::Permutation }
        });
        Ok(Some(builder.finish()))
    }
}

impl OpSharding for SelectAndScatter {
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let (dims, source) = (cx.result(0), cx.operand(1));
        let windows = self.window.dims_for(dims.len())?;
        let mut builder = RuleBuilder::new(cx);
        for (d, &size) in dims.iter().enumerate() {
            if windows[d].is_unit() {
                builder.add(size, FactorKind::PassThrough, &[(0, d), (1, d)], &[(0, d)]);
            } else {
                builder.add(source[d], FactorKind::NeedReplication, &[(1, d)], &[]);
                builder.add(size, FactorKind::Permutation, &[(0, d)], &[(0, d)]);
            }
        }
        Ok(Some(builder.finish()))
    }
}
