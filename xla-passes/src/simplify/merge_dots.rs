//! Merges dots that share an operand into one dot of that operand and the concatenation of the others.
//!
//! ```text
//! a = dot(x, v)                  m = dot(x, concatenate(v, w))
//! b = dot(x, w)           ─>     a = slice(m)
//!                                b = slice(m)
//! ```

use std::collections::{BTreeMap, HashMap};

use xla_hlo::entity::SecondaryMap;
use xla_hlo::ops::{Concatenate, Dot, DotDims, Family, Slice, SliceRange};
use xla_hlo::{ArrayShape, Computation, ElementType, InstrId, Instruction, Module, Op, Result, Shape};

use crate::rewrite::graph;
use crate::{Pass, PassContext, TargetProfile};

/// Merges small, independent dots that share an operand, if fewer reads of that operand and fewer kernel launches save
/// more than the concatenation and the slices of the result cost.
///
/// [`DotProfile::merge_bytes`](crate::DotProfile) limits the size of each dot's operands and result; 0 disables the
/// pass. Each element is the same sum of the same products; the summation order is unspecified before and after.
pub struct MergeDots;

impl Pass for MergeDots {
    fn name(&self) -> &'static str {
        "merge-dots"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        if cx.profile().dot.merge_bytes == 0 {
            return Ok(());
        }
        for id in module.post_order() {
            if module[id].schedule().is_some() {
                continue;
            }
            // Iterations of an unrolled loop share the concatenation.
            let mut together = HashMap::new();
            let mut merged: SecondaryMap<InstrId, bool> = SecondaryMap::new(false);
            for (alike, mut dots) in groups(&module[id], cx.profile()) {
                dots.retain(|&dot| !merged[dot]);
                if is_worthwhile(&module[id], &alike, &dots, cx.profile()) && cx.allow_rewrite(self.name()) {
                    dots.iter().for_each(|&dot| merged[dot] = true);
                    merge(module.computation_mut(id), &alike, &dots, &mut together)?;
                }
            }
        }
        Ok(())
    }
}

/// The operand that dots share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum DotSide {
    Left,
    Right,
}

/// Merge key: dots with equal keys can be merged.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Alike {
    shared: InstrId,
    side: DotSide,
    /// Maximum number of dots on a dependency path that leads to the dot. Dots of equal height are independent of each
    /// other, and stay so when some of them are merged.
    height: usize,
    dims: [Vec<usize>; 4],
    /// Dimension of the other operand for the concatenation.
    along: usize,
    /// Sizes of the other operand without that dimension.
    sizes: Vec<usize>,
    /// Element types of the other operand and of the result; `exactness` encodes the precision attributes as numbers.
    types: [ElementType; 2],
    exactness: Vec<usize>,
}

/// Groups small dots by merge key, in program order. A dot may be in one group per operand.
fn groups(computation: &Computation, profile: &TargetProfile) -> Vec<(Alike, Vec<InstrId>)> {
    let mut groups: BTreeMap<Alike, Vec<InstrId>> = BTreeMap::new();
    let mut heights: SecondaryMap<InstrId, usize> = SecondaryMap::new(0);
    for id in computation.post_order() {
        let instruction = &computation[id];
        let before = instruction.operands().iter().chain(instruction.control_predecessors());
        let below = before.map(|&o| heights[o]).max().unwrap_or(0);
        let Op::Dot(dot) = instruction.op() else {
            heights[id] = below;
            continue;
        };
        heights[id] = below + 1;
        for side in [DotSide::Left, DotSide::Right] {
            if let Some(alike) = alike(computation, id, dot, side, below)
                && is_candidate(computation, id, &alike, profile)
            {
                groups.entry(alike).or_default().push(id);
            }
        }
    }
    let mut groups: Vec<_> = groups.into_iter().filter(|(_, dots)| dots.len() > 1).collect();
    groups.sort_by_key(|(_, dots)| dots[0]);
    groups
}

fn alike(computation: &Computation, id: InstrId, dot: &Dot, side: DotSide, height: usize) -> Option<Alike> {
    let instruction = &computation[id];
    let [shared, other] = match side {
        DotSide::Left => [instruction.operand(0), instruction.operand(1)],
        DotSide::Right => [instruction.operand(1), instruction.operand(0)],
    };
    let exact = |id: InstrId| computation[id].shape().as_array().filter(|shape| shape.is_static());
    let (_, shape, result) = (exact(shared)?, exact(other)?, exact(id)?);
    let DotDims { lhs_batch, lhs_contracting, rhs_batch, rhs_contracting } = dot.dims.clone();
    let along = match side {
        DotSide::Left => *dot.dims.rhs(shape.rank()).free.first()?,
        DotSide::Right => *dot.dims.lhs(shape.rank()).free.first()?,
    };
    let mut sizes = shape.dims().to_vec();
    sizes.remove(along);
    let sharded = instruction.annotations().is_some_and(|a| a.sharding.is_some());
    let exactness = dot.precision.iter().map(|&p| p as usize).chain(dot.algorithm.map(|a| 16 + a as usize)).collect();
    (graph::is_free(instruction) && !sharded).then(|| Alike {
        shared,
        side,
        height,
        dims: [lhs_batch, lhs_contracting, rhs_batch, rhs_contracting],
        along,
        sizes,
        types: [shape.element_type(), result.element_type()],
        exactness,
    })
}

fn bytes(computation: &Computation, id: InstrId) -> usize {
    computation[id].shape().as_array().map_or(0, ArrayShape::byte_size)
}

/// Returns the operand that dots share, which may have been replaced since grouping.
fn shared(computation: &Computation, id: InstrId, alike: &Alike) -> InstrId {
    computation[id].operand(usize::from(alike.side == DotSide::Right))
}

