//! Attention gradients without scores in memory: each sum over a function of scores becomes one kernel.
//!
//! ```text
//! s  = dot(q, k)                        m  = one kernel of q, k
//! m  = max(s); e = exp(s - m)           z  = one kernel of q, k, m
//! z  = sum(e); p = e / z           ─>   y  = one kernel of q, k, m, z, v
//! y  = dot(p, v)                        dv = one kernel of q, k, m, z, dy
//! dv = dot(p, dy); dp = dot(dy, v)      ...
//! ```
//!
//! Arrays of the size of the scores are recomputed in every kernel that needs them, from operands and row statistics.
//! This costs additional products, which tensor cores compute faster than memory transfers such arrays. The operations
//! are those of the program, with the same roundings. Results differ by the order of sums, and by exponentials, which
//! are accurate to 2^-20.

use std::collections::HashMap;

use xla_hlo::ops::{BinaryOp, DotAlgorithm};
use xla_hlo::{ArrayShape, CompId, Computation, ElementType, InstrId, Module, Op, Result};

use super::fuse_attention::{group, takes};
use super::plan::FusionPlan;
use super::{build, programs};
use crate::analysis::elements::is_elementwise;
use crate::analysis::score_sums::ScoreSum;
use crate::framework::explain::{FusionDecision, FusionReason};
use crate::framework::profile::AttentionProfile;
use crate::rewrite::graph;
use crate::{Pass, PassContext};

/// Fuses everything that is computed from an attention's scores, and from the gradients of the scores, into one fusion
/// per sum over them, if the target's [`AttentionProfile`] supports it. The fusions are of kind `kOutput`. Their roots
/// are the original dots and reductions, and they contain the dots that compute scores. No other instruction may read
/// arrays of the size of the scores. Runs before the other fusion passes, after
/// [`FuseAttention`](super::FuseAttention).
pub struct FuseScores;

impl Pass for FuseScores {
    fn name(&self) -> &'static str {
        "fuse-scores"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        if cx.profile().fusion.attention.sum_head_sizes.is_empty() {
            return Ok(());
        }
        for program in programs(module) {
            for scores in module[program].post_order() {
                let graph = &module[program];
                let is_dot = graph.get(scores).is_some_and(|i| matches!(i.op(), Op::Dot(_)));
                let Some(sums) = is_dot.then(|| worthwhile(module, program, scores, cx)).flatten() else { continue };
                for sum in &sums {
                    cx.explain(|| {
                        let reason = FusionReason::Attention;
                        FusionDecision::new(self.name(), module, program, scores, sum.root, reason)
                    });
                }
                if cx.allow_rewrite(self.name()) {
                    build::build(module, program, &plan(&module[program], sums))?;
                }
            }
        }
        Ok(())
    }
}

/// Returns all sums over functions of an attention's scores and of their gradients, if the target has kernels for them.
fn worthwhile(module: &Module, program: CompId, scores: InstrId, cx: &PassContext<'_>) -> Option<Vec<ScoreSum>> {
    let graph = &module[program];
    let sums = sums(module, graph, scores)?;
    let of_rows = sums.iter().any(|sum| sum.combiner == BinaryOp::Maximum);
    let of_gradients = sums.iter().any(|sum| sum.scores.len() > 1);
    (of_rows && of_gradients && sums.iter().all(|sum| fits(graph, sum, cx))).then_some(sums)
}

/// Returns all sums over functions of these scores, and over functions of other scores that these functions read.
/// `None` if another instruction reads an array of their size.
fn sums(module: &Module, graph: &Computation, scores: InstrId) -> Option<Vec<ScoreSum>> {
    let count = |id: InstrId| graph[id].shape().as_array().map(ArrayShape::element_count);
    let mut sums: Vec<ScoreSum> = Vec::new();
    let (mut wide, mut next) = (vec![scores], 0);
    while let Some(&id) = wide.get(next) {
        next += 1;
        if id == graph.root() {
            return None;
        }
        for &user in graph[id].users() {
            if wide.contains(&user) || sums.iter().any(|sum| sum.root == user) {
                continue;
            }
            match graph[user].op() {
                Op::Dot(_) | Op::Reduce(_) => {
                    let sum = ScoreSum::find(module, graph, user)?;
                    let others = sum.scores.iter().map(|scores| scores.dot);
                    wide.extend(others.filter(|dot| !wide.contains(dot)).collect::<Vec<_>>());
                    sums.push(sum);
                }
                Op::Broadcast(_) => return None,
                _ if is_elementwise(graph, user) && count(user) == count(id) => wide.push(user),
                _ => return None,
            }
        }
    }
    let apart = |sum: &ScoreSum| {
        let function = graph[sum.root].operand(sum.operand);
        graph[sum.root].operands().iter().all(|o| *o == function || !wide.contains(o)) && wide.contains(&function)
    };
    sums.iter().all(apart).then_some(sums)
}

