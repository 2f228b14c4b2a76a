//! Attention fusion: two dots with a softmax between them in one kernel, without scores in memory (flash attention).
//!
//! ```text
//! s = dot(q, k)                        for each tile of queries, for each tile of keys:
//! p = softmax(mask(s * scale))   ─>      scores, their exponentials, products with the values
//! y = dot(p, v)                        y = products / sums of exponentials
//! ```
//!
//! The results differ from those of the separate operations by the order of sums and by the division, which follows the
//! second dot: the exponential is rounded to the values' type instead of the probability. The exponentials of a 16-bit
//! softmax are rounded once. The profile states whether this is permitted for 16-bit floats.

use xla_hlo::ops::DotAlgorithm;
use xla_hlo::{ArrayShape, Computation, ElementType, InstrId, Module, Op, Result};

use super::group::{FusionGroup, ReadDemand};
use super::plan::FusionPlan;
use super::{build, programs};
use crate::analysis::attention::Attention;
use crate::framework::explain::{FusionDecision, FusionReason};
use crate::framework::profile::AttentionProfile;
use crate::rewrite::graph;
use crate::{Pass, PassContext};

/// Fuses an attention if the target's [`AttentionProfile`] supports it and no other instruction reads its scores or
/// probabilities. Runs before the other fusion passes. The result is a fusion of kind `kOutput` whose root is the
/// second dot and which contains the first one; queries, keys and values are parameters.
pub struct FuseAttention;

impl Pass for FuseAttention {
    fn name(&self) -> &'static str {
        "fuse-attention"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let profile = &cx.profile().fusion.attention;
        if profile.head_sizes.is_empty() {
            return Ok(());
        }
        for program in programs(module) {
            for result in module[program].post_order() {
                let Some(attention) = module[program].get(result).and_then(|_| worthwhile(module, program, result, cx))
                else {
                    continue;
                };
                cx.explain(|| {
                    let reason = FusionReason::Attention;
                    FusionDecision::new(self.name(), module, program, attention.scores, result, reason)
                });
                if cx.allow_rewrite(self.name()) {
                    build::build(module, program, &plan(&module[program], attention))?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the attention that ends with a dot, if the target computes it faster in one kernel.
fn worthwhile(module: &Module, program: xla_hlo::CompId, result: InstrId, cx: &PassContext<'_>) -> Option<Attention> {
    let graph = &module[program];
    let profile = &cx.profile().fusion.attention;
    let found = Attention::find(module, graph, result)?;
    let free = found.members.iter().all(|&id| graph::is_free(&graph[id]));
    let sizes = Sizes::of(graph, &found)?;
    let few = sizes.queries <= profile.few_queries;
    // Both dots of a kernel have operands of one type.
    let alike = sizes.heads[0].1 == sizes.heads[1].1;
    let takes = alike
        && (sizes.heads_are_rows || profile.any_head_order)
        && [found.scores, result].iter().all(|&dot| takes(graph, dot, profile, few))
        && (profile.excess_precision || !found.narrow && sizes.heads[1].1 == ElementType::F32)
        && sizes.heads.iter().all(|&size| profile.takes_head(size))
        && (few || sizes.queries >= profile.least_queries)
        && sizes.keys >= profile.least_keys;
    // A thread block or work item iterates over all keys for a tile of queries: a few of them take longer than two
    // dots on all threads.
    let blocks = sizes.batches * sizes.queries.div_ceil(profile.tile);
    let busy = few || 2 * blocks >= cx.profile().threads || sizes.keys <= profile.few_keys;
    (free && takes && busy).then_some(found)
}

/// Whether the target's kernels, for few queries or for many, support the operands of this dot.
pub(super) fn takes(graph: &Computation, dot: InstrId, profile: &AttentionProfile, few: bool) -> bool {
    let Op::Dot(op) = graph[dot].op() else { return false };
    let ty = |id: InstrId| graph[id].shape().element_type();
    let types = [0, 1].map(|number| ty(graph[dot].operand(number)));
    let Some(operand) = types[0].filter(|_| types[0] == types[1]) else { return false };
    let sums = ty(dot).is_some_and(|ty| ty == operand || ty == ElementType::F32);
    let is_known = match operand {
        ElementType::F32 if few || profile.full_precision => {
            matches!(op.algorithm, None | Some(DotAlgorithm::F32F32F32 | DotAlgorithm::Tf32Tf32F32))
        }
        ElementType::F32 => op.algorithm == Some(DotAlgorithm::Tf32Tf32F32),
        ElementType::BF16 => matches!(op.algorithm, None | Some(DotAlgorithm::Bf16Bf16F32)),
        ElementType::F16 => matches!(op.algorithm, None | Some(DotAlgorithm::F16F16F32)),
        _ => op.algorithm.is_none(),
    };
    sums && is_known && profile.types.contains(&operand)
}

/// Sizes of an attention.
struct Sizes {
    batches: usize,
    queries: usize,
    keys: usize,
    /// Head size and element type of queries and keys, and of values.
    heads: [(usize, ElementType); 2],
    /// Whether the elements of each query, key and value are contiguous in memory.
    heads_are_rows: bool,
}

impl Sizes {
    fn of(graph: &Computation, attention: &Attention) -> Option<Sizes> {
        let array = |id: InstrId| graph[id].shape().as_array();
        let operand = |dot: InstrId, number: usize| array(graph[dot].operand(number));
        let (Op::Dot(first), Op::Dot(second)) = (graph[attention.scores].op(), graph[attention.result].op()) else {
            return None;
        };
        let (queries, keys) =
            (operand(attention.scores, attention.queries)?, operand(attention.scores, 1 - attention.queries)?);
        let values = operand(attention.result, 1 - attention.probabilities)?;
        let of = |array: &ArrayShape, dims: &[usize]| dims.iter().map(|&d| array.dims()[d]).product::<usize>();
        let ranks = |dot: InstrId| Some([operand(dot, 0)?.rank(), operand(dot, 1)?.rank()]);
        let sides = first.dims.operands(ranks(attention.scores)?);
        let (query, key) = (&sides[attention.queries], &sides[1 - attention.queries]);
        let of_values = &second.dims.operands(ranks(attention.result)?)[1 - attention.probabilities];
        let is_last = |array: &ArrayShape, dims: &[usize]| dims.iter().copied().eq(array.rank().checked_sub(1));
        Some(Sizes {
            batches: of(queries, query.batch),
            queries: of(queries, &query.free),
            keys: of(keys, &key.free),
            heads: [
                (of(queries, query.contracting), queries.element_type()),
                (of(values, &of_values.free), values.element_type()),
            ],
            heads_are_rows: is_last(queries, query.contracting)
                && is_last(keys, key.contracting)
                && is_last(values, &of_values.free),
        })
    }
}

/// Returns a plan with one group of all members.
fn plan(graph: &Computation, attention: Attention) -> FusionPlan {
    FusionPlan { groups: vec![group(graph, attention.result, attention.members)], decisions: Vec::new() }
}

/// Returns a group of these members.
pub(super) fn group(graph: &Computation, root: InstrId, members: Vec<InstrId>) -> FusionGroup {
    let reads = members.iter().flat_map(|&id| graph[id].operands()).copied();
    FusionGroup {
        root,
        reads: reads.filter(|id| !members.contains(id)).collect(),
        demand: ReadDemand::default(),
        size: members.len(),
        code: 0.0,
        members: members.into_iter().map(|id| (id, Vec::new())).collect(),
    }
}
