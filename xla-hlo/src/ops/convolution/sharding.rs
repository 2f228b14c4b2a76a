//! Sharding rule of convolutions.

use super::Convolution;
use crate::Result;
use crate::ops::OpSharding;
use crate::sdy::{FactorKind, RuleBuilder, RuleContext, ShardingRule};

impl OpSharding for Convolution {
    /// A spatial dimension of the input has two factors: the number of windows, shared with the result, and the size of
    /// the window, shared with the kernel. The larger one is major.
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let (dims, mut builder) = (&self.dims, RuleBuilder::new(cx));
        let (input, kernel, result) = (cx.operand(0), cx.operand(1), cx.result(0));
        let pass = FactorKind::PassThrough;
        let (batch, feature) = ((0, dims.input_batch), (0, dims.input_feature));
        let kernel_output = (1, dims.kernel_output_feature);
        let output_feature = (0, dims.output_feature);
        if self.batch_group_count > 1 {
            builder.add(self.batch_group_count, pass, &[batch, kernel_output], &[output_feature]);
        }
        builder.add(result[dims.output_batch], pass, &[batch], &[(0, dims.output_batch)]);
        for (i, &d) in dims.input_spatial.iter().enumerate() {
            let (in_kernel, in_result) = (dims.kernel_spatial[i], dims.output_spatial[i]);
            let (windows, size) = (result[in_result], kernel[in_kernel]);
            let mut rest = input[d];
            for is_window_size in if windows >= size { [false, true] } else { [true, false] } {
                let factor = rest.min(if is_window_size { size } else { windows });
                if factor <= 1 {
                    continue;
                }
                rest /= factor;
                if is_window_size {
                    builder.add(factor, FactorKind::Reduction, &[(0, d), (1, in_kernel)], &[]);
                } else {
                    builder.add(factor, FactorKind::Permutation, &[(0, d)], &[(0, in_result)]);
                }
            }
        }
        if self.feature_group_count > 1 {
            builder.add(self.feature_group_count, pass, &[feature, kernel_output], &[output_feature]);
        }
        let kernel_input = (1, dims.kernel_input_feature);
        builder.add(kernel[dims.kernel_input_feature], FactorKind::Reduction, &[feature, kernel_input], &[]);
        let groups = (self.batch_group_count * self.feature_group_count).max(1);
        let features = result[dims.output_feature] / groups;
        if features > 1 {
            builder.add(features, pass, &[kernel_output], &[output_feature]);
        }
        Ok(Some(builder.finish()))
    }
}
