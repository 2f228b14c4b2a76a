//! Attention: a dot whose result passes through a softmax of rows into another dot.
//!
//! ```text
//! scores = dot(queries, keys)
//! logits = any elementwise function of scores, of masks and of other arrays
//! e      = exp(logits - max(logits))
//! result = dot(e / sum(e), values)
//! ```

use xla_hlo::ops::{BinaryOp, UnaryOp, simple_combiner};
use xla_hlo::{ArrayShape, Computation, ElementType, InstrId, Module, Op, Scalar};

use crate::analysis::elements::{Cone, Dependence, UnitDims, is_cheap, moved_dims};

/// Instructions of an attention in a computation.
#[derive(Clone, Debug)]
pub struct Attention {
    /// The dot of queries and keys.
    pub scores: InstrId,
    /// Index of the queries among the operands of `scores`. The other operand holds the keys, and the softmax reduces
    /// its only free dimension.
    pub queries: usize,
    /// The softmax's operand.
    pub logits: InstrId,
    /// Maps each dimension of the logits to the dimension of the scores; `None` for a dimension of extent 1 that the
    /// scores lack.
    pub logit_dims: Vec<Option<usize>>,
    /// The dot of probabilities and values.
    pub result: InstrId,
    /// Index of the probabilities among the operands of `result`; the other operand holds the values.
    pub probabilities: usize,
    /// Maps each row dimension of the result to the index of the row dimension of the scores. Dimensions of extent 1
    /// are left out.
    pub rows: Vec<usize>,
    /// Whether a value of the softmax is rounded to a 16-bit float.
    pub narrow: bool,
    /// The dots, all instructions on the path from the scores to the result, and cheap instructions that these read.
    pub members: Vec<InstrId>,
}

impl Attention {
    /// Returns the attention whose last dot is `result`; `None` if there is none or an instruction outside of it reads
    /// one of its parts.
    pub fn find(module: &Module, graph: &Computation, result: InstrId) -> Option<Attention> {
        let Op::Dot(_) = graph[result].op() else { return None };
        (0..2).find_map(|probabilities| {
            let finder = Finder { module, graph, members: vec![result], inner: Vec::new(), narrow: false };
            finder.find(result, probabilities)
        })
    }
}

struct Finder<'a> {
    module: &'a Module,
    graph: &'a Computation,
    members: Vec<InstrId>,
    /// Members that only other members may read.
    inner: Vec<InstrId>,
    /// Whether a value on the path is rounded to a 16-bit float.
    narrow: bool,
}

/// Instructions of a softmax.
struct Softmax {
    logits: InstrId,
    /// Dimension of the logits that the softmax reduces.
    along: usize,
}

impl<'a> Finder<'a> {
    fn find(mut self, result: InstrId, probabilities: usize) -> Option<Attention> {
        let graph = self.graph;
        let (quotient, order) = self.through_transposes(graph[result].operand(probabilities));
        let softmax = self.softmax(quotient)?;
        let (scores, logit_dims) = self.scores(softmax.logits)?;
        let dims: Vec<Option<usize>> = order.iter().map(|d| d.and_then(|d| logit_dims[d])).collect();
        let queries = self.queries(scores, logit_dims[softmax.along]?)?;
        let rows = self.rows(result, probabilities, (scores, queries), &dims)?;
        let is_inner = |id: &InstrId| {
            let users = graph[*id].users();
            *id != graph.root() && users.iter().all(|user| self.members.contains(user))
        };
        // Values that depend on the probabilities would be computed for each tile.
        let values = graph[result].operand(1 - probabilities);
        let is_whole = !self.members.contains(&values) && self.inner.iter().all(is_inner);
        is_whole.then_some(Attention {
            scores,
            queries,
            logits: softmax.logits,
            logit_dims,
            result,
            probabilities,
            rows,
            narrow: self.narrow,
            members: self.members,
        })
    }

