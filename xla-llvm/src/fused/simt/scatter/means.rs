//! Methods for threads to apply a scatter's combiner to colliding updates.

use xla_hlo::ops::{BinaryOp, Op};
use xla_hlo::{Computation, ElementKind, ElementType, InstrId};

use crate::simt::Atomic;

/// Method for colliding updates of an element of one array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means {
    /// Atomic read-modify-write operation on each component of an element.
    Atomic(Atomic),
    /// Compare-and-swap loop.
    Exchange,
    /// The update of the last window wins.
    Last,
}

/// Returns the method for each array of these element types. `None` if the order of updates matters, or the result of
/// one array depends on another.
pub(crate) fn means(combiner: &Computation, types: &[ElementType]) -> Option<Vec<Means>> {
    let root = combiner.root();
    let results = match combiner[root].op() {
        Op::Tuple(_) => combiner[root].operands().to_vec(),
        _ => vec![root],
    };
    let (before, updates) = combiner.parameters().split_at(combiner.parameters().len() / 2);
    if [results.len(), before.len(), updates.len()] != [types.len(); 3] {
        return None;
    }
    let arguments = before.iter().copied().zip(updates.iter().copied());
    results
        .iter()
        .zip(arguments)
        .zip(types)
        .map(|((&result, both), &ty)| means_of(combiner, result, both, ty))
        .collect()
}

/// Returns the operation on each array's elements. `None` unless the combiner computes in the array's types or in wider
/// floats, so that combining an element with the identity returns the element unchanged.
pub(crate) fn lossless_operations(combiner: &Computation, types: &[ElementType]) -> Option<Vec<BinaryOp>> {
    let root = combiner.root();
    let results = match combiner[root].op() {
        Op::Tuple(_) => combiner[root].operands().to_vec(),
        _ => vec![root],
    };
    let is_lossless = |at: ElementType, ty: ElementType| {
        let is_wider = matches!(at, ElementType::F32 | ElementType::F64) && at.bit_width() > ty.bit_width();
        at == ty || is_wider && ty.kind() == ElementKind::Float
    };
    let operation = |(&result, &ty): (&InstrId, &ElementType)| {
        let Op::Binary(binary) = combiner[passed(combiner, result)].op() else { return None };
        let mut computed = combiner.ids().filter_map(|id| combiner[id].shape().element_type());
        computed.all(|at| types.contains(&at) && at.kind() != ty.kind() || is_lossless(at, ty)).then_some(binary.op)
    };
    results.iter().zip(types).map(operation).collect()
}

fn means_of(
    combiner: &Computation,
    result: InstrId,
    (before, update): (InstrId, InstrId),
    ty: ElementType,
) -> Option<Means> {
    if passed(combiner, result) == update {
        return Some(Means::Last);
    }
    // The operation may be computed in a wider type.
    let root = &combiner[passed(combiner, result)];
    let Op::Binary(binary) = root.op() else { return None };
    let &[x, y] = root.operands() else { return None };
    let takes_each = |x: InstrId, y: InstrId| (x, y) == (before, update) || (y, x) == (before, update);
    if !(is_order_free(binary.op) && takes_each(passed(combiner, x), passed(combiner, y))) {
        return None;
    }
    let is_direct = combiner[result].op() == root.op() && takes_each(x, y);
    match atomic(binary.op, ty).filter(|_| is_direct) {
        Some(atomic) => Some(Means::Atomic(atomic)),
        None => (ty.byte_width() <= 8).then_some(Means::Exchange),
    }
}

/// Returns the atomic operation that is equivalent to `op` for an element type.
fn atomic(op: BinaryOp, ty: ElementType) -> Option<Atomic> {
    if !matches!(ty.real_part().bit_width(), 32 | 64) {
        return None;
    }
    let is_signed = ty.kind() == ElementKind::Signed;
    let is_integer = is_signed || ty.kind() == ElementKind::Unsigned;
    Some(match op {
        BinaryOp::Add => Atomic::Add,
        BinaryOp::And if is_integer => Atomic::And,
        BinaryOp::Or if is_integer => Atomic::Or,
        BinaryOp::Xor if is_integer => Atomic::Xor,
        BinaryOp::Maximum if is_signed => Atomic::Maximum,
        BinaryOp::Minimum if is_signed => Atomic::Minimum,
        BinaryOp::Maximum if is_integer => Atomic::MaximumUnsigned,
        BinaryOp::Minimum if is_integer => Atomic::MinimumUnsigned,
        _ => return None,
    })
}

/// Returns whether an operation is associative and commutative.
fn is_order_free(op: BinaryOp) -> bool {
    use BinaryOp::{Add, And, Maximum, Minimum, Multiply, Or, Xor};
    matches!(op, Add | Multiply | Maximum | Minimum | And | Or | Xor)
}

/// Returns the instruction whose value `id` forwards, through copies, reshapes, and conversions between float types.
pub(crate) fn passed(graph: &Computation, mut id: InstrId) -> InstrId {
    let is_float = |id: InstrId| graph[id].shape().element_type().is_some_and(|ty| ty.kind() == ElementKind::Float);
    loop {
        let instruction = &graph[id];
        match (instruction.op(), instruction.operands()) {
            (Op::Copy(_) | Op::Reshape(_), &[operand]) => id = operand,
            (Op::Convert(_), &[operand]) if is_float(id) && is_float(operand) => id = operand,
            _ => return id,
        }
    }
}
