//! Elementwise functions: each element of the value depends on one element of each input, at the same index up to a
//! permutation of the dimensions.

use std::collections::HashMap;

use xla_hlo::ops::{Family, Transpose};
use xla_hlo::{ArrayShape, Computation, InstrId, Op};

use crate::analysis::op_cost::{EXPENSIVE, element_cost};

/// Maximum number of instructions of a function.
const MOST_INSTRUCTIONS: usize = 96;

/// Maps each dimension of a value to a dimension of another value; `None` for a dimension of extent 1 that the other
/// value lacks.
pub(crate) type UnitDims = Vec<Option<usize>>;

/// The elementwise instructions that a value is computed from, transitively, and the other values that these read.
pub(crate) struct Cone<'a> {
    graph: &'a Computation,
    /// Instructions of the cone; the value itself is the first.
    pub ids: Vec<InstrId>,
}

/// Map from the dimensions of each visited value to dimensions of the origin; `None` if the value does not depend on
/// it.
pub(crate) type Dependence = HashMap<InstrId, Option<UnitDims>>;

impl<'a> Cone<'a> {
    /// Returns the cone of a value; `None` if it has more than `MOST_INSTRUCTIONS` instructions.
    pub fn new(graph: &'a Computation, value: InstrId) -> Option<Cone<'a>> {
        let (mut ids, mut next) = (vec![value], 0);
        while let Some(&id) = ids.get(next) {
            next += 1;
            if is_elementwise(graph, id) {
                let new = graph[id].operands().iter().filter(|o| !ids.contains(o)).copied().collect::<Vec<_>>();
                ids.extend(new);
            }
            if ids.len() > MOST_INSTRUCTIONS {
                return None;
            }
        }
        Some(Cone { graph, ids })
    }

    /// Iterates over the dots that the cone starts from, nearest first.
    pub fn dots(&self) -> impl Iterator<Item = InstrId> {
        let rank = |id: InstrId| self.graph[id].shape().as_array().map_or(0, ArrayShape::rank);
        self.ids.iter().copied().filter(move |&id| matches!(self.graph[id].op(), Op::Dot(_)) && rank(id) > 1)
    }

    /// Maps each dimension of the value to a dimension of `origin`, and the same for all values in between. `None` if
    /// the value is not an elementwise function of `origin`.
    pub fn dims(&self, origin: InstrId) -> Option<(UnitDims, Dependence)> {
        let rank = self.graph[origin].shape().as_array()?.rank();
        let mut known = HashMap::from([(origin, Some((0..rank).map(Some).collect()))]);
        let dims = self.trace(self.ids[0], &mut known)??;
        Some((dims, known))
    }

    /// Maps each dimension of a value to a dimension of the origin; `Some(None)` if the value does not depend on the
    /// origin. `None` if it is not an elementwise function of it. The recursion is at most as deep as the cone is
    /// large.
    fn trace(&self, id: InstrId, known: &mut Dependence) -> Option<Option<UnitDims>> {
        if let Some(known) = known.get(&id) {
            return Some(known.clone());
        }
        let graph = self.graph;
        let mut found: Option<UnitDims> = None;
        if self.ids.contains(&id) && is_elementwise(graph, id) {
            for &operand in graph[id].operands() {
                let Some(dims) = self.trace(operand, known)? else { continue };
                let dims = match graph[id].op() {
                    _ if moved_dims(graph, id).is_some() => {
                        moved_dims(graph, id)?.into_iter().map(|d| d.and_then(|d| dims[d])).collect()
                    }
                    op if op.opcode().family() == Family::Elementwise => dims,
                    _ => return None,
                };
                if dims.len() != graph[id].shape().as_array()?.rank()
                    || found.as_ref().is_some_and(|found| *found != dims)
                {
                    return None;
                }
                found = Some(dims);
            }
        }
        known.insert(id, found.clone());
        Some(found)
    }
}

/// Maps each dimension of a transpose, or of a reshape that adds or drops dimensions of extent 1, to a dimension of the
/// operand.
pub(crate) fn moved_dims(graph: &Computation, id: InstrId) -> Option<UnitDims> {
    match graph[id].op() {
        Op::Transpose(Transpose { permutation, .. }) => Some(permutation.iter().copied().map(Some).collect()),
        Op::Reshape(_) | Op::Bitcast(_) => {
            let (to, from) = (graph[id].shape().as_array()?, graph[graph[id].operand(0)].shape().as_array()?);
            let large = |array: &ArrayShape| (0..array.rank()).filter(|&d| array.dims()[d] != 1).collect::<Vec<_>>();
            let (ours, theirs) = (large(to), large(from));
            let same = ours.iter().map(|&d| to.dims()[d]).eq(theirs.iter().map(|&d| from.dims()[d]));
            let mut places = theirs.into_iter();
            (same && to.element_type() == from.element_type())
                .then(|| (0..to.rank()).map(|d| if ours.contains(&d) { places.next() } else { None }).collect())
        }
        _ => None,
    }
}

/// Whether each element of a value is computed from at most one element of each operand.
pub(crate) fn is_elementwise(graph: &Computation, id: InstrId) -> bool {
    let op = graph[id].op();
    let moves = matches!(op, Op::Broadcast(_) | Op::Iota(_)) || moved_dims(graph, id).is_some();
    let scalar = matches!(op, Op::Constant(constant) if constant.literal.array_shape().element_count() == 1);
    let array = graph[id].shape().as_array().is_some_and(ArrayShape::is_static);
    array && (moves || scalar || op.opcode().family() == Family::Elementwise)
}

/// Whether a value is cheaper to compute than to read from memory.
pub(crate) fn is_cheap(graph: &Computation, id: InstrId) -> bool {
    let ty = graph[id].shape().element_type();
    let transposed = matches!(graph[id].op(), Op::Transpose(_));
    is_elementwise(graph, id) && !transposed && ty.is_some_and(|ty| element_cost(graph[id].op(), ty) < EXPENSIVE)
}
