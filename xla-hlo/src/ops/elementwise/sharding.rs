//! Sharding rules of elementwise operations. Scalar operands of select and clamp belong to no factor.

use super::{Binary, BitcastConvert, Clamp, Compare, Convert, ReducePrecision, Select, Unary};
use crate::Result;
use crate::ops::OpSharding;
use crate::sdy::{FactorKind, RuleBuilder, RuleContext, ShardingRule};

macro_rules! elementwise {
    ($($op:ident)*) => {
        $(impl OpSharding for $op {
            fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
                Ok(Some(RuleBuilder::elementwise(cx)))
            }
        })*
    };
}

elementwise!(Unary Binary Compare Select Clamp Convert ReducePrecision);

impl OpSharding for BitcastConvert {
    /// The last dimension of the array of narrower elements, if the other lacks it, is needed whole.
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let (operand, result) = (cx.operand(0), cx.result(0));
        let common = operand.len().min(result.len());
        if operand.len() == result.len() {
            return Ok(Some(RuleBuilder::elementwise(cx)));
        }
        let mut builder = RuleBuilder::new(cx);
        builder.pointwise_dims(&operand[..common], |_| FactorKind::PassThrough);
        builder.replicate_rest();
        Ok(Some(builder.finish()))
    }
}
