//! In-place execution: outputs that may overwrite a dead operand, and the order of reads and stores that permits it.

use std::collections::HashSet;

use xla_hlo::ops::{Family, Fusion, FusionKind};
use xla_hlo::{ArrayShape, CompId, Computation, InstrId, Module, Op, Shape};

use super::role::{has_row_major_layout, leaf_array, leaf_count};
use super::row_order::RowOrder;

/// Order in which a kernel reads an operand and stores a result over it.
///
/// Buffer assignment shares memory only in one of these orders, and kernels must keep to it. Code that runs again for
/// other elements of a result, such as the remainder of a vectorized loop, must not read an operand that the first run
/// has overwritten.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ReadOrder {
    /// The operand's element at an index is read at most for the result's element at the same index, before that
    /// element is stored.
    Element,
    /// All reads of a row of the operand precede the first store to this row, and no other row reads it.
    Row,
    /// The result has one element, whose store follows all reads.
    Single,
    /// The operand is updated in place: elements outside of the update keep their values, and no new value depends on
    /// an old element at another index.
    Update,
}

/// An output leaf that may overwrite an operand leaf. Both are numbered depth first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Share {
    /// Leaf number in the result.
    pub(crate) output: usize,
    /// Leaf number among the leaves of all operands, in operand order.
    pub(crate) operand: usize,
    /// Order of reads and stores.
    pub(crate) order: ReadOrder,
}

impl Share {
    /// Whether only a part of the operand changes, so that sharing avoids a copy of the rest.
    pub(crate) fn is_update(self) -> bool {
        self.order == ReadOrder::Update
    }
}

/// Whether the leaf at `output` of an instruction's result may overwrite the leaf at `path` of operand `operand`:
/// whether [`read_order`] finds an order for the two.
pub fn may_share(
    module: &Module,
    computation: CompId,
    instruction: InstrId,
    output: &[usize],
    operand: usize,
    path: &[usize],
) -> bool {
    read_order(module, computation, instruction, output, operand, path).is_some()
}

/// Returns the order in which the leaf at `output` of an instruction's result may overwrite the leaf at `path` of
/// operand `operand`; `None` if it may not.
///
/// The elements of both must have equal size. The order depends on the instruction:
///
/// - [`ReadOrder::Element`]: elementwise operations, loop fusions of them (also through reshapes), and parameters that
///   fusions with reductions read outside of the reductions;
/// - [`ReadOrder::Row`]: fusions that reduce rows, if their `output_to_operand_aliasing` requests it;
/// - [`ReadOrder::Single`]: loop fusions with one element;
/// - [`ReadOrder::Update`]: `dynamic-update-slice`, `scatter`, and loop fusions of a `dynamic-update-slice` whose
///   update reads its operand nowhere else.
///
/// Kernels must be correct if the two share memory. A kernel that writes several arrays of equal dimensions computes
/// all their elements at an index before it stores any of them.
pub fn read_order(
    module: &Module,
    computation: CompId,
    instruction: InstrId,
    output: &[usize],
    operand: usize,
    path: &[usize],
) -> Option<ReadOrder> {
    let computation = &module[computation];
    let shape = computation[instruction].shape();
    let &operand_id = computation[instruction].operands().get(operand)?;
    let output = leaf_number(shape, output)?;
    let leaf = leaf_number(computation[operand_id].shape(), path)?;
    let operand = leaf + first_leaf(computation, instruction, operand);
    let shares = shares(module, computation, instruction);
    shares.iter().find(|s| s.output == output && s.operand == operand).map(|share| share.order)
}

