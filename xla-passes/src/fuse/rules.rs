//! Legality of fusion: instructions that can be part of a kernel, regardless of cost.

use xla_hlo::{ArrayShape, Computation, ElementType, InstrId, Op};

use super::access::ElementAccess;
use super::group::FusionGroup;
use crate::TargetProfile;
use crate::rewrite::graph;

/// Whether `id` can be evaluated element by element inside a kernel.
pub fn may_be_inside(computation: &Computation, id: InstrId, profile: &TargetProfile) -> bool {
    let instruction = &computation[id];
    let Some(shape) = instruction.shape().as_array() else { return false };
    let allowed = match instruction.op() {
        // Larger constants are arrays in memory.
        Op::Constant(_) => shape.element_count() == 1,
        // Reads along another dimension than the minor-most one are slow. As a root, a transpose can be computed in
        // tiles.
        Op::Transpose(t) if t.permutation.last().is_some_and(|&d| d + 1 != shape.rank()) => {
            profile.can_fuse(instruction.op()) && shape.byte_size() <= profile.fusion.max_transposed_bytes
        }
        // A conversion between types of different widths changes the dimensions, so that it is not elementwise.
        Op::BitcastConvert(_) => keeps_width(computation, id) && profile.can_fuse(instruction.op()),
        Op::Reduce(_) => profile.fusion.reduce_epilogue && reads_in_order(computation, id, profile),
        op => profile.can_fuse(op),
    };
    allowed && shape.is_static() && graph::is_free(instruction)
}

/// Whether a reduction combines elements that are contiguous in memory.
pub fn reduces_along_memory(computation: &Computation, id: InstrId) -> bool {
    let Op::Reduce(reduce) = computation[id].op() else { return false };
    let operand = computation[computation[id].operand(0)].shape();
    let innermost = operand.as_array().and_then(|s| s.dims().iter().rposition(|&n| n > 1));
    innermost.is_none_or(|d| reduce.dimensions.contains(&d))
}

/// Minimum number of elements per reduction for which scalar work on the result is negligible.
const LONG_REDUCTION: f64 = 64.0;

/// Whether scalar work on the results of a reduction is negligible compared with the reduction.
pub fn is_long_reduction(computation: &Computation, id: InstrId) -> bool {
    let elements = |id| super::access::elements(computation, id);
    !reduces_along_memory(computation, id) || elements(computation[id].operand(0)) >= LONG_REDUCTION * elements(id)
}

/// Whether a reduction that computes each result separately reads contiguous memory, or an array that fits in the L2
/// cache.
pub fn reads_in_order(computation: &Computation, id: InstrId, profile: &TargetProfile) -> bool {
    let near = computation[computation[id].operand(0)].shape().byte_size() <= profile.l2_bytes;
    near || reduces_along_memory(computation, id)
}

/// Whether a kernel with this root computes each result of `id` once, if `id` is a reduction. It must run in the
/// kernel's loop: before the loop it would run again for each part into which the loop is split.
pub fn reduces_once(computation: &Computation, root: InstrId, id: InstrId, accesses: &[ElementAccess]) -> bool {
    let single = |id: InstrId| super::access::elements(computation, id) == 1.0;
    let at_loop = |a: &ElementAccess| a.is_loop_index() && single(id) == single(root);
    !matches!(computation[id].op(), Op::Reduce(_)) || accesses.iter().all(at_loop)
}

/// Whether `id` can be the root of a kernel.
pub fn may_root(computation: &Computation, id: InstrId, profile: &TargetProfile) -> bool {
    let instruction = &computation[id];
    let static_shape =
        instruction.shape().leaves().iter().all(|(_, s)| s.as_array().is_some_and(ArrayShape::is_static));
    let allowed = match instruction.op() {
        Op::Constant(_) | Op::Reshape(_) => false,
        Op::DynamicUpdateSlice(_) => profile.fusion.in_place_update && profile.can_root(instruction.op()),
        Op::BitcastConvert(_) => keeps_width(computation, id) && profile.can_root(instruction.op()),
        op => profile.can_root(op),
    };
    allowed && static_shape && graph::is_free(instruction)
}

