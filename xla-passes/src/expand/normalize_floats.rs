//! Widens arithmetic on floats that a target only stores, and rounds once.

use std::collections::HashMap;

use xla_hlo::ops::{BinaryOp, Compare, CompareType, Constant, OpTrait};
use xla_hlo::{CompId, Computation, ElementType, InstrId, Literal, Module, Op, Result, Scalar};

use crate::canonicalize::dead_code::remove_unreachable;
use crate::rewrite::builder::Inserter;
use crate::rewrite::widen;
use crate::simplify::simplify_algebra;
use crate::{FloatProfile, Pass, PassContext};

/// Computes with floats that the target only stores in the type that it computes in ([`FloatProfile`]), between
/// conversions. Data movement and the state of loops, branches and calls stay as they are; so do conversions, which the
/// target must have.
///
/// - `add`, `subtract`, `multiply`, `divide`, `sqrt`, `remainder`, minima, maxima, roundings, comparisons, `iota`: the
///   same bits as before, also where the wide result is rounded again. With p bits of mantissa that needs 2p + 2 in the
///   wide type (S. A. Figueroa, "When is double rounding innocuous?", 1995), which `f32` has for `f16`, `bf16` and all
///   narrower floats.
/// - Other functions (`exponential`, `power`, ...), `dot`, `convolution`, `cholesky`, `triangular-solve`: the wide
///   result rounded, which can differ in the last place.
/// - `reduce` and `reduce-window` reduce in the wide type and round once, where before each step was rounded: sums
///   become more exact, minima and maxima stay the same. This needs a combiner of elementwise operations alone.
/// - Other combiners, those of `scatter`, `select-and-scatter`, `sort` and collectives, and comparators: computed in
///   the wide type step by step, each step rounded as before, so that the arrays themselves are never converted.
/// - Comparisons in the total order compare bits, in which NaN and zero of every format keep their places.
///
/// Operations that this pass does not touch must be expanded before (`batch-norm`, `scaled-dot`, `rng`, `scan`,
/// `stochastic-convert`) or work on bits (`bitcast-convert`, `reduce-precision`).
/// `stochastic-convert`) or works on bits (`bitcast-convert`, `reduce-precision`).
pub struct NormalizeFloats;

impl Pass for NormalizeFloats {
    fn name(&self) -> &'static str {
        "normalize-floats"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let floats = &cx.profile().floats;
        if floats.storage_only.is_empty() {
            return Ok(());
        }
        let wide = |ty| floats.computed_in(ty);
        let mut made = HashMap::new();
        for (id, instruction) in wanted(module, floats, Treatment::Reduce) {
            let mut op = module[id][instruction].op().clone();
            let &[combiner] = &op.called_computations()[..] else { continue };
            if can_widen(&module[combiner]) && cx.allow_rewrite(self.name()) {
                let combiner = wide_combiner(module, floats, combiner, &mut made)?;
                op.map_called_computations(&mut |_| combiner);
                widen::compute_in(module.computation_mut(id), instruction, op, wide)?;
            }
        }
        if !made.is_empty() {
            // Combiners that are no longer used need no treatment.
            remove_unreachable(module)?;
        }
        for (id, instruction) in wanted(module, floats, Treatment::Wide) {
            if cx.allow_rewrite(self.name()) {
                let op = module[id][instruction].op().clone();
                widen::compute_in(module.computation_mut(id), instruction, op, wide)?;
            }
        }
        for (id, instruction) in wanted(module, floats, Treatment::Bits) {
            if cx.allow_rewrite(self.name()) {
                compare_bits(&mut Inserter::new(module, id), instruction)?;
            }
        }
        Ok(())
    }
}

impl FloatProfile {
    /// The type that the target computes in with values of type `ty`: `ty` itself, unless it is only stored.
    ///
    /// A type with values that [`FloatProfile::compute_in`] has not is never replaced.
    pub fn computed_in(&self, ty: ElementType) -> ElementType {
        if self.storage_only.contains(&ty) && self.can_compute(ty) { self.compute_in } else { ty }
    }

    /// Whether another type, that the target computes in, has every value of type `ty`.
    pub fn can_compute(&self, ty: ElementType) -> bool {
        ty != self.compute_in && ty.is_float() && simplify_algebra::keeps_every_value(ty, self.compute_in)
    }
}

/// Treatment of an operation on floats that are only stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Treatment {
    /// Nothing: it moves elements, or takes care of itself.
    Stays,
    /// It is done in the wide type.
    Wide,
    /// With its combiner it is done in the wide type.
    Reduce,
    /// It compares bits.
    Bits,
}

