//! Sharding rules of asynchronous operations.

use super::Async;
use crate::Result;
use crate::ops::OpSharding;
use crate::sdy::{RuleContext, ShardingRule};

impl OpSharding for Async {
    /// Returns no rule: operations become asynchronous after partitioning.
    fn sharding_rule(&self, _: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        Ok(None)
    }
}
