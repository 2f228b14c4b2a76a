//! Merges dots that share an operand into one dot of their concatenated other operands.
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

/// Merges small dots of one operand that do not depend on one another, where reading that operand fewer times, and
/// calling fewer kernels, saves more than putting together the others and taking the results apart costs.
///
/// Dots are small up to [`DotProfile::merge_bytes`](crate::DotProfile), for operands and result of each; 0 turns the
/// pass off. Each element is the same sum of the same products, in an order that is free before and after.
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
            // Rounds of an unrolled loop put together the same.
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

/// Operand that dots share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum DotSide {
    Left,
    Right,
}

/// Key of mergeable dots.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Alike {
    shared: InstrId,
    side: DotSide,
    /// Dots below a dot, on the longest way. Dots as far up do not depend on one another, and do not after any of them
    /// merged.
    height: usize,
    dims: [Vec<usize>; 4],
    /// The other operand's dimension along which others can follow.
    along: usize,
    /// The sizes of the other operand, but for that dimension.
    sizes: Vec<usize>,
    /// Of the other operand, of the result, and how exact products are, as numbers.
    types: [ElementType; 2],
    exactness: Vec<usize>,
}

/// Small dots that are alike, in the order of the program. A dot may be in one group for each of its operands.
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

/// The operand that dots share; another instruction may have taken its place since.
fn shared(computation: &Computation, id: InstrId, alike: &Alike) -> InstrId {
    computation[id].operand(usize::from(alike.side == DotSide::Right))
}

fn other(computation: &Computation, id: InstrId, alike: &Alike) -> InstrId {
    computation[id].operand(usize::from(alike.side == DotSide::Left))
}

/// Whether a dot is small, and costs less as part of another than one dot fewer saves.
fn is_candidate(computation: &Computation, id: InstrId, alike: &Alike, profile: &TargetProfile) -> bool {
    let all = [shared(computation, id, alike), other(computation, id, alike), id];
    let size: usize = all.iter().map(|&i| bytes(computation, i)).sum();
    size <= profile.dot.merge_bytes && cost(computation, id, alike, profile) < saved(computation, id, alike, profile)
}

/// Seconds that one dot fewer saves: the shared operand is not read again.
fn saved(computation: &Computation, id: InstrId, alike: &Alike, profile: &TargetProfile) -> f64 {
    profile.launch_seconds + bytes(computation, shared(computation, id, alike)) as f64 / profile.cache_bandwidth
}

/// Seconds that a dot costs as part of another: its operand is copied, unless it is put together when compiled, and its
/// result is cut out by a kernel of its own, unless its reader computes, and slices as it reads.
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

/// Whether an operand is there when the program is compiled.
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

/// Puts one dot in place of several.
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
    // The result has batch dimensions, those of the left, then those of the right operand.
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

/// The shape of an array with another size of one dimension.
fn resized(computation: &Computation, id: InstrId, dimension: usize, size: usize) -> Result<Shape> {
    let shape = computation[id].shape().expect_array()?;
    let mut dims = shape.dims().to_vec();
    dims[dimension] = size;
    Ok(Shape::array(shape.element_type(), dims).with_default_layouts())
}

/// The part of a merged dot that stands for one of those it is made of.
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
