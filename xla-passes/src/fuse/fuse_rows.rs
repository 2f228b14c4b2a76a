//! Row fusion: merges reductions along rows and operations in the same row into one kernel.
//!
//! ```text
//! max = reduce(x), dims={1}            for each row:
//! e   = exponential(x - max)             max = reduction of x over the row
//! sum = reduce(e), dims={1}      ─>      sum = reduction of exp(x - max) over the row
//! out = e / sum                          out = exp(x - max) / sum for each element
//! ```
//!
//! Softmax, layer norm and their gradients have this form. The row is in the L1 cache for the second read, whereas
//! separate kernels would load it from memory each time.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use xla_hlo::ops::{Fusion, GetTupleElement, Parameter, Tuple};
use xla_hlo::{CompId, Computation, InstrId, Instruction, Module, Op, Result, Shape};

use super::access::is_elementwise;
use super::build::kind_of;
use super::order::TopologicalOrder;
use super::programs;
use crate::framework::explain::{FusionDecision, FusionReason};
use crate::rewrite::graph::{clone_with_operands, is_free, remove_dead};
use crate::{Pass, PassContext};

/// Merges kernels that iterate over the same rows. Runs after [`Fuse`](super::Fuse), if the target supports such
/// kernels.
pub struct FuseRows;

/// Minimum row length. Shorter rows are reduced as fast in a separate kernel.
const LEAST_COLUMNS: usize = 8;

impl Pass for FuseRows {
    fn name(&self) -> &'static str {
        "fuse-rows"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        if !cx.profile().fusion.row_kernels {
            return Ok(());
        }
        for program in programs(module) {
            // Consumers first, so that the users of a kernel are already merged.
            let mut order = TopologicalOrder::new(&module[program]);
            let mut producers = module[program].post_order();
            producers.reverse();
            for producer in producers {
                if module[program].get(producer).is_some() {
                    merge_into_users(module, program, producer, &mut order, cx)?;
                }
            }
        }
        Ok(())
    }
}

/// Loop structure of a row kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Rows {
    /// All loop dimensions.
    dims: Vec<usize>,
    /// Number of row dimensions; the remaining ones are columns.
    rows: usize,
}

impl Rows {
    /// Returns the rows of a reduction along trailing dimensions.
    fn of_reduction(computation: &Computation, reduce: InstrId) -> Option<Rows> {
        let Op::Reduce(op) = computation[reduce].op() else { return None };
        let shape = computation[computation[reduce].operand(0)].shape().as_array()?;
        let rows = shape.rank() - op.dimensions.len();
        let trailing = op.dimensions.iter().all(|&d| d >= rows);
        let columns: usize = shape.dims()[rows..].iter().product();
        (trailing && columns >= LEAST_COLUMNS).then(|| Rows { dims: shape.dims().to_vec(), rows })
    }

    /// Returns the rows of the first reduction along trailing dimensions in a kernel.
    pub(super) fn of_kernel(body: &Computation) -> Option<Rows> {
        body.ids().find_map(|id| Rows::of_reduction(body, id))
    }

    pub(super) fn is_full(&self, shape: &Shape) -> bool {
        shape.as_array().is_some_and(|a| a.dims() == self.dims)
    }

    fn is_row(&self, shape: &Shape) -> bool {
        let row = |s: &Shape| s.as_array().is_some_and(|a| a.dims() == &self.dims[..self.rows]);
        match shape {
            Shape::Tuple(elements) => elements.iter().all(row),
            other => row(other),
        }
    }
}

/// Merges a kernel into its users if both iterate over the same rows and one of them reduces them.
fn merge_into_users(
    module: &mut Module,
    program: CompId,
    producer: InstrId,
    order: &mut TopologicalOrder,
    cx: &PassContext<'_>,
) -> Result<()> {
    let Some(kernel) = Kernel::of(module, program, producer) else { return Ok(()) };
    let graph = &module[program];
    let users: Vec<InstrId> = graph[producer].users().to_vec();
    if matches!(graph[producer].shape(), Shape::Tuple(_)) {
        return Ok(());
    }
    for &user in &users {
        let Some(consumer) = Kernel::of(module, program, user) else { continue };
        let Some(rows) = Rows::of_kernel(&consumer.body).or_else(|| Rows::of_kernel(&kernel.body)) else { continue };
        let others: Vec<InstrId> = users.iter().copied().filter(|&u| u != user).collect();
        let keep = !others.is_empty() || module[program].root() == producer;
        let graph = &module[program];
        let merged = if keep && others.iter().any(|&other| order.reaches(graph, other, user)) {
            Err(FusionReason::Cycle)
        } else {
            merged_rows(producer, [&kernel, &consumer], keep, &rows, cx)
        };
        let reason = merged.as_ref().err().cloned().unwrap_or(FusionReason::SameRows);
        cx.explain(|| FusionDecision::new(FuseRows.name(), module, program, producer, user, reason));
        if let Ok(merged) = merged
            && cx.allow_rewrite(FuseRows.name())
        {
            return replace(module, program, producer, user, merged, keep, order).map(|_| ());
        }
    }
    Ok(())
}

