//! Functions of floats that are computed differently on GPUs.

use xla_hlo::ElementType::{self, F16};
use xla_hlo::ops::UnaryOp;

use crate::lanes::Lanes;
use crate::math::gpu;

/// Computes a function by its GPU implementation; `None` for functions without one, and for other targets.
///
/// Rounding to 16 bits or less hides the errors of most approximate instructions. Even `tanh.approx` adds only an
/// eighth of a unit to the half unit of rounding for bfloat16, which has 8 bits, and less for f8; f16 with its 11 bits
/// does not use it. The error of `lg2.approx` is absolute near 1, where results may be tiny, so no type uses it there.
pub(super) fn unary<'e, 'ctx>(op: UnaryOp, ty: ElementType, x: Lanes<'e, 'ctx>) -> Option<Lanes<'e, 'ctx>> {
    if !gpu::serves(x) {
        return None;
    }
    let narrow = ty.bit_width() <= 16;
    Some(match op {
        UnaryOp::Erf => gpu::erf(x),
        UnaryOp::Exponential if narrow => gpu::exp_brief(x),
        UnaryOp::Exponential => gpu::exp(x),
        UnaryOp::Log => gpu::log(x),
        UnaryOp::Logistic if narrow => gpu::logistic_brief(x),
        UnaryOp::Logistic => gpu::logistic(x),
        UnaryOp::Rsqrt if narrow => gpu::rsqrt_brief(x),
        UnaryOp::Rsqrt => gpu::rsqrt(x),
        UnaryOp::Tanh if narrow && ty != F16 => gpu::tanh_brief(x),
        UnaryOp::Tanh => gpu::tanh(x),
        _ => return None,
    })
}

/// Returns the quotient of two floats. It must be exact if it is halfway between two numbers of the type, which is
/// common for quotients of 8 bits and less.
pub(super) fn divide<'e, 'ctx>(ty: ElementType, x: Lanes<'e, 'ctx>, y: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    match ty {
        _ if !gpu::serves(x) || ty.bit_width() < 16 => x / y,
        // If each operation rounds to f16, no operand is in the range that the reciprocal flushes to zero.
        F16 if x.emitter().options().round_each_operation => gpu::divide_brief(x, y),
        _ => gpu::divide(x, y),
    }
}
