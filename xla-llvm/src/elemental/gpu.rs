//! Functions of floats that are computed in another way on GPUs.

use xla_hlo::ElementType::{self, F16};
use xla_hlo::ops::UnaryOp;

use crate::lanes::Lanes;
use crate::math::gpu;

/// A function of GPUs; `None` for those that are the same everywhere, and for other targets.
///
/// Rounding to 16 bits or less hides the error of most approximate instructions: bfloat16 has 8 bits, so that even
/// `tanh.approx` adds but an eighth of a unit to the half of rounding, and f8 fewer; f16 with its 11 bits goes without
/// that one. The error of `lg2.approx` is absolute near 1, where results may be tiny, so that no type has use for it.
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

/// The quotient of two floats. It must be exact where it is halfway between two numbers of the type, which quotients of
/// 8 bits and less often are.
pub(super) fn divide<'e, 'ctx>(ty: ElementType, x: Lanes<'e, 'ctx>, y: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    match ty {
        _ if !gpu::serves(x) || ty.bit_width() < 16 => x / y,
        // Numbers of f16 are nowhere near what the reciprocal flushes to zero, if each is rounded to it.
        F16 if x.emitter().options().round_each_operation => gpu::divide_brief(x, y),
        _ => gpu::divide(x, y),
    }
}