/// Returns the merged kernel of a producer and one of its users, or the reason against it.
fn merged_rows(
    producer: InstrId,
    [kernel, consumer]: [&Kernel<'_>; 2],
    keep: bool,
    rows: &Rows,
    cx: &PassContext<'_>,
) -> std::result::Result<Kernel<'static>, FusionReason> {
    let (count, limit) = (kernel.body.len() + consumer.body.len(), cx.profile().fusion.max_row_instructions);
    if count > limit {
        return Err(FusionReason::TooManyInstructions { count, limit });
    }
    let merged = merged(producer, kernel, consumer, keep);
    if goes_row_by_row(&merged.body, rows) { Ok(merged) } else { Err(FusionReason::NotRowByRow) }
}

/// An operation or fusion as a computation with operands.
pub(super) struct Kernel<'a> {
    body: Cow<'a, Computation>,
    operands: Vec<InstrId>,
}

impl<'a> Kernel<'a> {
    /// Returns the kernel of an instruction; `None` if it is not a kernel or must not be changed.
    pub(super) fn of(module: &'a Module, program: CompId, id: InstrId) -> Option<Kernel<'a>> {
        let graph = &module[program];
        let instruction = &graph[id];
        if !is_free(instruction) {
            return None;
        }
        if let Op::Fusion(fusion) = instruction.op() {
            let body = &module[fusion.computation];
            // Dots inside of a kernel are computed in tiles with their own loops.
            let tiled = body.iter().any(|(id, i)| matches!(i.op(), Op::Dot(_)) && id != body.root());
            let plain = fusion.aliases.is_empty() && !tiled;
            return plain.then(|| Kernel { body: Cow::Borrowed(body), operands: instruction.operands().to_vec() });
        }
        let elementwise = is_elementwise(instruction.op()) || matches!(instruction.op(), Op::Broadcast(_));
        (elementwise || matches!(instruction.op(), Op::Reduce(_))).then(|| Kernel::alone(graph, id))
    }

    /// Returns the kernel of a single operation.
    pub(super) fn alone(graph: &Computation, id: InstrId) -> Kernel<'static> {
        let instruction = &graph[id];
        let mut body = Computation::new("fused_computation");
        let mut operands: Vec<InstrId> = Vec::new();
        let mut inside = Vec::new();
        for &operand in instruction.operands() {
            let number = operands.iter().position(|&o| o == operand).unwrap_or_else(|| {
                operands.push(operand);
                operands.len() - 1
            });
            if body.parameters().len() <= number {
                body.add(Instruction::new(Parameter { number }.into(), graph[operand].shape().clone(), []));
            }
            inside.push(body.parameters()[number]);
        }
        let root = body.add(clone_with_operands(instruction, inside));
        body.set_root(root);
        Kernel { body: Cow::Owned(body), operands }
    }
}

/// Inlines the producer's instructions into the consumer, in place of the parameter for its result.
pub(super) fn merged(fold: InstrId, producer: &Kernel<'_>, consumer: &Kernel<'_>, keep: bool) -> Kernel<'static> {
    let mut body = Computation::new("fused_computation");
    let mut operands: Vec<InstrId> = Vec::new();
    let mut parameters: HashMap<InstrId, InstrId> = HashMap::new();
    let mut parameter = |body: &mut Computation, operand: InstrId, shape: &Shape| {
        *parameters.entry(operand).or_insert_with(|| {
            operands.push(operand);
            body.add(Instruction::new(Parameter { number: operands.len() - 1 }.into(), shape.clone(), []))
        })
    };
    let mut copy = |body: &mut Computation, kernel: &Kernel<'_>, known: Option<InstrId>| {
        let mut map: HashMap<InstrId, InstrId> = HashMap::new();
        for id in kernel.body.post_order() {
            let instruction = &kernel.body[id];
            let new = match instruction.op() {
                Op::Parameter(p) => match (kernel.operands[p.number], known) {
                    (operand, Some(known)) if operand == fold => known,
                    (operand, _) => parameter(body, operand, instruction.shape()),
                },
                _ => {
                    let inside = instruction.operands().iter().map(|o| map[o]).collect();
                    body.add(clone_with_operands(instruction, inside))
                }
            };
            map.insert(id, new);
        }
        map[&kernel.body.root()]
    };
    let reduced = copy(&mut body, producer, None);
    let root = copy(&mut body, consumer, Some(reduced));
    let root = if keep { with_result(&mut body, root, reduced) } else { root };
    body.set_root(root);
    Kernel { body: Cow::Owned(body), operands }
}

/// Returns a tuple of the existing results and a further one.
fn with_result(body: &mut Computation, root: InstrId, more: InstrId) -> InstrId {
    let mut results = match (body[root].op(), body[root].shape().clone()) {
        (Op::Tuple(_), _) => {
            let results = body[root].operands().to_vec();
            // A root has no users, so that it can be removed. A dead tuple would not be a row of any kernel.
            body.remove(root).ok();
            results
        }
        // A reduction of several arrays.
        (_, Shape::Tuple(elements)) => {
            let element = |(index, shape): (usize, &Shape)| {
                body.add(Instruction::new(GetTupleElement { index }.into(), shape.clone(), [root]))
            };
            elements.iter().enumerate().map(element).collect()
        }
        _ => vec![root],
    };
    results.push(more);
    let shape = Shape::Tuple(results.iter().map(|&r| body[r].shape().clone()).collect());
    body.add(Instruction::new(Tuple.into(), shape, results))
}

