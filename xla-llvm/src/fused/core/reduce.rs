//! Reductions inside an element: reduce and dot. Vectorized along the reduction for scalar elements, otherwise lane by
//! lane.

use inkwell::values::BasicValueEnum;
use xla_hlo::ops::{BinaryOp, Dot, DotDims, DotOperandDims, Reduce, combiner_identity, simple_combiner};
use xla_hlo::{ArrayShape, Computation, ElementKind, ElementType, Error, InstrId, Module, Result, Scalar};

use crate::elemental::{self, Value};
use crate::fused::core::address::compute_bits;
use crate::fused::core::combine::{Combiner, Element};
use crate::fused::core::window::{raws_of, values_of};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Index};
use crate::fused::loops::nest::CarriedValues;
use crate::fused::tuning::fitting;
use crate::fused::tuning::vector::LEAST_LANE_EXTENT;
use crate::simt::WARP;
use crate::target::Target;

/// Innermost body of a loop nest: maps the loops' coordinates and the carried values to the carried values of the next
/// iteration.
type ReduceBody<'a, 'e, 'ctx, 'm> =
    dyn FnMut(&mut FusedEmitter<'e, 'ctx, 'm>, &[AffineExpr], &Carried<'ctx>) -> Result<CarriedValues<'ctx>> + 'a;

/// Values that are carried from the previous iteration.
type Carried<'ctx> = [BasicValueEnum<'ctx>];

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Runs `body` in a nest of loops over `extents`; the last loop has steps of `width` lanes.
    pub(crate) fn nested(
        &mut self,
        extents: &[u64],
        width: u32,
        exprs: &mut Vec<AffineExpr>,
        carried: Vec<BasicValueEnum<'ctx>>,
        body: &mut ReduceBody<'_, 'e, 'ctx, 'm>,
    ) -> Result<Vec<BasicValueEnum<'ctx>>> {
        let Some((&extent, inner)) = extents.split_first() else {
            return body(self, exprs, &carried);
        };
        let width_here = if inner.is_empty() { width } else { 1 };
        if extent == 1 && width_here == 1 {
            exprs.push(AffineExpr::default());
            let results = self.nested(inner, width, exprs, carried, body);
            exprs.pop();
            return results;
        }
        let range = self.full_range(extent, width_here);
        self.for_each(range, carried, &mut |s, symbol, carried| {
            exprs.push(AffineExpr::symbol(symbol));
            let results = s.nested(inner, width, exprs, carried.to_vec(), body);
            exprs.pop();
            results
        })
    }

    /// Reduces elements with an operation that has an identity: one accumulator per lane, then a horizontal reduction.
    fn reduced_along_lanes(
        &mut self,
        op: BinaryOp,
        neutral: Value<'e, 'ctx>,
        extents: &[u64],
        lanes: u32,
        level: usize,
        element: &mut Element<'_, 'e, 'ctx, 'm>,
    ) -> Result<Value<'e, 'ctx>> {
        if let Some(group) = self.group_at(level)
            && extents.iter().product::<u64>() >= u64::from(WARP)
        {
            return self.reduced_by_group(group, op, neutral, extents, element);
        }
        let ty = neutral.element_type();
        let start = neutral.splat(lanes);
        let raws = self.nested(extents, lanes, &mut Vec::new(), start.raws(), &mut |s, exprs, carried| {
            let x = element(s, exprs)?.splat(lanes);
            let x = match s.existing_lanes(exprs) {
                Some(mask) => elemental::select_lanes(mask, x, start),
                None => x,
            };
            let sum = Value::from_raws(s.emitter, ty, carried);
            Ok(elemental::binary(s.emitter, op, sum, x)?.raws())
        })?;
        let mut sum = Value::from_raws(self.emitter, ty, &raws);
        while sum.width() > 1 {
            let half = sum.width() / 2;
            sum = elemental::binary(self.emitter, op, sum.slice(0, half), sum.slice(half, half))?;
        }
        Ok(sum)
    }

    pub(crate) fn reduced(&mut self, id: InstrId, op: &Reduce, index: &Index) -> Result<Vec<Value<'e, 'ctx>>> {
        let loops = ReduceLoops::new(self.graph(), id, op)?;
        let (inputs, extents) = (loops.inputs, &loops.extents);
        let width = self.width(index);
        let starts = self.reduction_starts(id, width)?;
        if extents.contains(&0) {
            return Ok(starts);
        }
        if let Some((binary, neutral)) = loops.lane_combiner(self.module, width) {
            let (input, ty) = (inputs[0], starts[0].element_type());
            let lanes = reduce_lanes(self.emitter.target(), ty, loops.last());
            let neutral = elemental::constant(self.emitter, ty, neutral);
            let level = self.level(index);
            let sum = self.row_loop(|s| {
                s.reduced_along_lanes(binary, neutral, extents, lanes, level, &mut |s, exprs| {
                    let at = loops.input_index(index, exprs);
                    s.begin_turn(input, op, &at);
                    let x = s.element(input, &at)?;
                    elemental::convert(s.emitter, x, ty)
                })
            })?;
            return Ok(vec![elemental::binary(self.emitter, binary, starts[0], sum)?]);
        }
        let types: Vec<ElementType> = starts.iter().map(Value::element_type).collect();
        if let Some(group) = self.group_at(self.level(index)).filter(|_| width == 1)
            && extents.iter().product::<u64>() >= u64::from(group.threads)
            && reduces_in_parts(self.module, op)
        {
            let reduced = self.row_loop(|s| {
                s.reduced_in_order_by_group(group, op.computation, &types, extents, &mut |s, exprs| {
                    let at = loops.input_index(index, exprs);
                    let element = |(&input, &ty)| elemental::convert(s.emitter, s.element(input, &at)?, ty);
                    inputs.iter().zip(&types).map(element).collect()
                })
            })?;
            return self.combine(Combiner::Computation(op.computation), &starts, &reduced);
        }
        let raws = self.nested(extents, 1, &mut Vec::new(), raws_of(&starts), &mut |s, exprs, carried| {
            let at = loops.input_index(index, exprs);
            let mut arguments = values_of(s, &types, carried);
            for &input in inputs {
                arguments.push(s.element(input, &at)?.splat(width));
            }
            Ok(raws_of(&s.call(op.computation, &arguments)?))
        })?;
        Ok(values_of(self, &types, &raws))
    }

    /// Computes an element of a dot: sums products in a type that is wide enough, with a single rounding.
    pub(crate) fn contracted(&mut self, id: InstrId, dot: &Dot, index: &Index) -> Result<Value<'e, 'ctx>> {
        let instruction = &self.graph()[id];
        let (lhs, rhs) = (instruction.operand(0), instruction.operand(1));
        let result = instruction.shape().expect_array()?.element_type();
        let sum_type = accumulator(result);
        let width = self.width(index);
        let DotLoops { ranks, extents, lanes } = DotLoops::new(self.graph(), id, dot, (self.emitter.target(), width))?;
        let zero = elemental::constant(self.emitter, sum_type, Scalar::zero(sum_type));
        let product = &mut |s: &mut Self, exprs: &[AffineExpr]| {
            let (l, r) = operand_indices(&dot.dims, ranks, index, exprs);
            let (x, y) = (s.element(lhs, &l)?, s.element(rhs, &r)?);
            let lanes = x.width().max(y.width());
            let x = elemental::convert(s.emitter, x.splat(lanes), sum_type)?;
            let y = elemental::convert(s.emitter, y.splat(lanes), sum_type)?;
            elemental::binary(s.emitter, BinaryOp::Multiply, x, y)
        };
        let sum = if extents.contains(&0) {
            zero.splat(width)
        } else if let Some(lanes) = lanes {
            self.reduced_along_lanes(BinaryOp::Add, zero, &extents, lanes, self.level(index), product)?
        } else {
            let raws =
                self.nested(&extents, 1, &mut Vec::new(), zero.splat(width).raws(), &mut |s, exprs, carried| {
                    let x = product(s, exprs)?.splat(width);
                    let sum = Value::from_raws(s.emitter, sum_type, carried);
                    Ok(elemental::binary(s.emitter, BinaryOp::Add, sum, x)?.raws())
                })?;
            Value::from_raws(self.emitter, sum_type, &raws)
        };
        elemental::convert(self.emitter, sum, result)
    }
}