/// The instructions that are treated so and read or write a type that is only stored.
fn wanted(module: &Module, floats: &FloatProfile, treatment: Treatment) -> Vec<(CompId, InstrId)> {
    let computations = module.post_order().into_iter();
    computations
        .flat_map(|id| module[id].ids().map(move |instruction| (id, instruction)))
        .filter(|&(id, instruction)| {
            let graph = &module[id];
            treatment_of(graph, instruction) == treatment && concerns(graph, instruction, floats)
        })
        .collect()
}

/// Whether an instruction reads or writes a type that is only stored.
fn concerns(graph: &Computation, id: InstrId, floats: &FloatProfile) -> bool {
    let narrow = |id: InstrId| {
        let leaves = graph[id].shape().leaves();
        leaves.into_iter().filter_map(|(_, leaf)| leaf.element_type()).any(|ty| floats.computed_in(ty) != ty)
    };
    narrow(id) || graph[id].operands().iter().any(|&operand| narrow(operand))
}

fn treatment_of(graph: &Computation, id: InstrId) -> Treatment {
    match graph[id].op() {
        Op::Compare(compare) => compare_treatment(graph, id, compare),
        Op::Iota(iota) => match graph[id].shape().as_array() {
            // Every index is a value of `f32`.
            Some(shape) if shape.dims()[iota.dimension] <= 1 << 24 => Treatment::Wide,
            _ => Treatment::Stays,
        },
        Op::Reduce(_) | Op::ReduceWindow(_) => Treatment::Reduce,
        op if op.has_trait(OpTrait::Widenable) => Treatment::Wide,
        _ => Treatment::Stays,
    }
}

/// Widening keeps the order of numbers, but not of NaNs with their bits; floats of fewer than 8 bits have none.
fn compare_treatment(graph: &Computation, id: InstrId, compare: &Compare) -> Treatment {
    let ty = graph[graph[id].operand(0)].shape().element_type();
    let width = ty.map_or(0, ElementType::bit_width);
    match compare.order {
        Some(CompareType::TotalOrder) if width == 8 || width == 16 => Treatment::Bits,
        _ => Treatment::Wide,
    }
}

/// A comparison in the total order as one of integers: the bits, of negative numbers all but the sign inverted.
fn compare_bits(at: &mut Inserter<'_>, id: InstrId) -> Result<()> {
    let Op::Compare(Compare { direction, .. }) = *at.graph()[id].op() else { return Ok(()) };
    let mut keys = Vec::with_capacity(2);
    for operand in at.operands(id) {
        let ty = at.element_type(operand)?;
        let (bits, greatest) = match (ty.bit_width(), ty.is_signed()) {
            (8, true) => (ElementType::S8, i64::from(i8::MAX)),
            (8, false) => (ElementType::U8, 0),
            _ => (ElementType::S16, i64::from(i16::MAX)),
        };
        let pattern = at.same_bits(operand, bits)?;
        keys.push(if ty.is_signed() {
            let sign =
                at.binary_with(BinaryOp::ShiftRightArithmetic, pattern, Scalar::Signed(ty.bit_width() as i64 - 1))?;
            let mask = at.binary_with(BinaryOp::And, sign, Scalar::Signed(greatest))?;
            at.binary(BinaryOp::Xor, pattern, mask)?
        } else {
            pattern
        });
    }
    at.graph_mut().set_op(id, Compare::new(direction).into());
    at.graph_mut().set_operands(id, keys);
    Ok(())
}

/// A combiner that computes in the wide type all the way, made once for each.
fn wide_combiner(
    module: &mut Module,
    floats: &FloatProfile,
    narrow: CompId,
    made: &mut HashMap<CompId, CompId>,
) -> Result<CompId> {
    if let Some(&wide) = made.get(&narrow) {
        return Ok(wide);
    }
    let mut combiner = module[narrow].clone();
    for (id, instruction) in module[narrow].iter() {
        let shape = widen::widened(instruction.shape(), &|ty| floats.computed_in(ty));
        if let (Op::Constant(constant), Some(array)) = (instruction.op(), shape.as_array()) {
            let literal = match constant.literal.as_splat() {
                Some(_) => Literal::splat(array, constant.literal.get(0))?,
                None => Literal::from_fn(array, |i| constant.literal.get(i))?,
            };
            combiner.set_op(id, Constant { literal }.into());
        }
        combiner.set_shape(id, shape);
    }
    let wide = module.add(combiner);
    made.insert(narrow, wide);
    Ok(wide)
}

/// Whether a combiner means the same in the wide type but for rounding: it looks at no bits, and rounds nowhere on
/// purpose.
fn can_widen(combiner: &Computation) -> bool {
    combiner.iter().all(|(id, instruction)| match instruction.op() {
        Op::Parameter(_) | Op::Tuple(_) | Op::GetTupleElement(_) | Op::Select(_) => true,
        Op::Constant(_) => instruction.shape().as_array().is_some(),
        _ => treatment_of(combiner, id) == Treatment::Wide && instruction.op().called_computations().is_empty(),
    })
}
