//! Fold splitting: a large fold into few results becomes many folds of its parts and one of theirs, work for many threads.
//!
//! ```text
//! reduce(x[n], init)             p = reduce(reshape(x)[P,n/P], neutral), dims={1}
//!                         ─>     reduce(p, init), dims={0}
//! ```

use xla_hlo::ops::{
    Binary, BinaryOp, Constant, Reduce, Reshape, Slice, SliceRange, combiner_identity, simple_combiner,
};
use xla_hlo::{
    ArrayShape, CompId, Computation, ElementType, InstrId, Instruction, Literal, Module, Op, Result, Scalar,
};

use crate::{Pass, PassContext, TargetProfile, graph};

/// Splits reductions whose results are too few for a target's threads, where the combiner is one associative and
/// commutative operation with a neutral value. The order of such a fold is free, so that floats may round otherwise.
pub struct SplitFolds;

/// Parts for each thread, so that all are done at about the same time.
const PARTS_PER_THREAD: usize = 4;
/// Results that one thread folds side by side, in a fold across the innermost dimension.
const SIDE_BY_SIDE: usize = 512;

impl Pass for SplitFolds {
    fn name(&self) -> &'static str {
        "split-folds"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        if cx.profile().threads <= 1 {
            return Ok(());
        }
        for program in module.post_order() {
            for id in module[program].post_order() {
                if let Some(split) = Split::of(module, program, id, cx.profile())
                    && cx.allow_rewrite(self.name())
                {
                    let computation = module.computation_mut(program);
                    let result = split.write(computation);
                    computation.replace_all_uses(id, result);
                    computation.remove(id)?;
                }
            }
        }
        Ok(())
    }
}

/// How a reduction is split.
struct Split {
    operand: InstrId,
    init: InstrId,
    reduce: Reduce,
    combiner: BinaryOp,
    neutral: Scalar,
    ty: ElementType,
    dims: Vec<usize>,
    /// The dimension that is cut, into how many parts, and of what size. There may be a rest.
    dimension: usize,
    parts: usize,
    size: usize,
}

impl Split {
    fn of(module: &Module, program: CompId, id: InstrId, profile: &TargetProfile) -> Option<Split> {
        let computation = &module[program];
        let instruction = &computation[id];
        let (Op::Reduce(reduce), &[operand, init]) = (instruction.op(), instruction.operands()) else { return None };
        let (shape, result) = (computation[operand].shape().as_array()?, instruction.shape().as_array()?);
        let ty = shape.element_type();
        let of_one_type = [result.element_type(), computation[init].shape().element_type()?].iter().all(|&t| t == ty);
        if !of_one_type || !shape.is_static() || !graph::is_free(instruction) {
            return None;
        }
        let combiner = simple_combiner(&module[reduce.computation])?;
        let neutral = combiner_identity(combiner, ty)?;
        let dims = shape.dims().to_vec();
        let innermost = dims.iter().rposition(|&d| d > 1)?;
        let side_by_side = if reduce.dimensions.contains(&innermost) { 1 } else { dims[innermost].min(SIDE_BY_SIDE) };
        let apart = result.element_count() / side_by_side;
        // What fits into a cache of one thread is folded before another thread has begun.
        if shape.byte_size() < profile.l2_bytes || apart >= PARTS_PER_THREAD * profile.threads {
            return None;
        }
        // Of equally long dimensions the outermost: its parts lie together.
        let dimension = reduce.dimensions.iter().copied().max_by_key(|&d| (dims[d], std::cmp::Reverse(d)))?;
        let parts = parts(dims[dimension], profile.threads)?;
        let size = dims[dimension] / parts;
        Some(Split { operand, init, reduce: reduce.clone(), combiner, neutral, ty, dims, dimension, parts, size })
    }

    /// Adds the parts' folds and theirs; gives the result.
    fn write(&self, computation: &mut Computation) -> InstrId {
        let cut = self.parts * self.size;
        let whole = cut == self.dims[self.dimension];
        let body = if whole { self.operand } else { self.slice(computation, 0, cut) };
        let d = self.dimension;
        let mut dims = self.dims.clone();
        dims.splice(d..=d, [self.parts, self.size]);
        let body = self.add(computation, Reshape { inferred_dimension: None }.into(), &dims, &[body]);
        // The parts stay, what was cut off behind them goes with the other dimensions.
        let within: Vec<usize> = self.reduce.dimensions.iter().map(|&r| if r >= d { r + 1 } else { r }).collect();
        let literal = Literal::scalar(self.ty, self.neutral);
        let neutral = self.add(computation, Constant { literal }.into(), &[], &[]);
        let partial = self.fold(computation, &dims, within, body, neutral);
        let kept: Vec<usize> =
            (0..self.dims.len()).filter(|r| *r == d || !self.reduce.dimensions.contains(r)).collect();
        let dims: Vec<usize> = kept.iter().map(|&r| if r == d { self.parts } else { self.dims[r] }).collect();
        let place = kept.iter().position(|&r| r == d).unwrap_or(0);
        let all = self.fold(computation, &dims, vec![place], partial, self.init);
        if whole {
            return all;
        }
        let rest = self.slice(computation, cut, self.dims[d]);
        let mut dims = self.dims.clone();
        dims[d] -= cut;
        let rest = self.fold(computation, &dims, self.reduce.dimensions.clone(), rest, neutral);
        let dims = computation[rest].shape().as_array().map(|a| a.dims().to_vec()).unwrap_or_default();
        self.add(computation, Binary { op: self.combiner }.into(), &dims, &[all, rest])
    }

    fn slice(&self, computation: &mut Computation, start: usize, limit: usize) -> InstrId {
        let range = |(d, &size): (usize, &usize)| match d == self.dimension {
            true => SliceRange { start, limit, stride: 1 },
            false => SliceRange { start: 0, limit: size, stride: 1 },
        };
        let ranges: Vec<SliceRange> = self.dims.iter().enumerate().map(range).collect();
        let dims: Vec<usize> = ranges.iter().map(|r| r.limit - r.start).collect();
        self.add(computation, Slice { ranges }.into(), &dims, &[self.operand])
    }

    fn fold(
        &self,
        computation: &mut Computation,
        dims: &[usize],
        dimensions: Vec<usize>,
        x: InstrId,
        init: InstrId,
    ) -> InstrId {
        let kept: Vec<usize> = (0..dims.len()).filter(|d| !dimensions.contains(d)).map(|d| dims[d]).collect();
        let op = Reduce { dimensions, computation: self.reduce.computation };
        self.add(computation, op.into(), &kept, &[x, init])
    }

    fn add(&self, computation: &mut Computation, op: Op, dims: &[usize], operands: &[InstrId]) -> InstrId {
        let shape = xla_hlo::Shape::Array(ArrayShape::new(self.ty, dims)).with_default_layouts();
        computation.add(Instruction::new(op, shape, operands.to_vec()))
    }
}

/// Parts that a dimension is cut into: a number that divides it, where one is near.
fn parts(size: usize, threads: usize) -> Option<usize> {
    let least = PARTS_PER_THREAD * threads;
    let exact = (least..4 * least).find(|&parts| size.is_multiple_of(parts) && size > parts);
    exact.or_else(|| (size >= 2 * least).then_some(least))
}
