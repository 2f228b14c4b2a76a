//! Sharding rule of batch normalisation.

use super::{BatchNorm, BatchNormKind};
use crate::Result;
use crate::ops::OpSharding;
use crate::sdy::{FactorKind, RuleBuilder, RuleContext, ShardingRule};

impl OpSharding for BatchNorm {
    /// Features are independent. Statistics need all other dimensions whole; inference gets its statistics as operands.
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let mut builder = RuleBuilder::new(cx);
        let other = match self.kind {
            BatchNormKind::Inference => FactorKind::PassThrough,
            BatchNormKind::Training | BatchNormKind::Grad => FactorKind::NeedReplication,
        };
        let dims = cx.operand(0);
        let arrays = |tensors: Vec<Vec<usize>>, d: usize| -> Vec<(usize, usize)> {
            let place = |(i, tensor): (usize, Vec<usize>)| match (tensor.len() == dims.len(), d == self.feature_index) {
                (true, _) if dims.len() > 1 || i == 0 => Some((i, d)),
                (_, true) => Some((i, 0)),
                _ => None,
            };
            tensors.into_iter().enumerate().filter_map(place).collect()
        };
        for (d, &size) in dims.iter().enumerate() {
            let operands = arrays(builder.operand_dims().cloned().collect(), d);
            let results = arrays(builder.result_dims().cloned().collect(), d);
            let kind = if d == self.feature_index { FactorKind::PassThrough } else { other };
            builder.add(size, kind, &operands, &results);
        }
        Ok(Some(builder.finish()))
    }
}
