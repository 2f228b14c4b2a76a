//! Reduction splitting: a large reduction with few results becomes reductions of its parts and a reduction of these
//! results.
//!
//! ```text
//! reduce(x[n], init)             p = reduce(reshape(x)[P,n/P], neutral), dims={1}
//!                         ─>     reduce(p, init), dims={0}
//! ```
//!
//! A combiner of several operations has no known neutral value. A boolean is then reduced together with the data. It
//! states whether the accumulator holds a value, so that the reductions of parts can start empty.

use std::collections::HashMap;

use xla_hlo::ops::{Binary, BinaryOp, Parameter, Reduce, Select, Tuple, combiner_identity, simple_combiner};
use xla_hlo::{ArrayShape, CompId, Computation, ElementType, InstrId, Instruction, Module, Op, Result, Scalar, Shape};

use crate::rewrite::builder::Inserter;
use crate::rewrite::graph;
use crate::{Pass, PassContext, TargetProfile};

/// Splits reductions that have too few results for a target's threads. If the combiner is one associative and
/// commutative operation with a neutral value, the order of the reduction is unspecified, so that floats may round
/// differently. With other combiners, the order is kept and associativity is assumed, as HLO requires. These are only
/// split if [`TargetProfile::splits_any_reduction`] is set.
pub struct SplitReductions;

/// Number of parts per thread, for load balancing.
const PARTS_PER_THREAD: usize = 4;
/// Number of results that one thread reduces together in a reduction across the innermost dimension.
const SIDE_BY_SIDE: usize = 512;

impl Pass for SplitReductions {
    fn name(&self) -> &'static str {
        "split-reductions"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        if cx.profile().threads <= 1 {
            return Ok(());
        }
        let mut begun = HashMap::new();
        for program in module.post_order() {
            for id in module[program].post_order() {
                if let Some(split) = ReductionSplit::of(module, program, id, cx.profile())
                    && cx.allow_rewrite(self.name())
                {
                    let result = split.write(&mut Inserter::new(module, program), &mut begun)?;
                    let computation = module.computation_mut(program);
                    computation.replace_all_uses(id, result);
                    computation.remove(id)?;
                }
            }
        }
        Ok(())
    }
}

/// A reduction and its split.
struct ReductionSplit {
    arrays: Vec<InstrId>,
    inits: Vec<InstrId>,
    types: Vec<ElementType>,
    combiner: CompId,
    /// Combiner's operation and neutral value; `None` for several arrays or other combiners.
    simple: Option<(BinaryOp, Scalar)>,
    /// Dimensions of the arrays, and the reduced dimensions among them, in order.
    dims: Vec<usize>,
    reduced: Vec<usize>,
    cut: DimensionCut,
}

/// The dimension that is cut, the number of parts, and their size. There may be a remainder.
struct DimensionCut {
    dimension: usize,
    parts: usize,
    size: usize,
}

