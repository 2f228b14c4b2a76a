//! Sharding rules of parameters, constants, tuples, optimization barriers and domains.

use super::{Constant, Domain, GetTupleElement, OptBarrier, Parameter, Tuple};
use crate::Result;
use crate::ops::OpSharding;
use crate::sdy::{RuleBuilder, RuleContext, ShardingRule};

macro_rules! without_rule {
    ($($(#[$doc:meta])* $op:ident;)*) => {
        $(impl OpSharding for $op {
            $(#[$doc])*
            fn sharding_rule(&self, _: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
                Ok(None)
            }
        })*
    };
}

without_rule! {
    /// Returns no rule: a parameter has no operand.
    Parameter;
    /// Returns no rule: a constant has no operand.
    Constant;
    /// Returns no rule: the elements are the operands themselves.
    Tuple;
    /// Returns no rule: the element is a part of the operand itself.
    GetTupleElement;
    /// Returns no rule: a data-flow edge joins each operand with its result.
    OptBarrier;
}

impl OpSharding for Domain {
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        Ok(Some(RuleBuilder::identity(cx)))
    }
}
