//! Approximate GPU instructions for powers of two, logarithms and hyperbolic tangents, with their documented errors.

use std::f64::consts::{LN_2, LOG2_E};

use super::hardware::{Bound, Group, Instruction, on_gpu};
use crate::lanes::Lanes;
use crate::math::{exp, log, tanh as exact_tanh};

/// First compute capability with `tanh.approx`.
const TANH_SINCE: u32 = 75;

const EX2: Instruction = Instruction {
    name: "llvm.nvvm.ex2.approx",
    overloaded: true,
    flushes: false,
    group: Group::Powers,
    bound: Bound::Ulp(2),
};

/// `ex2.approx`: returns `2^x`, within 2 ulp of the correctly rounded result.
pub(super) fn ex2<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    EX2.emit(x, |x| exp(x * LN_2))
}

/// `ex2.approx.ftz`: returns `2^x` with subnormal results flushed to zero, in a quarter of the instructions of [`ex2`].
pub(super) fn ex2_flushed<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    Instruction { name: "llvm.nvvm.ex2.approx.ftz", flushes: true, ..EX2 }.emit(x, |x| exp(x * LN_2))
}

/// `lg2.approx`: returns `log2 x` for zero, infinity, NaN and negative numbers only. Other results have an absolute
/// error of 2^-22 from one half to two, and a relative error outside.
pub(super) fn lg2_of_specials<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let lg2 = Instruction { name: "llvm.nvvm.lg2.approx.f", overloaded: false, ..EX2 };
    lg2.emit(x, |x| log(x) * LOG2_E)
}

/// `tanh.approx`: returns `tanh x` with a relative error of 2^-11; `None` for GPUs that lack the instruction.
pub(super) fn tanh<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Option<Lanes<'e, 'ctx>> {
    if x.emitter().target().compute_capability().is_some_and(|number| number < TANH_SINCE) {
        return None;
    }
    let bound = Bound::Relative(2f64.powi(-11));
    let tanh = Instruction { name: "tanh.approx", bound, ..EX2 };
    Some(if on_gpu(x) { x.approximate_tanh() } else { tanh.on_host(x, exact_tanh) })
}