impl ReductionSplit {
    fn of(module: &Module, program: CompId, id: InstrId, profile: &TargetProfile) -> Option<ReductionSplit> {
        let computation = &module[program];
        let instruction = &computation[id];
        let Op::Reduce(reduce) = instruction.op() else { return None };
        let (arrays, inits) = instruction.operands().split_at(instruction.operands().len() / 2);
        let array = |&id: &InstrId| computation[id].shape().as_array();
        let shapes = arrays.iter().map(array).collect::<Option<Vec<&ArrayShape>>>()?;
        let types: Vec<ElementType> = shapes.iter().map(|shape| shape.element_type()).collect();
        let results = instruction.shape().leaves();
        let results = results.iter().map(|(_, leaf)| leaf.as_array()).collect::<Option<Vec<&ArrayShape>>>()?;
        let inits_types = inits.iter().map(|id| array(id).map(ArrayShape::element_type)).collect::<Option<Vec<_>>>()?;
        let of_one_type = results.iter().map(|result| result.element_type()).eq(types.iter().copied());
        let is_static = shapes.iter().all(|shape| shape.is_static());
        if !of_one_type || inits_types != types || !is_static || !graph::is_free(instruction) {
            return None;
        }
        let simple = simple(&module[reduce.computation], &types);
        if simple.is_none() && !(profile.splits_any_reduction && may_be_associative(&module[reduce.computation])) {
            return None;
        }
        let dims = shapes.first()?.dims();
        let innermost = dims.iter().rposition(|&d| d > 1)?;
        let side_by_side = if reduce.dimensions.contains(&innermost) { 1 } else { dims[innermost].min(SIDE_BY_SIDE) };
        let apart = results.first()?.element_count() / side_by_side;
        let bytes = shapes.iter().map(|shape| shape.byte_size()).max()?;
        // A thread reduces an array that fits into its cache before another thread has started.
        let wanted = PARTS_PER_THREAD * profile.threads;
        if bytes < profile.l2_bytes || apart >= wanted {
            return None;
        }
        // The launch that reduces the parts must not take longer than one thread takes for a whole result.
        let one_thread = profile.memory_bandwidth / profile.threads as f64;
        if bytes as f64 / (apart.max(1) as f64 * one_thread) < profile.launch_seconds {
            return None;
        }
        let wanted = wanted.div_ceil(apart.max(1));
        let mut reduced = reduce.dimensions.clone();
        reduced.sort_unstable();
        let one_dimension = simple.is_some().then(|| DimensionCut::longest(dims, &reduced, wanted)).flatten();
        let (dims, reduced, cut) = match one_dimension {
            Some(cut) => (dims.to_vec(), reduced, cut),
            None => {
                // No single dimension is long enough, but adjacent reduced dimensions may be together.
                let (dims, reduced) = merged(dims, &reduced);
                let cut = match simple {
                    Some(_) => DimensionCut::longest(&dims, &reduced, wanted),
                    None => DimensionCut::outermost(&dims, &reduced, wanted),
                };
                (dims, reduced, cut?)
            }
        };
        let (arrays, inits) = (arrays.to_vec(), inits.to_vec());
        Some(ReductionSplit { arrays, inits, types, combiner: reduce.computation, simple, dims, reduced, cut })
    }

    /// Adds the reductions of the parts and the reduction of their results. Returns the result. Combiners that can
    /// start empty are added once and cached in `begun`.
    fn write(&self, at: &mut Inserter<'_>, begun: &mut HashMap<CompId, CompId>) -> Result<InstrId> {
        let mut arrays = self.arrays.clone();
        for array in &mut arrays {
            *array = at.reshape(*array, &self.dims)?;
        }
        match self.simple {
            Some((op, neutral)) => self.write_simple(at, arrays[0], op, neutral),
            None => self.write_in_order(at, &arrays, begun),
        }
    }

    fn write_simple(&self, at: &mut Inserter<'_>, array: InstrId, op: BinaryOp, neutral: Scalar) -> Result<InstrId> {
        let DimensionCut { dimension, .. } = self.cut;
        let neutral = at.scalar(self.types[0], neutral)?;
        let [body, rest] = self.cut.pieces(at, array)?;
        // The dimension of the parts is kept; the one inside of a part is reduced with the others.
        let within: Vec<usize> = self.reduced.iter().map(|&d| if d >= dimension { d + 1 } else { d }).collect();
        let partial = self.reduce(at, within, &[body.unwrap_or(array)], &[neutral], self.combiner)?;
        let place = (0..dimension).filter(|d| !self.reduced.contains(d)).count();
        let all = self.reduce(at, vec![place], &[partial], &self.inits, self.combiner)?;
        let Some(rest) = rest else { return Ok(all) };
        let rest = self.reduce(at, self.reduced.clone(), &[rest], &[neutral], self.combiner)?;
        at.binary(op, all, rest)
    }