/// Whether a kernel with these rows computes each reduction once per row: values that depend on a reduction are only
/// used in their own row.
pub(super) fn goes_row_by_row(body: &Computation, rows: &Rows) -> bool {
    let mut reduced: HashSet<InstrId> = HashSet::new();
    for id in body.post_order() {
        let instruction = &body[id];
        let operands = instruction.operands();
        let depends = operands.iter().any(|o| reduced.contains(o));
        let (full, row) = (rows.is_full(instruction.shape()), rows.is_row(instruction.shape()));
        let fits = match instruction.op() {
            Op::Reduce(_) => Rows::of_reduction(body, id).as_ref() == Some(rows),
            Op::Tuple(_) => id == body.root(),
            // Runs over several rows at once, so that it needs a separate kernel.
            Op::ReduceWindow(_) => false,
            _ if !depends => true,
            Op::Broadcast(b) => {
                let own_row = rows.is_row(body[operands[0]].shape()) && b.dimensions.iter().copied().eq(0..rows.rows);
                full && own_row
            }
            Op::GetTupleElement(_) => row,
            op => is_elementwise(op) && same_place(body, instruction, &reduced, full, row, rows),
        };
        if !fits {
            return false;
        }
        if depends || matches!(instruction.op(), Op::Reduce(_)) {
            reduced.insert(id);
        }
    }
    results(body).iter().all(|&r| rows.is_full(body[r].shape()) || rows.is_row(body[r].shape()))
}

/// Whether an elementwise operation on reduced values stays in its row.
fn same_place(
    body: &Computation,
    instruction: &Instruction,
    reduced: &HashSet<InstrId>,
    full: bool,
    row: bool,
    rows: &Rows,
) -> bool {
    let fits = |o: &InstrId| {
        let shape = body[*o].shape();
        !reduced.contains(o) || if full { rows.is_full(shape) } else { rows.is_row(shape) }
    };
    (full || row) && instruction.operands().iter().all(fits)
}

pub(super) fn results(body: &Computation) -> Vec<InstrId> {
    let root = &body[body.root()];
    if matches!(root.op(), Op::Tuple(_)) { root.operands().to_vec() } else { vec![body.root()] }
}

/// Replaces both kernels by the merged one. Returns its id.
pub(super) fn replace(
    module: &mut Module,
    program: CompId,
    fold: InstrId,
    consumer: InstrId,
    merged: Kernel<'static>,
    keep: bool,
    order: &mut TopologicalOrder,
) -> Result<InstrId> {
    let place = order.meet(&module[program], fold, consumer);
    let before = module[program][consumer].clone();
    let was_tuple = matches!(before.shape(), Shape::Tuple(_));
    let shape = merged.body.result_shape().clone();
    let results = results(&merged.body).len();
    let op =
        Fusion { kind: kind_of(&merged.body), computation: module.add(merged.body.into_owned()), aliases: Vec::new() };
    let graph = module.computation_mut(program);
    let fusion = Instruction::new(op.into(), shape.clone(), merged.operands)
        .with_name(before.name())
        .with_annotations(before.annotations().cloned().map(Box::new));
    let new = graph.add(fusion);
    let result = |graph: &mut Computation, index: usize| {
        let element = shape.as_tuple().and_then(|s| s.get(index)).cloned().unwrap_or(Shape::Token);
        graph.add(Instruction::new(GetTupleElement { index }.into(), element, [new]))
    };
    match (keep, was_tuple) {
        (false, _) => graph.replace_all_uses(consumer, new),
        (true, false) => {
            let first = result(graph, 0);
            graph.replace_all_uses(consumer, first);
        }
        // Users of a tuple read its elements, whose indices are unchanged.
        (true, true) => {
            for user in graph[consumer].users().to_vec() {
                graph.replace_operand(user, 0, new);
            }
        }
    }
    if keep {
        let last = result(graph, results - 1);
        graph.replace_all_uses(fold, last);
    }
    order.put(new, place);
    remove_fused(module, program, consumer)?;
    remove_fused(module, program, fold)?;
    Ok(new)
}

/// Removes an unused fusion or operation, and its computation.
fn remove_fused(module: &mut Module, program: CompId, id: InstrId) -> Result<()> {
    let Some(instruction) = module[program].get(id) else { return Ok(()) };
    let body = match instruction.op() {
        Op::Fusion(fusion) => Some(fusion.computation),
        _ => None,
    };
    let operands = instruction.operands().to_vec();
    module.computation_mut(program).remove(id)?;
    for operand in operands {
        remove_dead(module.computation_mut(program), operand)?;
    }
    body.map_or(Ok(()), |body| module.remove(body))
}
