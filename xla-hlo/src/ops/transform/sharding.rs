//! Sharding rule of Fourier transforms.

use super::Fft;
use crate::Result;
use crate::ops::OpSharding;
use crate::sdy::{FactorKind, RuleBuilder, RuleContext, ShardingRule};

impl OpSharding for Fft {
    /// Transformed dimensions are needed whole. The last one is blocked if its size changes.
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let (dims, result) = (cx.operand(0), cx.result(0));
        let batch = dims.len() - self.fft_length.len().min(dims.len());
        let mut builder = RuleBuilder::new(cx);
        builder.pointwise_dims(dims, |d| if d < batch { FactorKind::PassThrough } else { FactorKind::NeedReplication });
        builder.block_last(batch < dims.len() && dims.last() != result.last());
        Ok(Some(builder.finish()))
    }
}
