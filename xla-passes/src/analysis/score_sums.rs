//! Sums over functions of attention scores, which avoid storing the full `[rows, columns]` score matrix.
//!
//! ```text
//! scores = dot(queries, keys), and dot(gradients, values), or one of them
//! f      = any elementwise function of scores, of masks, of statistics of rows and of other arrays
//! root   = dot(f, values), which contracts the keys of each query, or the queries of each key
//!        = reduce(f) along the same dimension
//! ```
//!
//! The maximum of an attention's logits has this form. So do the sum of its exponentials, its result computed from
//! both, and the gradients of queries, keys and values.

use xla_hlo::ops::{BinaryOp, Dot, simple_combiner};
use xla_hlo::{Computation, InstrId, Module, Op, Scalar};

use crate::analysis::elements::{Cone, Dependence, is_cheap};

/// Maximum number of dots that a function may read.
const MOST_SCORES: usize = 2;

/// The instructions of a sum in a computation.
#[derive(Clone, Debug)]
pub struct ScoreSum {
    /// The dot or reduction that computes the sum.
    pub root: InstrId,
    /// Index of the root's operand that is the function of scores.
    pub operand: usize,
    /// Combiner of the reduction, an addition or a maximum; an addition for a dot.
    pub combiner: BinaryOp,
    /// Dots that the function reads, one or two.
    pub scores: Vec<Scores>,
    /// Dimension of the function that is summed over: the columns of the scores.
    pub along: usize,
    /// Row dimensions of the function in the order that all scores share. Dimensions of extent 1 are left out.
    pub rows: Vec<usize>,
    /// The scores, the root, all instructions on the path between them, and cheap instructions that these read.
    pub members: Vec<InstrId>,
}

/// Scores that a function reads.
#[derive(Clone, Debug)]
pub struct Scores {
    /// The dot that computes the scores.
    pub dot: InstrId,
    /// Index of the dot's operand that has the rows; the other one has the columns.
    pub rows: usize,
    /// Maps each dimension of the function to a dimension of the dot; `None` for a dimension of extent 1.
    pub dims: Vec<Option<usize>>,
}

impl ScoreSum {
    /// Returns the sum that a dot or a reduction computes; `None` for all others. Instructions outside of it may read
    /// its parts.
    pub fn find(module: &Module, graph: &Computation, root: InstrId) -> Option<ScoreSum> {
        match graph[root].op() {
            Op::Dot(dot) => (0..2).find_map(|operand| of_dot(graph, (root, dot), operand)),
            Op::Reduce(_) => of_reduction(module, graph, root),
            _ => None,
        }
    }
}

/// Dimensions of a function that a root keeps and sums over. Dimensions of extent 1 are left out.
struct Sum {
    along: usize,
    /// Batch dimensions of the root, if it distinguishes them from rows.
    batch: Option<Vec<usize>>,
    /// Rows in the root's order, if it has one.
    rows: Option<Vec<usize>>,
}

fn of_dot(graph: &Computation, (root, dot): (InstrId, &Dot), operand: usize) -> Option<ScoreSum> {
    let arrays = [0, 1].map(|number| graph[graph[root].operand(number)].shape().as_array());
    let sides = dot.dims.operands([arrays[0]?.rank(), arrays[1]?.rank()]);
    let (own, values) = (&sides[operand], &sides[1 - operand]);
    let dims = arrays[operand]?.dims();
    let large = |list: &[usize]| list.iter().copied().filter(|&d| dims[d] != 1).collect::<Vec<_>>();
    let [along] = large(own.contracting)[..] else { return None };
    let sum = Sum { along, batch: Some(large(own.batch)), rows: Some(large(&own.free)) };
    let found = found(graph, (root, operand), sum, BinaryOp::Add)?;
    // The other operand is stored in memory in rows.
    let other = graph[root].operand(1 - operand);
    (values.free.len() == 1 && !found.members.contains(&other)).then_some(found)
}

