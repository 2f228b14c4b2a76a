//! Sharding rules of control flow and mapped functions.

use super::{Call, Conditional, Fusion, Map, While};
use crate::Result;
use crate::ops::OpSharding;
use crate::sdy::{RuleBuilder, RuleContext, ShardingRule};

impl OpSharding for While {
    /// Returns no rule: a data-flow edge joins each value of the state with the body's and the condition's.
    fn sharding_rule(&self, _: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        Ok(None)
    }
}

impl OpSharding for Conditional {
    /// Returns no rule: a data-flow edge joins each result with the results of the branches.
    fn sharding_rule(&self, _: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        Ok(None)
    }
}

impl OpSharding for Call {
    /// Returns no rule: the callee's parameters and results are the call's operands and results.
    fn sharding_rule(&self, _: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        Ok(None)
    }
}

impl OpSharding for Fusion {
    /// Returns no rule: fusions are formed after partitioning.
    fn sharding_rule(&self, _: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        Ok(None)
    }
}

impl OpSharding for Map {
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        Ok(Some(RuleBuilder::elementwise(cx)))
    }
}
