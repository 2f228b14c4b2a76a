//! Outputs that an instruction may write over a dead operand.

use std::collections::HashSet;

use xla_hlo::ops::{Family, FusionKind};
use xla_hlo::{ArrayShape, CompId, Computation, InstrId, Module, Op, Shape};

use super::role::{has_row_major_layout, leaf_array, leaf_count};

/// An output leaf that may be written over an operand leaf, both counted depth first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Share {
    /// Leaf of the result.
    pub(crate) output: usize,
    /// Leaf among those of all operands, one operand after the other.
    pub(crate) operand: usize,
    /// Whether only a part of the operand is changed, so that sharing saves copying the rest.
    pub(crate) update: bool,
}

/// Whether the leaf at `output` of an instruction's result may be written over the leaf at `path` of operand `operand`.
///
/// It may where every element is read at the index where it is written and elements have one size (elementwise
/// operations, loop fusions of them, also through reshapes, and what fusions with reductions read outside of the
/// reductions; any loop fusion of one element), and where an operand is updated in place (`dynamic-update-slice`,
/// `scatter`, loop fusions of a `dynamic-update-slice` whose update does not read its operand elsewhere, and what the
/// `output_to_operand_aliasing` of other fusions says). Kernels must be correct when the two are the same memory; one
/// that writes several arrays of the same dimensions computes all their elements at an index before it stores any.
pub fn may_share(
    module: &Module,
    computation: CompId,
    instruction: InstrId,
    output: &[usize],
    operand: usize,
    path: &[usize],
) -> bool {
    let computation = &module[computation];
    let shape = computation[instruction].shape();
    let Some(&operand_id) = computation[instruction].operands().get(operand) else { return false };
    let (Some(output), Some(leaf)) = (leaf_number(shape, output), leaf_number(computation[operand_id].shape(), path))
    else {
        return false;
    };
    let operand = leaf + first_leaf(computation, instruction, operand);
    shares(module, computation, instruction).iter().any(|s| s.output == output && s.operand == operand)
}

/// All pairs that [`may_share`] allows.
pub(crate) fn shares(module: &Module, computation: &Computation, id: InstrId) -> Vec<Share> {
    let instruction = &computation[id];
    let mut found = Vec::new();
    match instruction.op() {
        Op::Fusion(fusion) => {
            // Aliases that a loop fusion claims are checked; those of other kinds are trusted.
            let claims = if fusion.kind == FusionKind::Loop { &[][..] } else { &fusion.aliases };
            for alias in claims {
                let Some(&operand) = instruction.operands().get(alias.operand) else { continue };
                let leaf = leaf_number(computation[operand].shape(), &alias.path);
                if let (Some(output), Some(leaf)) = (leaf_number(instruction.shape(), &alias.output), leaf) {
                    let operand = leaf + first_leaf(computation, id, alias.operand);
                    // Kernels of rows change the whole arrays that they overwrite.
                    found.push(Share { output, operand, update: fusion.kind != FusionKind::Input });
                }
            }
            if let (FusionKind::Loop | FusionKind::Input, Some(fused)) = (fusion.kind, module.get(fusion.computation)) {
                found.extend(fusion_shares(fused, fusion.kind));
            }
        }
        Op::Scatter(_) => {
            let arrays = instruction.operands().len() / 2;
            found.extend((0..arrays).map(|i| Share { output: i, operand: i, update: true }));
        }
        Op::DynamicUpdateSlice(_) => found.push(Share { output: 0, operand: 0, update: true }),
        _ => {
            for i in 0..instruction.operands().len() {
                if operand_access(computation, id, i) == OperandAccess::Same {
                    found.push(Share { output: 0, operand: first_leaf(computation, id, i), update: false });
                }
            }
        }
    }
    let outputs = instruction.shape().leaves();
    let operands: Vec<&Shape> = instruction.operands().iter().map(|&o| computation[o].shape()).collect();
    let operands: Vec<&Shape> = operands.iter().flat_map(|s| s.leaves()).map(|(_, leaf)| leaf).collect();
    found.retain(|s| match (outputs.get(s.output), operands.get(s.operand)) {
        (Some((_, a)), Some(b)) => same_element_places(a, b),
        _ => false,
    });
    found
}