fn of_reduction(module: &Module, graph: &Computation, root: InstrId) -> Option<ScoreSum> {
    let Op::Reduce(reduce) = graph[root].op() else { return None };
    let [operand, initial] = graph[root].operands()[..] else { return None };
    let combiner = simple_combiner(&module[reduce.computation])?;
    let neutral = match combiner {
        BinaryOp::Add => 0.0,
        BinaryOp::Maximum => f64::NEG_INFINITY,
        _ => return None,
    };
    let Op::Constant(constant) = graph[initial].op() else { return None };
    let dims = graph[operand].shape().as_array()?.dims();
    let mut along = reduce.dimensions.iter().copied().filter(|&d| dims[d] != 1);
    let (Some(along), None) = (along.next(), along.next()) else { return None };
    if constant.literal.uniform() != Some(Scalar::Float(neutral)) {
        return None;
    }
    let mut found = found(graph, (root, 0), Sum { along, batch: None, rows: None }, combiner)?;
    if !found.members.contains(&initial) {
        found.members.push(initial);
    }
    Some(found)
}

/// Returns the sum if the root's operand is a function of scores with these rows and columns.
fn found(graph: &Computation, (root, operand): (InstrId, usize), sum: Sum, combiner: BinaryOp) -> Option<ScoreSum> {
    let function = graph[root].operand(operand);
    let dims = graph[function].shape().as_array().filter(|array| array.is_static())?.dims();
    let cone = Cone::new(graph, function)?;
    let (mut scores, mut known) = (Vec::new(), Vec::new());
    let mut rows = sum.rows;
    for dot in cone.dots() {
        let Some((dims_of_dot, dependence)) = cone.dims(dot) else { continue };
        let sides = Sides::new(graph, dot, dims_of_dot[sum.along]?)?;
        let place = |d: usize| dims_of_dot[d].map_or(0, |d| d);
        let (batch, mut own): (Vec<usize>, Vec<usize>) =
            (0..dims.len()).filter(|&d| dims[d] != 1 && d != sum.along).partition(|&d| place(d) < sides.batch);
        own.sort_unstable_by_key(|&d| place(d));
        let same_batch = sum.batch.as_ref().is_none_or(|of_root| of_root.iter().all(|d| batch.contains(d)));
        if !same_batch || *rows.get_or_insert_with(|| own.clone()) != own {
            return None;
        }
        scores.push(Scores { dot, rows: sides.rows, dims: dims_of_dot });
        known.push(dependence);
    }
    let rows = rows?;
    if scores.is_empty() || scores.len() > MOST_SCORES {
        return None;
    }
    let mut members = members(graph, function, &known);
    // Operands of the scores are stored in memory.
    let apart = scores.iter().all(|s| graph[s.dot].operands().iter().all(|operand| !members.contains(operand)));
    members.push(root);
    apart.then_some(ScoreSum { root, operand, combiner, scores, along: sum.along, rows, members })
}

/// Operands of a dot that computes scores.
struct Sides {
    /// Index of the operand that has the rows; the other one has the columns.
    rows: usize,
    /// Number of batch dimensions of the result, which are its first dimensions.
    batch: usize,
}

impl Sides {
    /// Returns the operands of a dot. Dimension `along` must be the only free dimension of one operand that is larger
    /// than 1; the other operand has the rows.
    fn new(graph: &Computation, dot: InstrId, along: usize) -> Option<Sides> {
        let Op::Dot(op) = graph[dot].op() else { return None };
        let ranks = [0, 1].map(|number| graph[graph[dot].operand(number)].shape().as_array().map(|a| a.rank()));
        let sides = op.dims.operands([ranks[0]?, ranks[1]?]);
        let batch = sides[0].batch.len();
        let columns = match along.checked_sub(batch)? {
            place if place < sides[0].free.len() => 0,
            _ => 1,
        };
        let extents = graph[dot].shape().as_array()?.dims();
        let first = batch + if columns == 0 { 0 } else { sides[0].free.len() };
        let alone = (first..first + sides[columns].free.len()).all(|d| d == along || extents[d] == 1);
        let single = sides.iter().all(|side| side.contracting.len() == 1);
        (alone && single && !sides[1 - columns].free.is_empty()).then_some(Sides { rows: 1 - columns, batch })
    }
}

/// Returns all instructions between the scores and `function`, both included, and cheap ones that these read.
fn members(graph: &Computation, function: InstrId, known: &[Dependence]) -> Vec<InstrId> {
    let depends = |id: InstrId| known.iter().any(|known| known.get(&id).is_some_and(Option::is_some));
    let (mut members, mut next) = (vec![function], 0);
    while let Some(&id) = members.get(next) {
        next += 1;
        if let Op::Dot(_) = graph[id].op() {
            continue;
        }
        for &operand in graph[id].operands() {
            if !members.contains(&operand) && (depends(operand) || is_cheap(graph, operand)) {
                members.push(operand);
            }
        }
    }
    members
}
