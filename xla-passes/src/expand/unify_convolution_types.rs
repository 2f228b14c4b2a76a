//! Converts operands of convolutions to the few element types in which a target accumulates products.

use xla_hlo::ops::{Convolution, SparsityConfig, Unary, UnaryOp};
use xla_hlo::{ArrayShape, CompId, Computation, ElementKind, ElementType, InstrId, Instruction, Module, Op, Result};

use crate::rewrite::graph;
use crate::rewrite::widen::converted;
use crate::{Pass, PassContext, TargetProfile};

/// Converts the operands and the result of every convolution to one type, out of f32, f64, c64, c128, s32 and s64.
///
/// Floats of fewer than 32 bits are accumulated in f32 and rounded once, natively if the target's profile permits it.
/// Booleans and integers become floats if their sums are exact in them, since machines multiply floats fastest.
/// Otherwise integers are accumulated modulo 2^32 or 2^64, and narrower types are obtained by truncation.
pub struct UnifyConvolutionTypes;

impl Pass for UnifyConvolutionTypes {
    fn name(&self) -> &'static str {
        "unify-convolution-types"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let ids: Vec<CompId> = module.ids().collect();
        for id in ids {
            for instruction in module[id].post_order() {
                if let Op::Convolution(op) = module[id][instruction].op()
                    && let Some(types) = Types::of(&module[id], instruction, cx.profile())
                    && op.sparsity == SparsityConfig::default()
                    && graph::is_free(&module[id][instruction])
                    && cx.allow_rewrite(self.name())
                {
                    let op = op.clone();
                    unify(module.computation_mut(id), instruction, op, &types)?;
                }
            }
        }
        Ok(())
    }
}

/// Element types of a convolution's values: first `machine`, then `sum`, then `result`.
struct Types {
    /// Type of the operands and the result of the new convolution.
    machine: ElementType,
    /// Type of the sum. The conversion to it wraps or rounds.
    sum: ElementType,
    result: ElementType,
}

impl Types {
    /// Returns the types of a convolution; `None` if it needs no change.
    fn of(computation: &Computation, id: InstrId, profile: &TargetProfile) -> Option<Types> {
        let instruction = &computation[id];
        let array = |i: usize| computation[instruction.operand(i)].shape().as_array();
        let (input, kernel, result) = (array(0)?, array(1)?, instruction.shape().as_array()?.element_type());
        let Op::Convolution(op) = instruction.op() else { return None };
        let (lhs, rhs) = (input.element_type(), kernel.element_type());
        let sum = Convolution::sum_type(lhs, rhs, result);
        if lhs == rhs && lhs == result && profile.convolution_floats.contains(&lhs) {
            return None;
        }
        let machine = match sum.kind() {
            ElementKind::Pred | ElementKind::Signed | ElementKind::Unsigned => {
                whole_numbers(lhs, rhs, sum, products(op, kernel))
            }
            ElementKind::Float if sum == ElementType::F64 => ElementType::F64,
            ElementKind::Float => ElementType::F32,
            ElementKind::Complex => sum,
        };
        let same = lhs == machine && rhs == machine && result == machine;
        (!same).then_some(Types { machine, sum, result })
    }
}

/// Returns the maximum number of products per sum.
fn products(op: &Convolution, kernel: &ArrayShape) -> usize {
    let outputs = op.dims.kernel_output_feature;
    let sizes = kernel.dims().iter().enumerate().filter(|&(d, _)| d != outputs).map(|(_, &size)| size);
    sizes.fold(1, usize::saturating_mul)
}

/// Returns the type for sums of `products` products of integers or booleans.
fn whole_numbers(lhs: ElementType, rhs: ElementType, sum: ElementType, products: usize) -> ElementType {
    let digits = |ty: ElementType| match ty.kind() {
        ElementKind::Pred => 0,
        ElementKind::Signed => ty.bit_width() as u32 - 1,
        ElementKind::Unsigned | ElementKind::Float | ElementKind::Complex => ty.bit_width() as u32,
    };
    let needed = digits(lhs) + digits(rhs) + products.max(1).next_power_of_two().trailing_zeros();
    match sum.bit_width() {
        // A nonzero sum of booleans does not round to 0.
        1 if sum.kind() == ElementKind::Pred => ElementType::F32,
        _ if needed <= 24 => ElementType::F32,
        _ if needed <= 53 => ElementType::F64,
        0..=32 => ElementType::S32,
        _ => ElementType::S64,
    }
}

fn unify(computation: &mut Computation, old: InstrId, op: Convolution, types: &Types) -> Result<()> {
    let operands = computation[old].operands().to_vec();
    let operands: Vec<InstrId> =
        operands.into_iter().map(|operand| converted(computation, operand, types.machine)).collect::<Result<_>>()?;
    let shape = computation[old].shape().expect_array()?.clone().with_element_type(types.machine);
    let new = Instruction::new(op.into(), shape.into(), operands)
        .with_name(computation[old].name())
        .with_annotations(computation[old].annotations().cloned().map(Box::new));
    let mut value = computation.add(new);
    if types.machine.is_float() && !types.sum.is_float() && types.sum.kind() != ElementKind::Pred {
        // A conversion from a float saturates where it should wrap, so convert to an integer that holds the sum first.
        let exact = if types.machine == ElementType::F32 { ElementType::S32 } else { ElementType::S64 };
        value = converted(computation, value, exact)?;
    }
    if types.sum.is_complex() && !types.result.is_complex() {
        let part = computation[value].shape().expect_array()?.clone().with_element_type(types.sum.real_part());
        value = computation.add(Instruction::new(Unary::from(UnaryOp::Real).into(), part.into(), [value]));
    } else {
        value = converted(computation, value, types.sum)?;
    }
    value = converted(computation, value, types.result)?;
    computation.replace_all_uses(old, value);
    computation.remove(old)
}