/// Loops of a reduction over the reduced dimensions in array order, so that the innermost loop has the smallest stride.
pub(crate) struct ReduceLoops<'a> {
    op: &'a Reduce,
    /// Arrays that are reduced.
    pub inputs: &'a [InstrId],
    rank: usize,
    /// Reduced dimensions, outermost first.
    dims: Vec<usize>,
    /// Extents of the reduced dimensions.
    pub extents: Vec<u64>,
    /// Element type of the first accumulator.
    pub element_type: ElementType,
}

impl<'a> ReduceLoops<'a> {
    pub fn new(graph: &'a Computation, id: InstrId, op: &'a Reduce) -> Result<ReduceLoops<'a>> {
        let operands = graph[id].operands();
        let inputs = &operands[..operands.len() / 2];
        let shape = graph[inputs[0]].shape().expect_array()?;
        let mut dims = op.dimensions.clone();
        dims.sort_unstable();
        let extents = dims.iter().map(|&d| shape.dims()[d] as u64).collect();
        let leaves = graph[id].shape().leaves();
        let (_, first) = leaves.first().ok_or_else(|| Error::internal("a reduction has no result"))?;
        let element_type = first.expect_array()?.element_type();
        Ok(ReduceLoops { op, inputs, rank: shape.rank(), dims, extents, element_type })
    }

    /// Returns the extent of the innermost loop.
    pub fn last(&self) -> u64 {
        self.extents.last().copied().unwrap_or(1)
    }

    /// Returns the inputs' index, given the result's index and the loops' coordinates.
    pub fn input_index(&self, index: &Index, coordinates: &[AffineExpr]) -> Index {
        let mut kept = index.iter();
        let along = |d: usize| match self.dims.iter().position(|&r| r == d) {
            Some(i) => coordinates[i].clone(),
            None => kept.next().cloned().unwrap_or_default(),
        };
        (0..self.rank).map(along).collect()
    }

    /// Returns the operation that reduces lanes along the innermost loop, and its identity, for results of `width`
    /// lanes; `None` if the loops are scalar.
    pub fn lane_combiner(&self, module: &Module, width: u32) -> Option<(BinaryOp, Scalar)> {
        let is_wide = width == 1 && self.inputs.len() == 1 && self.last() >= LEAST_LANE_EXTENT;
        is_wide.then(|| splits_into_lanes(module, self.op, self.element_type)).flatten()
    }
}

