//! Sharding rules of custom calls: the one that the program states, or a known target's.

use std::collections::HashSet;

use super::CustomCall;
use crate::ops::{OpSharding, RngBitGenerator};
use crate::sdy::{FactorKind, RuleBuilder, RuleContext, ShardingRule, attribute, target};
use crate::{Error, Op, Result, ResultExt};

/// Targets whose results have their operands' dimensions.
const POINTWISE: &[&str] = &[
    "Cholesky",
    "CompactWyHelper",
    "InspectSharding",
    "InvertDiagBlocksLowerTriangular",
    "InvertDiagBlocksUpperTriangular",
    "LayoutConstraint",
    "MoveToDevice",
    "MoveToHost",
    "X64SplitHigh",
    "X64SplitLow",
    "annotate_device_placement",
    "mhlo.erf",
];

/// Frontend attribute with the number of leading dimensions that a call handles independently.
const BATCH_DIMS: &str = "num_batch_dims";

impl OpSharding for CustomCall {
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
        if let Some(text) = stated(cx, attribute::SHARDING_RULE) {
            let rule = ShardingRule::parse(text).context(|| format!("%{}", cx.instruction().name()))?;
            check_fit(&rule, cx)?;
            return Ok(Some(rule));
        }
        let rule = match self.target.as_str() {
            target::CONSTRAINT | target::FUNCTION_RESULT | target::BARRIER => RuleBuilder::elementwise(cx),
            name if POINTWISE.contains(&name) => RuleBuilder::pointwise(cx),
            "X64Combine" => x64_combine(cx),
            "Eigh" => eigh(cx),
            "Qr" | "QrDecompositionBlock" => qr(cx),
            "ProductOfElementaryHouseholderReflectors" => householder(cx),
            "mhlo.topk" | "TopK" => {
                let mut builder = RuleBuilder::new(cx);
                builder.pointwise_with_mismatch(cx.operand(0), cx.result(0), (FactorKind::NeedReplication, true));
                builder.finish()
            }
            "ApproxTopK" | "PartialReduce" => approx_top_k(cx),
            _ => return Ok(batch_partitionable(cx)),
        };
        Ok(Some(rule))
    }
}

fn stated<'a>(cx: &RuleContext<'a>, name: &str) -> Option<&'a str> {
    cx.instruction().annotations()?.frontend_attributes.get(name).map(String::as_str)
}

/// Checks that a rule that the program states fits the call's arrays.
///
/// Propagation terminates only if each dimension has a factor and no array has a factor twice. A dimension may be
/// larger than its single factor: JAX states the smallest size of the dimensions that share a factor.
fn check_fit(rule: &ShardingRule, cx: &RuleContext<'_>) -> Result<()> {
    let name = cx.instruction().name();
    let refused = |reason: String| Error::invalid_argument(format!("the sharding rule {rule} of %{name} {reason}"));
    let builder = RuleBuilder::new(cx);
    let arrays: Vec<&Vec<usize>> = builder.operand_dims().chain(builder.result_dims()).collect();
    let mappings: Vec<_> = rule.operands.iter().chain(&rule.results).collect();
    let has_ranks = mappings.iter().map(|mapping| mapping.len()).eq(arrays.iter().map(|dims| dims.len()));
    if rule.operands.len() != builder.operand_count() || !has_ranks {
        return Err(refused("does not have the ranks of its operands and results".to_string()));
    }
    for (mapping, dims) in mappings.into_iter().zip(arrays) {
        let mut used = HashSet::new();
        if !mapping.iter().flatten().all(|&factor| used.insert(factor)) {
            return Err(refused("uses a factor twice in one array".to_string()));
        }
        for (factors, &size) in mapping.iter().zip(dims) {
            let product = factors.iter().try_fold(1usize, |n, &factor| n.checked_mul(rule.factors[factor].size));
            match factors.len() {
                0 => return Err(refused(format!("has no factor for a dimension of size {size}"))),
                1 => {}
                _ if product == Some(size) => {}
                _ => return Err(refused(format!("has factors whose product is not {size}, the dimension's size"))),
            }
        }
    }
    Ok(())
}