/// Returns all pairs that [`may_share`] permits.
pub(crate) fn shares(module: &Module, computation: &Computation, id: InstrId) -> Vec<Share> {
    let instruction = &computation[id];
    let mut found = Vec::new();
    match instruction.op() {
        Op::Fusion(fusion) => {
            if let (FusionKind::Loop | FusionKind::Input, Some(fused)) = (fusion.kind, module.get(fusion.computation)) {
                found.extend(fusion_shares(fused, fusion.kind));
                found.extend(row_shares(computation, id, fusion, fused));
            }
        }
        Op::Scatter(_) => {
            let arrays = instruction.operands().len() / 2;
            found.extend((0..arrays).map(|i| Share { output: i, operand: i, order: ReadOrder::Update }));
        }
        Op::DynamicUpdateSlice(_) => found.push(Share { output: 0, operand: 0, order: ReadOrder::Update }),
        _ => {
            for i in 0..instruction.operands().len() {
                if operand_access(computation, id, i) == OperandAccess::Same {
                    let operand = first_leaf(computation, id, i);
                    found.push(Share { output: 0, operand, order: ReadOrder::Element });
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

/// Whether elements at equal linear indices of the two arrays have equal addresses.
fn same_element_places(a: &Shape, b: &Shape) -> bool {
    let (Some(a), Some(b)) = (leaf_array(a), leaf_array(b)) else { return false };
    let width = |s: &ArrayShape| (s.element_type().byte_width(), s.layout().map_or(0, |l| l.element_size_in_bits));
    let space = |s: &ArrayShape| s.layout().map_or(0, |l| l.memory_space);
    width(a) == width(b) && space(a) == space(b) && same_order(a, b)
}

/// Whether each element has the same linear index in both: equal dimensions and layouts, or both row-major.
fn same_order(a: &ArrayShape, b: &ArrayShape) -> bool {
    if a.element_count() != b.element_count() || !a.is_static() || !b.is_static() {
        return false;
    }
    let plain = |s: &ArrayShape| s.layout().is_none_or(|l| l.tiles.is_empty() && l.tail_padding_alignment <= 1);
    (has_row_major_layout(a) && has_row_major_layout(b))
        || (a.same_dims(b) && plain(a) && plain(b) && a.minor_to_major() == b.minor_to_major())
}

/// Index of the operand element that an instruction reads for the result element at some linear index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum OperandAccess {
    /// Equal linear index, or no access.
    Same,
    /// The index relative to the update of that `dynamic-update-slice`.
    Window(InstrId),
    /// Another index, or several.
    Other,
}

/// Returns the access to operand `i` for an element of `id` itself.
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

/// Returns the access to operand `i` if `id` itself is accessed as `access` states.
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

/// Whether `id` is a `dynamic-slice` of exactly the part that `update`, a `dynamic-update-slice`, overwrites.
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

/// Returns the pairs of a fusion, from the accesses of each output to the parameters. A reduction reads its operand at
/// other indices than those of its result.
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
    // A kernel may accumulate a reduction in its result's memory, so that its only element is written early.
    if let [output] = outputs[..]
        && kind == FusionKind::Loop
        && element_count(fused, output) == Some(1)
    {
        // A parameter of one element is read completely before the only element of the result is written.
        let single = |p: &usize| element_count(fused, fused.parameters()[*p]) == Some(1);
        let parameters = (0..fused.parameters().len()).filter(single);
        return parameters.map(|operand| Share { output: 0, operand, order: ReadOrder::Single }).collect();
    }
    // Outputs of the same dimensions are computed in one loop, which computes all of them at an index before it stores
    // any. If the dimensions differ, a parameter that two outputs read is not shared.
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
                let is_update = is_update_of(fused, id, operand);
                let order = if is_update { ReadOrder::Update } else { ReadOrder::Element };
                found.push(Share { output, operand, order });
            }
        }
    }
    found
}

/// Returns the pairs that a row fusion requests by its aliases, limited to parameters that it reads in the current row
/// only.
fn row_shares(computation: &Computation, id: InstrId, fusion: &Fusion, fused: &Computation) -> Vec<Share> {
    if fusion.kind != FusionKind::Input || fusion.aliases.is_empty() {
        return Vec::new();
    }
    let Some(rows) = RowOrder::of(fused) else { return Vec::new() };
    let parameters = rows.parameters();
    let mut found = Vec::new();
    for alias in &fusion.aliases {
        let output = leaf_number(computation[id].shape(), &alias.output);
        if let Some(output) = output.filter(|&output| rows.stores_rows(output))
            && alias.path.is_empty()
            && parameters.contains(&alias.operand)
        {
            let operand = first_leaf(computation, id, alias.operand);
            found.push(Share { output, operand, order: ReadOrder::Row });
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

/// Returns the accesses to each parameter that computing an element of `output` needs.
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

/// Whether the output is a `dynamic-update-slice` of that parameter, possibly with a different shape.
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

/// Returns the depth-first number of the leaf at `path`.
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

/// Returns the number of leaves of the operands before operand `i`.
fn first_leaf(computation: &Computation, id: InstrId, i: usize) -> usize {
    computation[id].operands().iter().take(i).map(|&o| leaf_count(computation[o].shape())).sum()
}
