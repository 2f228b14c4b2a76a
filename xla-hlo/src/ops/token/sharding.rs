//! Sharding rules of tokens and transfers.

use super::{AddDependency, AfterAll, Transfer};
use crate::Result;
use crate::ops::OpSharding;
use crate::sdy::{RuleBuilder, RuleContext, ShardingRule};

impl OpSharding for AfterAll {
    /// Returns no rule: tokens have no dimensions.
    fn sharding_rule(&self, _: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        Ok(None)
    }
}

impl OpSharding for AddDependency {
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        Ok(Some(RuleBuilder::identity(cx)))
    }
}

impl OpSharding for Transfer {
    /// Returns no rule: data crosses the border of the program.
    fn sharding_rule(&self, _: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        Ok(None)
    }
}
