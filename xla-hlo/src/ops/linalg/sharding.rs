//! Sharding rules of matrix decompositions and triangular systems.

use super::{Cholesky, TransposeKind, TriangularSolve};
use crate::Result;
use crate::ops::OpSharding;
use crate::sdy::{FactorKind, RuleBuilder, RuleContext, ShardingRule};

impl OpSharding for Cholesky {
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let dims = cx.operand(0);
        let mut builder = RuleBuilder::new(cx);
        builder.pointwise_dims(dims, |d| {
            if d + 2 < dims.len() { FactorKind::PassThrough } else { FactorKind::NeedReplication }
        });
        Ok(Some(builder.finish()))
    }
}

impl OpSharding for TriangularSolve {
    /// The matrices are needed whole, but their dimensions are related as in the product of `op(a)` and the result.
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        let (a, b) = (cx.operand(0), cx.operand(1));
        let (rows, columns) = (a.len() - 2, a.len() - 1);
        let whole = FactorKind::NeedReplication;
        let mut builder = RuleBuilder::new(cx);
        builder.pointwise_dims(&a[..rows], |_| FactorKind::PassThrough);
        let is_transposed = self.transpose_a != TransposeKind::NoTranspose;
        // Dimensions of `a` that are shared with `b` and with the result.
        let (with_b, with_result) = if self.left_side == is_transposed { (columns, rows) } else { (rows, columns) };
        let shared = if self.left_side { rows } else { columns };
        let free = if self.left_side { columns } else { rows };
        let of_b = |builder: &mut RuleBuilder| builder.add(a[with_b], whole, &[(0, with_b), (1, shared)], &[]);
        if self.left_side {
            of_b(&mut builder);
        }
        builder.add(b[free], whole, &[(1, free)], &[(0, free)]);
        if !self.left_side {
            of_b(&mut builder);
        }
        builder.add(a[with_result], whole, &[(0, with_result)], &[(0, shared)]);
        Ok(Some(builder.finish()))
    }
}
