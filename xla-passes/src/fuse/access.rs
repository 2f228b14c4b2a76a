//! Element accesses: the indices at which a fusion evaluates its members, and the number of evaluations.

use std::hash::{DefaultHasher, Hash, Hasher};

use xla_hlo::entity::SecondaryMap;
use xla_hlo::{ArrayShape, Computation, InstrId, Op};

/// An index map from a fusion's loop to a member's elements, through which the fusion evaluates the member.
///
/// An emitter that caches values by index evaluates a member once for each distinct access.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ElementAccess {
    /// Hash of the index map: equal for index maps that are known to be equal without arithmetic.
    pub index_map: u64,
    /// Total number of elements that are evaluated through the index map.
    pub evaluations: f64,
    /// Whether the member's dimensions are the outermost of the kernel's loops, in order. Values broadcast along inner
    /// dimensions are then evaluated before the inner loops.
    pub in_order: bool,
}

/// Index map of the loop itself.
const LOOP: u64 = 0;

/// Approximate number of elements in a vector.
const LANES: f64 = 16.0;

/// Index map of values with one element.
const SINGLE: u64 = u64::MAX;

impl ElementAccess {
    /// Returns the access of a fusion's root: each element once.
    pub fn root(elements: f64) -> ElementAccess {
        ElementAccess { index_map: LOOP, evaluations: elements, in_order: true }
    }

    /// Whether the access reads the element of the current loop iteration, or the only element.
    pub fn is_loop_index(&self) -> bool {
        self.index_map == LOOP || self.index_map == SINGLE
    }
}

/// Returns the accesses to operand number `position` while `user` is evaluated through `access`.
///
/// `is_root` states that the fusion's loop iterates over `user`.
pub fn of_operand(
    computation: &Computation,
    user: InstrId,
    position: usize,
    access: ElementAccess,
    is_root: bool,
) -> ElementAccess {
    let instruction = &computation[user];
    let operand = instruction.operand(position);
    let elements = elements(computation, operand);
    let op = instruction.op();
    let (evaluations, in_order) = match op {
        Op::Reduce(reduce) => (elements, reduces_inner_dims(computation, operand, &reduce.dimensions)),
        Op::DynamicUpdateSlice(_) if is_root => (elements, access.in_order),
        Op::Concatenate(_) if is_root => (elements, false),
        // Reads at indices that depend only on outer loops are hoisted out of the inner ones.
        Op::Gather(gather) if position == 1 && access.in_order => {
            let rank = computation[user].shape().as_array().map_or(0, ArrayShape::rank);
            let batch: Vec<usize> = (0..rank).filter(|d| !gather.offset_dims.contains(d)).collect();
            hoisted(computation, user, &batch, access.evaluations)
        }
        Op::Broadcast(b) if access.in_order => hoisted(computation, user, &b.dimensions, access.evaluations),
        _ => (access.evaluations, access.in_order && is_elementwise(op)),
    };
    if elements == 1.0 {
        return ElementAccess { index_map: SINGLE, evaluations: 1.0, in_order };
    }
    let keeps_index = match op {
        Op::DynamicUpdateSlice(_) => is_root,
        _ => is_elementwise(op) && same_dims(computation, user, operand),
    };
    let index_map = if keeps_index { access.index_map } else { mapped(computation, user, position, access.index_map) };
    ElementAccess { index_map, evaluations, in_order }
}