/// Whether equal linear indices of the two are equal addresses.
fn same_element_places(a: &Shape, b: &Shape) -> bool {
    let (Some(a), Some(b)) = (leaf_array(a), leaf_array(b)) else { return false };
    let width = |s: &ArrayShape| (s.element_type().byte_width(), s.layout().map_or(0, |l| l.element_size_in_bits));
    let space = |s: &ArrayShape| s.layout().map_or(0, |l| l.memory_space);
    width(a) == width(b) && space(a) == space(b) && same_order(a, b)
}

/// Whether an element has one linear index in both: equal dimensions and layouts, or both row major.
fn same_order(a: &ArrayShape, b: &ArrayShape) -> bool {
    if a.element_count() != b.element_count() || !a.is_static() || !b.is_static() {
        return false;
    }
    let plain = |s: &ArrayShape| s.layout().is_none_or(|l| l.tiles.is_empty() && l.tail_padding_alignment <= 1);
    (has_row_major_layout(a) && has_row_major_layout(b))
        || (a.same_dims(b) && plain(a) && plain(b) && a.minor_to_major() == b.minor_to_major())
}

/// Access to an operand while an instruction computes its element at some linear index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum OperandAccess {
    /// At the same linear index, or not at all.
    Same,
    /// At the index inside the update of that `dynamic-update-slice`.
    Window(InstrId),
    /// Somewhere else, or everywhere.
    Other,
}

/// The access to operand `i` for an element of `id` itself.
fn operand_access(computation: &Computation, id: InstrId, i: usize) -> OperandAccess {
    let instruction = &computation[id];
    let operand = computation[instruction.operand(i)].shape();
    let (Some(from), Some(to)) = (operand.as_array(), instruction.shape().as_array()) else {
        return OperandAccess::Other;
    };
    let same_if = |yes: bool| if yes && same_order(from, to) { OperandAccess::Same } else { OperandAccess::Other };
    let elementwise = same_if(from.same_dims(to));
    match instruction.op() {
        Op::Reshape(_) | Op::Bitcast(_) => same_if(has_row_major_layout(from) && has_row_major_layout(to)),
        Op::DynamicUpdateSlice(_) => match i {
            0 => elementwise,
            1 => OperandAccess::Window(id),
            _ => OperandAccess::Other,
        },
        Op::Map(_) | Op::Copy(_) | Op::OptBarrier(_) | Op::Domain(_) => elementwise,
        op if op.opcode().family() == Family::Elementwise => elementwise,
        _ => OperandAccess::Other,
    }
}

/// The access to operand `i` when `id` itself is accessed in that way.
fn nested_access(computation: &Computation, id: InstrId, i: usize, access: OperandAccess) -> OperandAccess {
    match access {
        OperandAccess::Other => OperandAccess::Other,
        OperandAccess::Same => operand_access(computation, id, i),
        OperandAccess::Window(update) if i == 0 && reads_window(computation, id, update) => OperandAccess::Same,
        OperandAccess::Window(_) => match operand_access(computation, id, i) {
            OperandAccess::Same => access,
            OperandAccess::Window(_) | OperandAccess::Other => OperandAccess::Other,
        },
    }
}

/// Whether `id` is a `dynamic-slice` of exactly the slice that `update`, a `dynamic-update-slice`, writes.
fn reads_window(computation: &Computation, id: InstrId, update: InstrId) -> bool {
    let (slice, update) = (&computation[id], &computation[update]);
    let Op::DynamicSlice(op) = slice.op() else { return false };
    let shape = |i: InstrId| computation[i].shape().as_array();
    let (Some(from), Some(into)) = (shape(slice.operand(0)), shape(update.operand(0))) else { return false };
    let Some(window) = shape(update.operand(1)) else { return false };
    from.same_dims(into)
        && same_order(from, into)
        && op.sizes == window.dims()
        && slice.operands()[1..] == update.operands()[2..]
}