    /// Adds the reductions like [`write_simple`](Self::write_simple), but with reductions that start empty. Reduced
    /// dimensions outside of the cut one are kept until the parts are reduced, so that elements are combined in order.
    fn write_in_order(
        &self,
        at: &mut Inserter<'_>,
        arrays: &[InstrId],
        begun: &mut HashMap<CompId, CompId>,
    ) -> Result<InstrId> {
        let DimensionCut { dimension, .. } = self.cut;
        let combiner = match begun.get(&self.combiner) {
            Some(&known) => known,
            None => from_nothing(at.module_mut(), self.combiner, &self.types),
        };
        begun.insert(self.combiner, combiner);
        let nothing = at.scalar(ElementType::Pred, Scalar::Pred(false))?;
        let inits = [&self.inits[..], &[nothing]].concat();
        let something = |at: &mut Inserter<'_>, like: InstrId| -> Result<InstrId> {
            let shape = ArrayShape::new(ElementType::Pred, at.dims(like));
            at.splat(&shape, Scalar::Pred(true))
        };
        let pieces = arrays.iter().map(|&array| self.cut.pieces(at, array)).collect::<Result<Vec<_>>>()?;
        let reduced_from = |from: usize, shift: usize| -> Vec<usize> {
            self.reduced.iter().filter(|&&d| d >= from).map(|&d| d + shift).collect()
        };
        let mut partial: Vec<InstrId> = Vec::with_capacity(arrays.len());
        for (number, within) in [reduced_from(dimension, 1), reduced_from(dimension, 0)].into_iter().enumerate() {
            let mut operands = Vec::with_capacity(arrays.len() + 1);
            operands.extend(pieces.iter().filter_map(|pieces| pieces[number]));
            let Some(&first) = operands.first() else { continue };
            operands.push(something(at, first)?);
            let reductions = self.reduce(at, within, &operands, &inits, combiner)?;
            for array in 0..arrays.len() {
                let reduction = at.get(reductions, array)?;
                match partial.get(array).copied() {
                    None => partial.push(reduction),
                    Some(parts) => {
                        let mut dims = at.dims(reduction);
                        dims.insert(dimension, 1);
                        let rest = at.reshape(reduction, &dims)?;
                        partial[array] = at.concatenate(&[parts, rest], dimension)?;
                    }
                }
            }
        }
        let outside = self.reduced.iter().copied().filter(|&d| d <= dimension).collect();
        self.reduce(at, outside, &partial, &self.inits, self.combiner)
    }

    fn reduce(
        &self,
        at: &mut Inserter<'_>,
        dimensions: Vec<usize>,
        arrays: &[InstrId],
        inits: &[InstrId],
        computation: CompId,
    ) -> Result<InstrId> {
        at.add(Reduce { dimensions, computation }, [arrays, inits].concat())
    }
}

impl DimensionCut {
    /// Cuts the longest dimension. Among equally long ones, it is the outermost, whose parts are contiguous.
    fn longest(dims: &[usize], reduced: &[usize], wanted: usize) -> Option<DimensionCut> {
        let dimension = reduced.iter().copied().max_by_key(|&d| (dims[d], std::cmp::Reverse(d)))?;
        DimensionCut::of(dims, dimension, wanted)
    }

    /// Cuts the outermost dimension that is long enough.
    fn outermost(dims: &[usize], reduced: &[usize], wanted: usize) -> Option<DimensionCut> {
        reduced.iter().find_map(|&dimension| DimensionCut::of(dims, dimension, wanted))
    }

    fn of(dims: &[usize], dimension: usize, wanted: usize) -> Option<DimensionCut> {
        let parts = parts(dims[dimension], wanted)?;
        Some(DimensionCut { dimension, parts, size: dims[dimension] / parts })
    }

    /// Returns the parts of an array, along a new dimension, and the remainder after them.
    fn pieces(&self, at: &mut Inserter<'_>, array: InstrId) -> Result<[Option<InstrId>; 2]> {
        let (d, end) = (self.dimension, self.parts * self.size);
        let mut dims = at.dims(array);
        let extent = dims[d];
        dims.splice(d..=d, [self.parts, self.size]);
        let body = at.slice(array, d, 0, end)?;
        let body = at.reshape(body, &dims)?;
        let rest = if end < extent { Some(at.slice(array, d, end, extent)?) } else { None };
        Ok([Some(body), rest])
    }
}

