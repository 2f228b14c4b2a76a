//! Slice sinking: applies an operation once to whole arrays instead of to several slices of them.
//!
//! ```text
//! f(slice(x, a), slice(y, a))             s = f(x, y)
//! f(slice(x, b), slice(y, b))    ─>       slice(s, a)
//!                                         slice(s, b)
//! ```

use std::collections::{HashMap, HashSet, VecDeque};

use xla_hlo::ops::{Slice, SliceRange};
use xla_hlo::{ArrayShape, CompId, Computation, InstrId, Instruction, Module, Op, Result, Shape};

use crate::rewrite::graph;
use crate::{Pass, PassContext};

/// Computes elementwise operations on whole arrays if all parts of them are used. Slices move towards their users if
/// the same operation is applied to at least two different slices of the same arrays, these slices have no other users,
/// and together they have at least as many elements as one array.
///
/// For targets that do not fuse slices. If kernels read slices directly, they are free, and parts of an array may be
/// used in different kernels.
pub struct SinkSlices;

impl Pass for SinkSlices {
    fn name(&self) -> &'static str {
        "sink-slices"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let ids: Vec<CompId> = module.ids().collect();
        for id in ids {
            let computation = module.computation_mut(id);
            let all = computation.post_order();
            let mut waiting: VecDeque<Group> = groups(computation, all).into();
            while let Some(group) = waiting.pop_front() {
                if is_worth_it(computation, &group) && cx.allow_rewrite(self.name()) {
                    // Users of the group's members now use slices.
                    let users = sink(computation, &group)?;
                    waiting.extend(groups(computation, users));
                }
            }
        }
        Ok(())
    }
}

/// Instructions that apply the same operation to different slices of the same arrays.
type Group = Vec<InstrId>;

/// An operation on whole arrays: the operation, the sliced arrays, and the shape of the result.
type Key = (Op, Vec<InstrId>, Shape);

/// Groups the elementwise operations on slices among the given instructions.
fn groups(computation: &Computation, instructions: Vec<InstrId>) -> Vec<Group> {
    let mut list: Vec<Group> = Vec::new();
    let mut by_key: HashMap<Key, usize> = HashMap::new();
    for id in instructions {
        let Some(key) = key(computation, id) else { continue };
        let fresh = list.len();
        let place = *by_key.entry(key).or_insert(fresh);
        if place == fresh {
            list.push(Group::new());
        }
        list[place].push(id);
    }
    list
}

/// Returns the key of an elementwise operation on equal slices of arrays.
fn key(computation: &Computation, id: InstrId) -> Option<Key> {
    let instruction = &computation[id];
    let elementwise = matches!(
        instruction.op(),
        Op::Unary(_) | Op::Binary(_) | Op::Compare(_) | Op::Select(_) | Op::Clamp(_) | Op::ReducePrecision(_)
    );
    let operands = instruction.operands();
    let cut = elementwise.then(|| ranges(computation, *operands.first()?))??;
    let alike = |&o: &InstrId| ranges(computation, o) == Some(cut) && graph::is_free(&computation[o]);
    if !graph::is_free(instruction) || !operands.iter().all(alike) {
        return None;
    }
    let sources: Vec<InstrId> = operands.iter().map(|&o| computation[o].operand(0)).collect();
    let whole = computation[sources[0]].shape().as_array()?;
    let same = |&s: &InstrId| computation[s].shape().as_array().is_some_and(|a| a.is_static() && a.same_dims(whole));
    let shape = ArrayShape::new(instruction.shape().element_type()?, whole.dims());
    sources.iter().all(same).then(|| (instruction.op().clone(), sources, Shape::Array(shape)))
}

fn ranges(computation: &Computation, id: InstrId) -> Option<&[SliceRange]> {
    match computation[id].op() {
        Op::Slice(slice) => Some(&slice.ranges),
        _ => None,
    }
}

/// Whether the slices become unused, and no more elements are computed than before.
fn is_worth_it(computation: &Computation, group: &[InstrId]) -> bool {
    let members: HashSet<InstrId> = group.iter().copied().collect();
    let first = &computation[computation[group[0]].operand(0)];
    let whole = computation[first.operand(0)].shape().as_array().map_or(0, ArrayShape::element_count);
    let mut different = HashSet::new();
    let mut wanted = 0usize;
    for &id in group {
        let instruction = &computation[id];
        let vanishes = |&o: &InstrId| computation[o].users().iter().all(|u| members.contains(u));
        if !instruction.operands().iter().all(vanishes) {
            return false;
        }
        if different.insert(ranges(computation, instruction.operand(0))) {
            wanted = wanted.saturating_add(instruction.shape().as_array().map_or(0, ArrayShape::element_count));
        }
    }
    different.len() > 1 && wanted >= whole
}

/// Computes the operation once. Returns the users of the slices without duplicates.
fn sink(computation: &mut Computation, group: &[InstrId]) -> Result<Vec<InstrId>> {
    let first = &computation[group[0]];
    let sources: Vec<InstrId> = first.operands().iter().map(|&o| computation[o].operand(0)).collect();
    let dims = computation[sources[0]].shape().as_array().map(|a| a.dims().to_vec()).unwrap_or_default();
    let Some(ty) = first.shape().element_type() else { return Ok(Vec::new()) };
    let shape = Shape::Array(ArrayShape::new(ty, dims)).with_default_layouts();
    let whole = Instruction::new(first.op().clone(), shape, sources)
        .with_name(first.name())
        .with_annotations(first.annotations().cloned().map(Box::new));
    let whole = computation.add(whole);
    let mut users = Vec::new();
    for &id in group {
        let ranges = ranges(computation, computation[id].operand(0)).map(<[SliceRange]>::to_vec).unwrap_or_default();
        let shape = computation[id].shape().clone();
        let part = computation.add(Instruction::new(Slice { ranges }.into(), shape, [whole]));
        users.extend_from_slice(computation[id].users());
        computation.replace_all_uses(id, part);
        graph::remove_dead(computation, id)?;
    }
    users.sort_unstable();
    users.dedup();
    Ok(users)
}