/// Returns the accesses of a kernel's loop to the instructions in its body. Of the accesses that are not at the loop's
/// index, an instruction keeps only one.
///
/// Callers ask only whether such an access exists, and a chain of n softmaxes has 3^n of them. One is enough: an access
/// that leaves the loop's index never returns to it, except for single elements, whatever its index map.
pub fn accesses(body: &Computation) -> SecondaryMap<InstrId, Vec<ElementAccess>> {
    tracing::trace!(kernel = body.name(), "computed element accesses");
    let mut accesses: SecondaryMap<InstrId, Vec<ElementAccess>> = SecondaryMap::default();
    let root = body.root();
    match body[root].op() {
        Op::Tuple(_) => body[root].operands().iter().for_each(|&r| accesses[r].push(ElementAccess::root(1.0))),
        _ => accesses[root].push(ElementAccess::root(1.0)),
    }
    for id in body.post_order().into_iter().rev().filter(|&id| !matches!(body[id].op(), Op::Tuple(_))) {
        for access in accesses[id].clone() {
            for (position, &o) in body[id].operands().iter().enumerate() {
                let read = of_operand(body, id, position, access, id == root);
                let is_known = |a: &ElementAccess| match read.is_loop_index() {
                    true => a.index_map == read.index_map,
                    false => !a.is_loop_index(),
                };
                if !accesses[o].iter().any(is_known) {
                    accesses[o].push(read);
                }
            }
        }
    }
    accesses
}

/// Returns the evaluations of a value that is broadcast to the dimensions of `user`. It is hoisted out of the
/// dimensions inside of all its own.
fn hoisted(computation: &Computation, user: InstrId, dimensions: &[usize], evaluations: f64) -> (f64, bool) {
    let Some(shape) = computation[user].shape().as_array() else { return (evaluations, false) };
    let inner = dimensions.iter().max().map_or(0, |&d| d + 1);
    let repeats: f64 = shape.dims()[inner..].iter().map(|&n| n as f64).product();
    let in_order = dimensions.iter().copied().eq(0..inner);
    // Code before the innermost loop is not vectorized: if the loop repeats the work only a few times, vectorized code
    // in the loop is faster.
    (if repeats >= LANES { evaluations / repeats } else { evaluations }, in_order)
}

/// Whether a reduction's loops are in the order of its operand's dimensions.
fn reduces_inner_dims(computation: &Computation, operand: InstrId, dimensions: &[usize]) -> bool {
    let rank = computation[operand].shape().as_array().map_or(0, ArrayShape::rank);
    dimensions.iter().all(|&d| d + dimensions.len() >= rank)
}

/// Adds an access. Another access with the same index map is free.
pub fn merge(accesses: &mut Vec<ElementAccess>, new: ElementAccess) {
    match accesses.iter_mut().find(|a| a.index_map == new.index_map) {
        Some(known) => known.evaluations = known.evaluations.max(new.evaluations),
        None => accesses.push(new),
    }
}

/// Returns the number of elements of an array, or of the largest array of a tuple.
pub fn elements(computation: &Computation, id: InstrId) -> f64 {
    let count = |shape: &ArrayShape| shape.element_count() as f64;
    computation[id].shape().leaves().iter().filter_map(|(_, s)| s.as_array().map(count)).fold(0.0, f64::max)
}

/// Whether element `i` of the result depends on element `i` of operands with equal dimensions.
pub fn is_elementwise(op: &Op) -> bool {
    op.opcode().family() == xla_hlo::ops::Family::Elementwise || matches!(op, Op::Copy(_))
}

fn same_dims(computation: &Computation, a: InstrId, b: InstrId) -> bool {
    match (computation[a].shape().as_array(), computation[b].shape().as_array()) {
        (Some(a), Some(b)) => a.same_dims(b),
        _ => false,
    }
}

fn mapped(computation: &Computation, user: InstrId, position: usize, index_map: u64) -> u64 {
    let instruction = &computation[user];
    let mut hasher = DefaultHasher::new();
    index_map.hash(&mut hasher);
    instruction.op().hash(&mut hasher);
    if let Some(shape) = instruction.shape().as_array() {
        shape.dims().hash(&mut hasher);
    }
    match instruction.op() {
        // The start indices are values, so that only the same instruction reads the same elements.
        Op::DynamicSlice(_) | Op::Gather(_) => (user, position).hash(&mut hasher),
        Op::Concatenate(_) => position.hash(&mut hasher),
        _ => {}
    }
    hasher.finish()
}