/// Returns the operation and the neutral value of a reduction of one array whose order is unspecified.
fn simple(combiner: &Computation, types: &[ElementType]) -> Option<(BinaryOp, Scalar)> {
    let &[ty] = types else { return None };
    let op = simple_combiner(combiner)?;
    Some((op, combiner_identity(op, ty)?))
}

/// Whether a combiner may be associative: it is not a single operation, or one that is known to be associative.
fn may_be_associative(combiner: &Computation) -> bool {
    let root = &combiner[combiner.root()];
    let is_one =
        matches!(root.op(), Op::Binary(_)) && root.operands().iter().all(|id| combiner.parameters().contains(id));
    !is_one || simple_combiner(combiner).is_some()
}

/// Merges adjacent reduced dimensions. Returns all dimensions, and the reduced ones among them.
fn merged(dims: &[usize], reduced: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let (mut extents, mut within): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    for (d, &extent) in dims.iter().enumerate() {
        let is_reduced = reduced.contains(&d);
        match extents.last_mut() {
            Some(last) if is_reduced && d > 0 && reduced.contains(&(d - 1)) => *last *= extent,
            _ => {
                within.extend(is_reduced.then_some(extents.len()));
                extents.push(extent);
            }
        }
    }
    (extents, within)
}

/// Adds a combiner that extends `combiner` by a boolean: whether a side holds a value. If one side is empty, the result
/// is the other side.
fn from_nothing(module: &mut Module, combiner: CompId, types: &[ElementType]) -> CompId {
    let callee = module[combiner].clone();
    let mut whole = Computation::new(format!("{}_from_nothing", callee.name()));
    let shapes: Vec<Shape> = types.iter().chain(&[ElementType::Pred]).map(|&ty| Shape::scalar(ty)).collect();
    let parameter = |number: usize| {
        let shape = shapes[number % shapes.len()].clone();
        Instruction::new(Parameter { number }.into(), shape, [])
    };
    let parameters: Vec<InstrId> = (0..2 * shapes.len()).map(|number| whole.add(parameter(number))).collect();
    let (left, right) = parameters.split_at(shapes.len());
    let (has_left, has_right) = (left[types.len()], right[types.len()]);
    let root = graph::splice(&mut whole, &callee, &[&left[..types.len()], &right[..types.len()]].concat());
    let mut results = Vec::with_capacity(shapes.len());
    for (i, shape) in shapes[..types.len()].iter().enumerate() {
        let both = match (whole[root].op(), whole[root].shape()) {
            (Op::Tuple(_), _) => whole[root].operand(i),
            (_, Shape::Tuple(_)) => {
                whole.add(Instruction::new(xla_hlo::ops::GetTupleElement { index: i }.into(), shape.clone(), [root]))
            }
            _ => root,
        };
        let select = |operands: [InstrId; 3]| Instruction::new(Select.into(), shape.clone(), operands);
        let right_or_both = whole.add(select([has_left, both, right[i]]));
        results.push(whole.add(select([has_right, right_or_both, left[i]])));
    }
    let any = Binary { op: BinaryOp::Or }.into();
    results.push(whole.add(Instruction::new(any, Shape::scalar(ElementType::Pred), [has_left, has_right])));
    let root = whole.add(Instruction::new(Tuple.into(), Shape::Tuple(shapes), results));
    whole.set_root(root);
    module.add(whole)
}

/// Returns the number of parts for a dimension: at least `wanted`, and a divisor of the size if one is close.
fn parts(size: usize, wanted: usize) -> Option<usize> {
    let exact = (wanted..4 * wanted).find(|&parts| size.is_multiple_of(parts) && size > parts);
    exact.or_else(|| (size >= 2 * wanted).then_some(wanted))
}