/// Whether operand and result have elements of equal width.
fn keeps_width(computation: &Computation, id: InstrId) -> bool {
    let instruction = &computation[id];
    let width = |id: InstrId| computation[id].shape().element_type().map(ElementType::bit_width);
    width(id) == width(instruction.operand(0))
}

/// Whether an instruction generates its elements at almost no cost, so that it is fused into every kernel that reads
/// it, even if its value is needed in memory too.
pub fn is_generator(computation: &Computation, id: InstrId) -> bool {
    let instruction = &computation[id];
    match instruction.op() {
        Op::Constant(_) | Op::Iota(_) => true,
        Op::Broadcast(_) => {
            computation[instruction.operand(0)].shape().as_array().is_some_and(|s| s.element_count() == 1)
        }
        _ => false,
    }
}

/// Whether `user` can evaluate `id` inside the kernel as its operand number `position`.
pub fn user_takes(
    computation: &Computation,
    user: InstrId,
    position: usize,
    id: InstrId,
    profile: &TargetProfile,
) -> bool {
    let instruction = &computation[user];
    match instruction.op() {
        // Initial values are read by every thread before the loop.
        Op::Reduce(_) => position < instruction.operands().len() / 2 || matches!(computation[id].op(), Op::Constant(_)),
        // Operand 0 is the buffer that is updated in place.
        Op::DynamicUpdateSlice(_) => position != 0,
        // Indices of a gather should be known early, so that consecutive row loads keep the memory busy. Computed
        // inside the kernel they are late (measured on the CPU: a sixth slower for 25 MB).
        Op::Gather(_) => {
            position == 0 || instruction.shape().byte_size() <= profile.l2_bytes || is_generator(computation, id)
        }
        _ => true,
    }
}

/// Whether a kernel rooted in an in-place update may evaluate `id`.
///
/// The kernel overwrites operand 0 of the update while it runs. It may only read the elements of that array that the
/// same element of the update replaces: a `dynamic-slice` with the same start indices, used element by element.
///
/// An update that is computed from other elements of the array is not fused at all, since a partial fusion would split
/// it where it reads them.
pub fn keeps_update_in_place(
    computation: &Computation,
    group: &FusionGroup,
    id: InstrId,
    accesses: &[ElementAccess],
    profile: &TargetProfile,
) -> bool {
    let root = &computation[group.root];
    if !matches!(root.op(), Op::DynamicUpdateSlice(_)) {
        return true;
    }
    if computation[id].operands().contains(&root.operand(0)) {
        return reads_what_it_replaces(computation, id, group.root)
            && accesses.iter().all(ElementAccess::is_loop_index);
    }
    id != root.operand(1) || !is_made_of_neighbours(computation, group.root, profile)
}

/// Whether `id` is the part of an array that `update` overwrites.
fn reads_what_it_replaces(computation: &Computation, id: InstrId, update: InstrId) -> bool {
    let (instruction, root) = (&computation[id], &computation[update]);
    matches!(instruction.op(), Op::DynamicSlice(_))
        && instruction.operand(0) == root.operand(0)
        && instruction.operands()[1..] == root.operands()[2..]
        && graph::same_shape(instruction.shape(), computation[root.operand(1)].shape())
}

/// Maximum number of instructions that are examined for the computation of an update.
const MOST_LOOKED_AT: usize = 64;

/// Whether a kernel for the update would read elements of the array that the update does not replace.
fn is_made_of_neighbours(computation: &Computation, update: InstrId, profile: &TargetProfile) -> bool {
    let buffer = computation[update].operand(0);
    let mut seen = vec![computation[update].operand(1)];
    let mut next = 0;
    while let Some(&id) = seen.get(next).filter(|_| next < MOST_LOOKED_AT) {
        next += 1;
        if id == buffer || !may_be_inside(computation, id, profile) {
            continue;
        }
        let operands = computation[id].operands();
        if operands.contains(&buffer) && !reads_what_it_replaces(computation, id, update) {
            return true;
        }
        seen.extend(operands.iter().filter(|o| !seen.contains(o)).copied().collect::<Vec<_>>());
    }
    false
}