/// Rule of a call that handles its leading dimensions independently, and needs the others whole.
fn batch_partitionable(cx: &RuleContext<'_>) -> Option<ShardingRule> {
    let count: usize = stated(cx, BATCH_DIMS)?.parse().ok()?;
    let mut builder = RuleBuilder::new(cx);
    let dims = cx.operand(0).get(..count)?;
    let has_batch = |tensor: &Vec<usize>| tensor.is_empty() || tensor.get(..count) == Some(dims);
    if !builder.operand_dims().chain(builder.result_dims()).all(has_batch) {
        return None;
    }
    builder.pointwise_dims(dims, |_| FactorKind::PassThrough);
    builder.replicate_rest();
    Some(builder.finish())
}

/// Combination of two halves of 64 bits. The state of a generator is whole on each device.
fn x64_combine(cx: &RuleContext<'_>) -> ShardingRule {
    let is_state = cx.users().any(|user| matches!(user.op(), Op::RngBitGenerator(RngBitGenerator { .. })));
    if !is_state {
        return RuleBuilder::pointwise(cx);
    }
    let mut builder = RuleBuilder::new(cx);
    for (d, &size) in cx.result(0).iter().enumerate() {
        builder.add_to_all(size, FactorKind::NeedReplication, d);
        builder.block_last(true);
    }
    builder.finish()
}

/// Batch dimensions of stacked matrices, and the last two dimensions; `None` for a vector.
fn matrices(dims: &[usize]) -> Option<(&[usize], usize, usize)> {
    let rows = dims.len().checked_sub(2)?;
    Some((&dims[..rows], rows, rows + 1))
}

fn unrelated(cx: &RuleContext<'_>) -> ShardingRule {
    RuleBuilder::new(cx).finish()
}

/// Eigendecomposition, `a -> (vectors, values)`.
fn eigh(cx: &RuleContext<'_>) -> ShardingRule {
    let dims = cx.operand(0);
    let Some((batch, rows, columns)) = matrices(dims) else { return unrelated(cx) };
    let (mut builder, pass) = (RuleBuilder::new(cx), FactorKind::PassThrough);
    builder.pointwise_dims(batch, |_| pass);
    builder.add(dims[rows], pass, &[(0, rows)], &[(0, rows)]);
    builder.add(dims[columns], pass, &[(0, columns)], &[(0, columns), (1, rows)]);
    builder.finish()
}

/// QR decomposition, `a -> (qr, taus)`.
fn qr(cx: &RuleContext<'_>) -> ShardingRule {
    reflectors(cx, cx.result(1), (&[], &[1]))
}

/// Product of Householder reflectors, `(a, taus) -> q`.
fn householder(cx: &RuleContext<'_>) -> ShardingRule {
    reflectors(cx, cx.operand(1), (&[1], &[]))
}

/// Stacked matrices and the factors `taus` of their reflectors, which are an operand or a result.
fn reflectors(cx: &RuleContext<'_>, taus: &[usize], places: (&[usize], &[usize])) -> ShardingRule {
    let dims = cx.operand(0);
    let Some((batch, rows, columns)) = matrices(dims) else { return unrelated(cx) };
    let (mut builder, whole) = (RuleBuilder::new(cx), FactorKind::NeedReplication);
    builder.pointwise_dims(batch, |_| FactorKind::PassThrough);
    builder.add(dims[rows], whole, &[(0, rows)], &[(0, rows)]);
    builder.add(dims[columns], whole, &[(0, columns)], &[(0, columns)]);
    if let Some(&size) = taus.get(rows) {
        let at = |arrays: &[usize]| arrays.iter().map(|&array| (array, rows)).collect::<Vec<_>>();
        builder.add(size, whole, &at(places.0), &at(places.1));
    }
    builder.finish()
}

/// Approximate top-k, `(a, iota, initial value, initial index) -> (values, indices)`.
fn approx_top_k(cx: &RuleContext<'_>) -> ShardingRule {
    let mut builder = RuleBuilder::new(cx);
    for (d, (&size, &kept)) in cx.operand(0).iter().zip(cx.result(0)).enumerate() {
        if size == kept {
            builder.add_to_all(size, FactorKind::PassThrough, d);
        } else {
            builder.add_to_operands(size, FactorKind::PassThrough, d);
            builder.add_to_results(kept, FactorKind::NeedReplication, d);
            builder.block_last(true);
        }
    }
    builder.finish()
}