/// Loops of a dot over the contracted dimensions.
pub(crate) struct DotLoops {
    /// Ranks of the operands.
    pub ranks: [usize; 2],
    pub extents: Vec<u64>,
    /// Number of lanes along the innermost loop; `None` if the loops are scalar.
    pub lanes: Option<u32>,
}

impl DotLoops {
    /// Returns the loops for results of `width` lanes.
    pub fn new(graph: &Computation, id: InstrId, dot: &Dot, (target, width): (&Target, u32)) -> Result<DotLoops> {
        let [lhs, rhs] = [0, 1].map(|operand| graph[graph[id].operand(operand)].shape().expect_array());
        let (lhs, rhs) = (lhs?, rhs?);
        let ty = accumulator(graph[id].shape().expect_array()?.element_type());
        let extents: Vec<u64> = dot.dims.lhs_contracting.iter().map(|&d| lhs.dims()[d] as u64).collect();
        let last = extents.last().copied().unwrap_or(1);
        let is_wide = width == 1 && last >= LEAST_LANE_EXTENT && !ty.is_complex();
        let lanes = is_wide.then(|| reduce_lanes(target, ty, last));
        Ok(DotLoops { ranks: [lhs.rank(), rhs.rank()], extents, lanes })
    }
}

/// Returns the number of lanes for a reduction along a dimension: several registers, so that additions overlap.
pub(crate) fn reduce_lanes(target: &Target, ty: ElementType, extent: u64) -> u32 {
    fitting(target.lanes(compute_bits(ty)) * 4, extent)
}

/// Returns the operation of a reduction of one array that can be reduced in independent parts, and its identity.
pub(crate) fn splits_into_lanes(module: &Module, op: &Reduce, ty: ElementType) -> Option<(BinaryOp, Scalar)> {
    let binary = simple_combiner(&module[op.computation])?;
    Some((binary, combiner_identity(binary, ty)?))
}

/// Whether threads may each reduce a part in order and combine the results: HLO's combiners are associative. The types
/// of both arguments must equal the result's types.
pub(crate) fn reduces_in_parts(module: &Module, op: &Reduce) -> bool {
    let graph = &module[op.computation];
    let leaf = |id: InstrId| graph[id].shape().as_array().map(ArrayShape::element_type);
    let types: Vec<_> = graph.parameters().iter().map(|&parameter| leaf(parameter)).collect();
    let (left, right) = types.split_at(types.len() / 2);
    let results = graph[graph.root()].shape().leaves();
    let results = results.iter().map(|(_, shape)| shape.element_type());
    left == right && results.eq(left.iter().copied())
}

/// Returns the accumulator type of products: f32 for narrow floats, otherwise the result's type.
pub fn accumulator(result: ElementType) -> ElementType {
    match result.kind() {
        ElementKind::Float if result.bit_width() < 32 => ElementType::F32,
        _ => result,
    }
}

/// Returns the indices of both operands' elements for an index of the result and one of K.
pub(crate) fn operand_indices(
    dims: &DotDims,
    ranks: [usize; 2],
    index: &Index,
    exprs: &[AffineExpr],
) -> (Index, Index) {
    let [lhs, rhs] = dims.operands(ranks);
    let (batch, free) = index.split_at(lhs.batch.len());
    let (rows, columns) = free.split_at(lhs.free.len());
    let place = |rank, side: &DotOperandDims<'_>, free| {
        placed(rank, [(side.batch, batch), (&side.free, free), (side.contracting, exprs)])
    };
    (place(ranks[0], &lhs, rows), place(ranks[1], &rhs, columns))
}

/// Assembles an index from lists of dimensions and their coordinates.
pub(crate) fn placed(rank: usize, lists: [(&[usize], &[AffineExpr]); 3]) -> Index {
    let mut at = vec![AffineExpr::default(); rank];
    for (dims, exprs) in lists {
        for (&d, c) in dims.iter().zip(exprs) {
            at[d] = c.clone();
        }
    }
    at
}