/// Pairs of a fusion, from the accesses to its parameters for each output. A reduction reads at other indices than its
/// result's.
fn fusion_shares(fused: &Computation, kind: FusionKind) -> Vec<Share> {
    let root = fused.root();
    let outputs: Vec<InstrId> = match fused[root].op() {
        Op::Tuple(_) => fused[root].operands().to_vec(),
        _ => vec![root],
    };
    let only_arrays = |id: &InstrId| fused[*id].shape().as_array().is_some();
    if !outputs.iter().all(only_arrays) || !fused.parameters().iter().all(only_arrays) {
        return Vec::new();
    }
    // A reduction may be kept where its result goes to, so that its only element is written early.
    if let [output] = outputs[..]
        && kind == FusionKind::Loop
        && element_count(fused, output) == Some(1)
    {
        // Nothing is read after the only element was written.
        let single = |p: &usize| element_count(fused, fused.parameters()[*p]) == Some(1);
        let parameters = (0..fused.parameters().len()).filter(single);
        return parameters.map(|operand| Share { output: 0, operand, update: false }).collect();
    }
    // Outputs of the same dimensions are computed in one loop, all of them for an index before any is stored; of
    // others, a parameter that two of them read is not shared.
    let dims = |id: InstrId| fused[id].shape().as_array().map(ArrayShape::dims);
    let one_loop = outputs.windows(2).all(|pair| dims(pair[0]) == dims(pair[1]));
    let leaves_intact = |a: ParameterAccess| a == ParameterAccess::None || (one_loop && a == ParameterAccess::Same);
    let accesses: Vec<Vec<ParameterAccess>> = outputs.iter().map(|&o| parameter_accesses(fused, o)).collect();
    let mut found = Vec::new();
    for (output, &id) in outputs.iter().enumerate() {
        for operand in 0..fused.parameters().len() {
            let others = accesses.iter().enumerate().filter(|(o, _)| *o != output);
            let mut others = others.map(|(_, a)| a[operand]);
            if accesses[output][operand] == ParameterAccess::Same && others.all(leaves_intact) {
                found.push(Share { output, operand, update: is_update_of(fused, id, operand) });
            }
        }
    }
    found
}

fn element_count(fused: &Computation, id: InstrId) -> Option<usize> {
    fused[id].shape().as_array().map(ArrayShape::element_count)
}

/// Access of one output of a fusion to one parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ParameterAccess {
    None,
    Same,
    Other,
}

/// Accesses to each parameter while the element of `output` at some index is computed.
fn parameter_accesses(fused: &Computation, output: InstrId) -> Vec<ParameterAccess> {
    let mut found = vec![ParameterAccess::None; fused.parameters().len()];
    let mut seen = HashSet::from([(output, OperandAccess::Same)]);
    let mut work = vec![(output, OperandAccess::Same)];
    while let Some((id, access)) = work.pop() {
        if let Op::Parameter(p) = fused[id].op() {
            if let Some(known) = found.get_mut(p.number) {
                let same = access == OperandAccess::Same && *known != ParameterAccess::Other;
                *known = if same { ParameterAccess::Same } else { ParameterAccess::Other };
            }
            continue;
        }
        for (i, &operand) in fused[id].operands().iter().enumerate() {
            let next = (operand, nested_access(fused, id, i, access));
            if seen.insert(next) {
                work.push(next);
            }
        }
    }
    found
}

/// Whether the output is a `dynamic-update-slice` of that parameter, perhaps under another shape.
fn is_update_of(fused: &Computation, mut id: InstrId, parameter: usize) -> bool {
    let mut updates = false;
    loop {
        match fused[id].op() {
            Op::DynamicUpdateSlice(_) => updates = true,
            Op::Bitcast(_) | Op::Reshape(_) => {}
            Op::Parameter(p) => return updates && p.number == parameter,
            _ => return false,
        }
        id = fused[id].operand(0);
    }
}

/// The number, depth first, of the leaf at `path`.
pub(crate) fn leaf_number(shape: &Shape, path: &[usize]) -> Option<usize> {
    let mut number = 0;
    let mut shape = shape;
    for &i in path {
        let elements = shape.as_tuple()?;
        number += elements.iter().take(i).map(leaf_count).sum::<usize>();
        shape = elements.get(i)?;
    }
    Some(number)
}

/// Number of leaves of the operands before operand `i`.
fn first_leaf(computation: &Computation, id: InstrId, i: usize) -> usize {
    computation[id].operands().iter().take(i).map(|&o| leaf_count(computation[o].shape())).sum()
}
