//! Widens arithmetic on floats that a target only stores, and rounds the result once.

use std::collections::HashMap;

use xla_hlo::ops::{BinaryOp, Compare, CompareType, Constant, OpTrait};
use xla_hlo::{CompId, Computation, ElementType, InstrId, Literal, Module, Op, Result, Scalar};

use crate::canonicalize::dead_code::remove_unreachable;
use crate::rewrite::builder::Inserter;
use crate::rewrite::widen;
use crate::simplify::simplify_algebra;
use crate::{FloatProfile, Pass, PassContext};

/// Computes operations on storage-only floats in the type for their arithmetic ([`FloatProfile`]), between conversions.
/// Data movement and the state of loops, branches and calls are unchanged; so are conversions, which the target must
/// support.
///
/// - `add`, `subtract`, `multiply`, `divide`, `sqrt`, `remainder`, minima, maxima, roundings, comparisons, `iota`: the
///   result is bit-identical, even if the wide result is rounded again. For a mantissa of p bits, this requires 2p + 2
///   bits in the wide type (S. A. Figueroa, "When is double rounding innocuous?", 1995). `f32` satisfies this for
///   `f16`, `bf16` and all narrower floats.
/// - Other functions (`exponential`, `power`, ...), `dot`, `convolution`, `cholesky`, `triangular-solve`: the wide
///   result is rounded, which can differ in the last place.
/// - `reduce` and `reduce-window` reduce in the wide type and round once instead of after each step: sums become more
///   exact, minima and maxima are unchanged. This requires a combiner that only consists of elementwise operations.
/// - Other combiners (of `scatter`, `select-and-scatter`, `sort` and collectives) and comparators: computed in the wide
///   type step by step, each step rounded as before, so that the arrays themselves are never converted.
/// - Comparisons in the total order compare bits, which orders NaNs and zeros correctly in every format.
///
/// Operations that this pass does not support must be expanded before (`batch-norm`, `scaled-dot`, `rng`, `scan`,
/// `stochastic-convert`) or operate on bits (`bitcast-convert`, `reduce-precision`).
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
            // Removes combiners that are no longer used, so that they are not rewritten below.
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
    /// Returns the type in which the target computes with values of type `ty`: `ty` itself unless it is storage-only.
    ///
    /// A type with values that [`FloatProfile::compute_in`] does not represent is never replaced.
    pub fn computed_in(&self, ty: ElementType) -> ElementType {
        if self.storage_only.contains(&ty) && self.can_compute(ty) { self.compute_in } else { ty }
    }

    /// Whether `compute_in` is a different type that represents every value of type `ty`.
    pub fn can_compute(&self, ty: ElementType) -> bool {
        ty != self.compute_in && ty.is_float() && simplify_algebra::keeps_every_value(ty, self.compute_in)
    }
}

/// Treatment of an operation on storage-only floats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Treatment {
    /// Unchanged: it moves elements or handles the type itself.
    Stays,
    /// Computed in the wide type.
    Wide,
    /// Computed in the wide type together with its combiner.
    Reduce,
    /// Compared by bits.
    Bits,
}

/// Returns the instructions with this treatment that read or write a storage-only type.
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

/// Whether an instruction reads or writes a storage-only type.
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
            // Every index is exactly representable in `f32`.
            Some(shape) if shape.dims()[iota.dimension] <= 1 << 24 => Treatment::Wide,
            _ => Treatment::Stays,
        },
        Op::Reduce(_) | Op::ReduceWindow(_) => Treatment::Reduce,
        op if op.has_trait(OpTrait::Widenable) => Treatment::Wide,
        _ => Treatment::Stays,
    }
}

/// Returns the treatment of a comparison. Widening preserves the order of numbers, but not the order of NaNs by their
/// bits. Floats of fewer than 8 bits have no NaNs.
fn compare_treatment(graph: &Computation, id: InstrId, compare: &Compare) -> Treatment {
    let ty = graph[graph[id].operand(0)].shape().element_type();
    let width = ty.map_or(0, ElementType::bit_width);
    match compare.order {
        Some(CompareType::TotalOrder) if width == 8 || width == 16 => Treatment::Bits,
        _ => Treatment::Wide,
    }
}

/// Rewrites a comparison in the total order as one of integers: all bits except the sign of negative numbers are
/// inverted.
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

/// Returns a combiner that computes entirely in the wide type. Each is created once.
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

/// Whether a combiner has the same meaning in the wide type except for rounding: it does not inspect bits, and does not
/// round deliberately.
fn can_widen(combiner: &Computation) -> bool {
    combiner.iter().all(|(id, instruction)| match instruction.op() {
        Op::Parameter(_) | Op::Tuple(_) | Op::GetTupleElement(_) | Op::Select(_) => true,
        Op::Constant(_) => instruction.shape().as_array().is_some(),
        _ => treatment_of(combiner, id) == Treatment::Wide && instruction.op().called_computations().is_empty(),
    })
}