    fn array(&self, id: InstrId) -> Option<&'a ArrayShape> {
        self.graph[id].shape().as_array().filter(|array| array.is_static())
    }

    fn member(&mut self, id: InstrId) {
        for list in [&mut self.members, &mut self.inner] {
            if !list.contains(&id) {
                list.push(id);
            }
        }
    }

    /// Skips converts between floats of 16 bits or more and returns their operand.
    fn through_converts(&mut self, mut id: InstrId) -> InstrId {
        while let Op::Convert(_) = self.graph[id].op() {
            let operand = self.graph[id].operand(0);
            let is_float =
                |id| self.graph[id].shape().element_type().is_some_and(|ty| ty.is_float() && ty.bit_width() >= 16);
            if !is_float(id) || !is_float(operand) {
                break;
            }
            self.narrow |= self.is_narrow(id);
            self.member(id);
            id = operand;
        }
        id
    }

    /// Skips transposes and reshapes that only add or drop dimensions of extent 1. Returns the operand and maps each
    /// dimension of `id` to a dimension of the operand.
    fn through_transposes(&mut self, id: InstrId) -> (InstrId, UnitDims) {
        let mut id = self.through_converts(id);
        let mut order: UnitDims = (0..self.array(id).map_or(0, ArrayShape::rank)).map(Some).collect();
        while let Some(dims) = moved_dims(self.graph, id) {
            order.iter_mut().for_each(|d| *d = d.and_then(|d| dims[d]));
            self.member(id);
            let operand = self.graph[id].operand(0);
            id = self.through_converts(operand);
        }
        (id, order)
    }

    fn softmax(&mut self, quotient: InstrId) -> Option<Softmax> {
        let [exponentials, sums] = self.binary(quotient, BinaryOp::Divide)?;
        let exponential = self.through_converts(exponentials);
        let Op::Unary(unary) = self.graph[exponential].op() else { return None };
        if unary.op != UnaryOp::Exponential {
            return None;
        }
        self.member(exponential);
        let rank = self.array(exponential)?.rank();
        let (sum, along) = self.broadcast(sums, rank)?;
        let summed = self.reduced(sum, BinaryOp::Add, along)?;
        let difference = self.graph[exponential].operand(0);
        let difference = self.through_converts(difference);
        let [logits, largest] = self.binary(difference, BinaryOp::Subtract)?;
        let (largest, same) = self.broadcast(largest, rank)?;
        let largest = self.finite(largest);
        let compared = self.reduced(largest, BinaryOp::Maximum, along)?;
        let logits = self.through_converts(logits);
        self.narrow |= [exponential, difference, quotient, sum, largest].iter().any(|&id| self.is_narrow(id));
        let types = [exponential, difference, quotient, sum, largest, logits];
        let known = types.iter().all(|&id| {
            let ty = self.graph[id].shape().element_type();
            matches!(ty, Some(ElementType::F32 | ElementType::BF16 | ElementType::F16))
        });
        let alike = same == along && summed == exponential && compared == logits;
        (alike && known).then_some(Softmax { logits, along })
    }

    fn is_narrow(&self, id: InstrId) -> bool {
        self.graph[id].shape().element_type().is_some_and(|ty| ty.bit_width() < 32)
    }

    fn binary(&mut self, id: InstrId, wanted: BinaryOp) -> Option<[InstrId; 2]> {
        let Op::Binary(binary) = self.graph[id].op() else { return None };
        if binary.op != wanted {
            return None;
        }
        self.member(id);
        Some([self.graph[id].operand(0), self.graph[id].operand(1)])
    }

    /// Returns the value that a broadcast repeats along the only dimension that it lacks, and that dimension.
    /// Transposes before the broadcast may permute the value's dimensions.
    fn broadcast(&mut self, id: InstrId, rank: usize) -> Option<(InstrId, usize)> {
        let id = self.through_converts(id);
        let Op::Broadcast(broadcast) = self.graph[id].op() else { return None };
        let dims = self.array(id)?.dims();
        let mut lacking = (0..rank).filter(|d| dims[*d] != 1 && !broadcast.dimensions.contains(d));
        let (Some(along), None) = (lacking.next(), lacking.next()) else { return None };
        if dims.len() != rank {
            return None;
        }
        self.member(id);
        let (operand, order) = self.through_transposes(self.graph[id].operand(0));
        let places = order.into_iter().zip(&broadcast.dimensions).filter(|(_, to)| dims[**to] != 1);
        let mut places = places.map(|(from, &to)| Some((from?, to))).collect::<Option<Vec<_>>>()?;
        places.sort_unstable();
        places.is_sorted_by_key(|&(_, to)| to).then_some((operand, along))
    }

    /// Skips a `select` that replaces a row's maximum by 0 if it is not finite. The result is the same: a row with an
    /// infinite maximum becomes NaN in both cases, and so do its products with the values.
    fn finite(&mut self, id: InstrId) -> InstrId {
        let graph = self.graph;
        let Op::Select(_) = graph[id].op() else { return id };
        let [test, largest, other] = [0, 1, 2].map(|number| graph[id].operand(number));
        let is_test = matches!(graph[test].op(), Op::Unary(unary) if unary.op == UnaryOp::IsFinite);
        let zero = match graph[other].op() {
            Op::Broadcast(_) => graph[other].operand(0),
            _ => other,
        };
        if !is_test || graph[test].operand(0) != largest || !self.is_constant(zero, 0.0) {
            return id;
        }
        self.member(id);
        self.member(test);
        // Instructions outside of the attention may read these.
        self.members.extend([other, zero].iter().filter(|id| !self.members.contains(id)).copied().collect::<Vec<_>>());
        self.through_converts(largest)
    }

    fn is_constant(&self, id: InstrId, wanted: f64) -> bool {
        let Op::Constant(constant) = self.graph[id].op() else { return false };
        constant.literal.uniform() == Some(Scalar::Float(wanted))
    }

    /// Returns the operand of a reduction along one dimension. It may also reduce dimensions of extent 1.
    fn reduced(&mut self, id: InstrId, wanted: BinaryOp, along: usize) -> Option<InstrId> {
        let graph = self.graph;
        let Op::Reduce(reduce) = graph[id].op() else { return None };
        let neutral = if wanted == BinaryOp::Add { 0.0 } else { f64::NEG_INFINITY };
        let [operand, initial] = graph[id].operands()[..] else { return None };
        let dims = self.array(operand)?.dims();
        let reduced = reduce.dimensions.iter().copied().filter(|&d| dims[d] != 1);
        let known = simple_combiner(&self.module[reduce.computation]) == Some(wanted)
            && reduced.eq([along])
            && self.is_constant(initial, neutral);
        if !known {
            return None;
        }
        self.member(id);
        if !self.members.contains(&initial) {
            self.members.push(initial);
        }
        Some(self.through_converts(operand))
    }

    /// Returns the dot that the logits are an elementwise function of, and maps each dimension of the logits to one of
    /// the dot.
    fn scores(&mut self, logits: InstrId) -> Option<(InstrId, UnitDims)> {
        let cone = Cone::new(self.graph, logits)?;
        let scores = cone.dots().next()?;
        let (dims, known) = cone.dims(scores)?;
        self.add_members(logits, scores, &known);
        Some((scores, dims))
    }

    /// Adds the instructions that depend on the scores, and cheap ones that these read.
    fn add_members(&mut self, logits: InstrId, scores: InstrId, known: &Dependence) {
        let graph = self.graph;
        let mut work = vec![logits];
        while let Some(id) = work.pop() {
            let depends = known.get(&id).is_some_and(Option::is_some);
            if depends {
                self.member(id);
            } else if known.contains_key(&id) && is_cheap(graph, id) {
                self.members.push(id);
            } else {
                continue;
            }
            if id != scores {
                work.extend(graph[id].operands().iter().filter(|o| !self.members.contains(o)).copied());
                work.sort_unstable();
                work.dedup();
            }
        }
    }

    /// Returns the index of the operand that holds the queries if the softmax reduces the only free dimension of the
    /// other operand.
    fn queries(&self, scores: InstrId, along: usize) -> Option<usize> {
        let graph = self.graph;
        let Op::Dot(dot) = graph[scores].op() else { return None };
        let ranks = [self.array(graph[scores].operand(0))?.rank(), self.array(graph[scores].operand(1))?.rank()];
        let sides = dot.dims.operands(ranks);
        let (batch, rank) = (sides[0].batch.len(), self.array(scores)?.rank());
        let single = sides.iter().all(|side| side.contracting.len() == 1);
        match along {
            _ if !single => None,
            _ if along + 1 == rank && sides[1].free.len() == 1 => Some(0),
            _ if along == batch && sides[0].free.len() == 1 => Some(1),
            _ => None,
        }
    }

    /// Returns the order of the result's rows if the second dot contracts the keys and keeps the order of the batch
    /// dimensions. `dims` maps the dimensions of the probabilities to those of the scores.
    fn rows(
        &self,
        result: InstrId,
        probabilities: usize,
        (scores, queries): (InstrId, usize),
        dims: &[Option<usize>],
    ) -> Option<Vec<usize>> {
        let graph = self.graph;
        let (Op::Dot(first), Op::Dot(second)) = (graph[scores].op(), graph[result].op()) else { return None };
        let ranks = [0, 1].map(|number| self.array(graph[result].operand(number)).map(ArrayShape::rank));
        let sides = second.dims.operands([ranks[0]?, ranks[1]?]);
        let (own, values) = (&sides[probabilities], &sides[1 - probabilities]);
        let batch = first.dims.lhs_batch.len();
        let extents = self.array(scores)?.dims();
        let rank = extents.len();
        let (keys, rows) = match queries {
            0 => (rank - 1, batch..rank - 1),
            _ => (batch, batch + 1..rank),
        };
        // Dimensions of extent 1 may be added or dropped.
        let large = |d: &usize| extents[*d] != 1;
        let of = |own: &[usize]| own.iter().filter_map(|&d| dims[d]).filter(large).collect::<Vec<_>>();
        let rows: Vec<usize> = rows.filter(large).collect();
        let place = |d: &usize| rows.iter().position(|row| row == d);
        let order = of(&own.free).iter().map(place).collect::<Option<Vec<_>>>()?;
        let fits = own.contracting.len() == 1
            && dims[own.contracting[0]] == Some(keys)
            && own.batch.len() == batch
            && of(own.batch).into_iter().eq((0..batch).filter(large))
            && (0..rows.len()).all(|row| order.contains(&row))
            && order.len() == rows.len()
            && values.free.len() == 1;
        fits.then_some(order)
    }
}