fn other(computation: &Computation, id: InstrId, alike: &Alike) -> InstrId {
    computation[id].operand(usize::from(alike.side == DotSide::Left))
}

/// Whether a dot is small and merging it saves more than it costs.
fn is_candidate(computation: &Computation, id: InstrId, alike: &Alike, profile: &TargetProfile) -> bool {
    let all = [shared(computation, id, alike), other(computation, id, alike), id];
    let size: usize = all.iter().map(|&i| bytes(computation, i)).sum();
    size <= profile.dot.merge_bytes && cost(computation, id, alike, profile) < saved(computation, id, alike, profile)
}

/// Returns the seconds saved per removed dot: one launch and one read of the shared operand.
fn saved(computation: &Computation, id: InstrId, alike: &Alike, profile: &TargetProfile) -> f64 {
    profile.launch_seconds + bytes(computation, shared(computation, id, alike)) as f64 / profile.cache_bandwidth
}

/// Returns the cost of merging a dot in seconds. Its other operand is copied unless it is a constant. Its result is
/// sliced by a separate kernel unless all readers are elementwise kernels, which slice as they read.
fn cost(computation: &Computation, id: InstrId, alike: &Alike, profile: &TargetProfile) -> f64 {
    let copied = |id: InstrId| 2.0 * bytes(computation, id) as f64 / profile.cache_bandwidth;
    let other = other(computation, id, alike);
    let together = if is_known(computation, other) { 0.0 } else { copied(other) };
    let computes = |&user: &InstrId| {
        let op = computation[user].op();
        profile.can_fuse(op) && op.opcode().family() == Family::Elementwise
    };
    let fused = computation.root() != id && computation[id].users().iter().all(computes);
    together + if fused { 0.0 } else { profile.launch_seconds + copied(id) }
}

/// Whether an operand is a compile-time constant.
fn is_known(computation: &Computation, id: InstrId) -> bool {
    matches!(computation[id].op(), Op::Constant(_))
}

fn is_worthwhile(computation: &Computation, alike: &Alike, dots: &[InstrId], profile: &TargetProfile) -> bool {
    if dots.len() < 2 {
        return false;
    }
    let known = dots.iter().all(|&dot| is_known(computation, other(computation, dot, alike)));
    let together = if known { 0.0 } else { profile.launch_seconds };
    let costs: f64 = dots.iter().map(|&dot| cost(computation, dot, alike, profile)).sum();
    together + costs < (dots.len() - 1) as f64 * saved(computation, dots[0], alike, profile)
}

/// Replaces several dots by one.
fn merge(
    computation: &mut Computation,
    alike: &Alike,
    dots: &[InstrId],
    together: &mut HashMap<(Vec<InstrId>, usize), InstrId>,
) -> Result<()> {
    let first = dots[0];
    let shared = shared(computation, first, alike);
    let others: Vec<InstrId> = dots.iter().map(|&dot| other(computation, dot, alike)).collect();
    let sizes: Vec<usize> = others.iter().map(|&o| size(computation, o, alike.along)).collect();
    let total = sizes.iter().sum();
    let operand = resized(computation, others[0], alike.along, total)?;
    let together = *together.entry((others.clone(), alike.along)).or_insert_with(|| {
        computation.add(Instruction::new(Concatenate { dimension: alike.along }.into(), operand, others))
    });
    // The result has batch dimensions, then the free dimensions of the left operand, then those of the right operand.
    let [batch, contracting, ..] = &alike.dims;
    let in_front = match alike.side {
        DotSide::Left => computation[shared].shape().expect_array()?.rank() - contracting.len(),
        DotSide::Right => batch.len(),
    };
    let operands = match alike.side {
        DotSide::Left => [shared, together],
        DotSide::Right => [together, shared],
    };
    let shape = resized(computation, first, in_front, total)?;
    let annotations = computation[first].annotations().cloned().map(Box::new);
    let dot = Instruction::new(computation[first].op().clone(), shape, operands).with_annotations(annotations);
    let dot = computation.add(dot);
    let mut start = 0;
    for (&old, size) in dots.iter().zip(sizes) {
        let part = cut(computation, dot, old, in_front, start)?;
        start += size;
        computation.replace_all_uses(old, part);
        let name = computation[old].name().to_string();
        computation.remove(old)?;
        computation.rename(part, &name);
    }
    Ok(())
}

fn size(computation: &Computation, id: InstrId, dimension: usize) -> usize {
    computation[id].shape().as_array().map_or(0, |shape| shape.dims()[dimension])
}

/// Returns the shape of an array with a different size of one dimension.
fn resized(computation: &Computation, id: InstrId, dimension: usize, size: usize) -> Result<Shape> {
    let shape = computation[id].shape().expect_array()?;
    let mut dims = shape.dims().to_vec();
    dims[dimension] = size;
    Ok(Shape::array(shape.element_type(), dims).with_default_layouts())
}

/// Adds the slice of a merged dot that replaces one of the original dots.
fn cut(computation: &mut Computation, dot: InstrId, old: InstrId, along: usize, start: usize) -> Result<InstrId> {
    let shape = computation[old].shape().expect_array()?;
    let mut ranges: Vec<SliceRange> =
        shape.dims().iter().map(|&limit| SliceRange { start: 0, limit, stride: 1 }).collect();
    let range = &mut ranges[along];
    *range = SliceRange { start, limit: start + range.limit, stride: 1 };
    let annotations = computation[old].annotations().cloned().map(Box::new);
    let slice = Instruction::new(Slice { ranges }.into(), computation[old].shape().clone(), [dot]);
    Ok(computation.add(slice.with_annotations(annotations)))
}