/// Whether the target computes a sum in one kernel, and faster.
fn fits(graph: &Computation, sum: &ScoreSum, cx: &PassContext<'_>) -> bool {
    let profile = &cx.profile().fusion.attention;
    let function = graph[sum.root].operand(sum.operand);
    let (Some(array), Some(ty)) = (graph[function].shape().as_array(), operand_type(graph, sum)) else { return false };
    let extents = array.dims();
    let (columns, rows) = (extents[sum.along], sum.rows.iter().map(|&d| extents[d]).product::<usize>());
    let blocks = array.element_count() / (rows * columns).max(1) * rows.div_ceil(profile.tile);
    let busy = 2 * blocks >= cx.profile().threads || columns <= profile.few_keys;
    let least = profile.least_queries.min(profile.least_keys);
    let free = sum.members.iter().all(|&id| graph::is_free(&graph[id]));
    let of_scores = sum.scores.iter().all(|scores| {
        let operands = graph[scores.dot].operands();
        takes(graph, scores.dot, profile, false)
            && graph[operands[0]].shape().element_type() == Some(ty)
            && operands.iter().all(|&operand| {
                head(graph, scores.dot, operand, false).is_some_and(|head| profile.takes_head_of_sum((head, ty)))
            })
    });
    let root = match graph[sum.root].op() {
        Op::Dot(_) => takes_values(graph, sum, ty, profile),
        // A maximum needs no rounding.
        _ if sum.combiner == BinaryOp::Maximum => true,
        _ => profile.excess_precision || graph[sum.root].shape().element_type() == Some(ElementType::F32),
    };
    let known = matches!(array.element_type(), ElementType::F32 | ElementType::BF16 | ElementType::F16);
    free && known && of_scores && root && busy && rows >= least && columns >= least
}

/// Returns the operand type of all dots.
fn operand_type(graph: &Computation, sum: &ScoreSum) -> Option<ElementType> {
    graph[graph[sum.scores.first()?.dot].operand(0)].shape().element_type()
}

/// Returns the extent of an operand's contracted dimension (or of its free one) if it is contiguous in memory.
fn head(graph: &Computation, dot: InstrId, operand: InstrId, free: bool) -> Option<usize> {
    let Op::Dot(op) = graph[dot].op() else { return None };
    let array = graph[operand].shape().as_array()?;
    let last = array.rank().checked_sub(1)?;
    let side = if graph[dot].operand(0) == operand { op.dims.lhs(array.rank()) } else { op.dims.rhs(array.rank()) };
    let dims = if free { &side.free[..] } else { side.contracting };
    (dims == [last]).then(|| array.dims()[last])
}

/// Whether the target can round the function of scores to the type of the values and multiply the two.
fn takes_values(graph: &Computation, sum: &ScoreSum, ty: ElementType, profile: &AttentionProfile) -> bool {
    let Op::Dot(op) = graph[sum.root].op() else { return false };
    let type_of = |id: InstrId| graph[id].shape().element_type();
    let values = graph[sum.root].operand(1 - sum.operand);
    let rounds = match ty {
        ElementType::F32 => op.algorithm == Some(DotAlgorithm::Tf32Tf32F32),
        ElementType::BF16 => op.algorithm == Some(DotAlgorithm::Bf16Bf16F32),
        ElementType::F16 => op.algorithm == Some(DotAlgorithm::F16F16F32),
        _ => false,
    };
    let same = type_of(graph[sum.root].operand(sum.operand)) == Some(ty);
    let known = rounds || same && ty != ElementType::F32 && op.algorithm.is_none();
    let result = type_of(sum.root).is_some_and(|result| result == ty || result == ElementType::F32);
    let size = head(graph, sum.root, values, true);
    known && result && type_of(values) == Some(ty) && size.is_some_and(|size| profile.takes_head_of_sum((size, ty)))
}

/// Returns a plan with one group per sum, consumers first.
fn plan(graph: &Computation, mut sums: Vec<ScoreSum>) -> FusionPlan {
    let places: HashMap<InstrId, usize> = graph.post_order().into_iter().enumerate().map(|(i, id)| (id, i)).collect();
    sums.sort_by_key(|sum| std::cmp::Reverse(places[&sum.root]));
    let groups = sums.into_iter().map(|sum| group(graph, sum.root, sum.members)).collect();
    FusionPlan { groups, decisions: Vec::new() }
}
