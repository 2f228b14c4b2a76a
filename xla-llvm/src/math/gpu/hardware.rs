//! Approximate GPU instructions for reciprocals and quotients, with the errors that the PTX ISA (9.1, "Floating Point
//! Instructions") allows.
//!
//! For GPU kernels that run on the host, they are computed exactly or with a one-sided error
//! ([`Approximations`](crate::emitter::Approximations)), so that tests cover the documented behaviour instead of the
//! behaviour of one device.

use crate::emitter::Side;
use crate::lanes::{Lanes, Scalar};
use crate::target::Simt;

/// Approximate instruction with one operand.
pub(super) struct Instruction {
    /// Name of LLVM's intrinsic.
    pub name: &'static str,
    /// Whether the intrinsic is overloaded over the operand's type.
    pub overloaded: bool,
    /// Whether subnormal operands and results are flushed to zero.
    pub flushes: bool,
    pub group: Group,
    pub bound: Bound,
}

/// Group of instructions whose errors have [one common sign](crate::emitter::Approximations).
#[derive(Clone, Copy)]
pub(super) enum Group {
    Powers,
    Reciprocals,
}

/// Documented error of an instruction.
#[derive(Clone, Copy)]
pub(super) enum Bound {
    /// Error in units of the last place, from the correctly rounded result.
    Ulp(i64),
    /// Relative error.
    Relative(f64),
}

const RCP: Instruction = Instruction {
    name: "llvm.nvvm.rcp.approx.ftz.f",
    overloaded: false,
    flushes: true,
    group: Group::Reciprocals,
    bound: Bound::Ulp(1),
};

/// `rcp.approx.ftz`: returns `1 / x` within 1 ulp; subnormal operands and results are flushed to zero.
pub(super) fn rcp<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    RCP.emit(x, |x| x.constant(1.0) / x)
}

/// `rsqrt.approx`: returns `1 / sqrt x` with a relative error of 2^-22.9.
pub(super) fn rsqrt<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let bound = Bound::Relative(2f64.powf(-22.9));
    let rsqrt = Instruction { name: "llvm.nvvm.rsqrt.approx.f", flushes: false, bound, ..RCP };
    rsqrt.emit(x, |x| x.constant(1.0) / x.sqrt())
}

/// `div.full`: returns `x / y` within 2 ulp of the correctly rounded quotient, for all numbers.
pub(super) fn divide<'e, 'ctx>(x: Lanes<'e, 'ctx>, y: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    if on_gpu(x) {
        return x.in_parts(1, y, |x, y| x.call_plain("llvm.nvvm.div.full", &[], &[y.raw()]));
    }
    Instruction { bound: Bound::Ulp(2), ..RCP }.wrong(x / y)
}

/// Whether functions of these lanes are built on approximate instructions.
pub(crate) fn serves(x: Lanes<'_, '_>) -> bool {
    x.scalar() == Scalar::F32 && x.emitter().target().simt().is_some()
}

/// Returns `1 / x` for a normal number, accurate enough for correction by a residue; correctly rounded on CPUs.
pub(in crate::math) fn near_reciprocal<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    if serves(x) { rcp(x) } else { x.constant(1.0) / x }
}

pub(super) fn on_gpu(x: Lanes<'_, '_>) -> bool {
    x.emitter().target().simt() == Some(Simt::Nvptx)
}

impl Instruction {
    /// Emits the intrinsic per scalar on GPUs; on the host, computes `exact` in `f64` and adds the error.
    pub fn emit<'e, 'ctx>(
        &self,
        x: Lanes<'e, 'ctx>,
        exact: impl Fn(Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx>,
    ) -> Lanes<'e, 'ctx> {
        if !on_gpu(x) {
            return self.on_host(x, exact);
        }
        let types = [x.lane(0).raw().get_type()];
        x.in_parts(1, x, |x, _| x.call_plain(self.name, if self.overloaded { &types } else { &[] }, &[]))
    }

    pub fn on_host<'e, 'ctx>(
        &self,
        x: Lanes<'e, 'ctx>,
        exact: impl Fn(Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx>,
    ) -> Lanes<'e, 'ctx> {
        let y = exact(self.flushed(x).to_float(Scalar::F64));
        let y = match self.bound {
            Bound::Relative(error) => y * (1.0 + self.side(x) as f64 * error),
            Bound::Ulp(_) => y,
        };
        self.flushed(self.wrong(y.to_float(Scalar::F32)))
    }

    fn flushed<'e, 'ctx>(&self, x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        let subnormal = x.fabs().lt(f64::from(f32::MIN_POSITIVE));
        if self.flushes { subnormal.select(x.constant(0.0).copysign(x), x) } else { x }
    }

    /// Returns the sign of the error: -1, 0 or 1.
    fn side(&self, x: Lanes<'_, '_>) -> i64 {
        let sides = x.emitter().options().approximations;
        match self.group {
            Group::Powers => sides.powers,
            Group::Reciprocals => sides.reciprocals,
        }
        .steps()
    }

    /// Moves a correctly rounded result by the documented error, if it is a normal number.
    fn wrong<'e, 'ctx>(&self, y: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        let (Bound::Ulp(ulp), side @ (-1 | 1)) = (self.bound, self.side(y)) else {
            return y;
        };
        let magnitude = y.fabs();
        let normal = magnitude.ge(f64::from(f32::MIN_POSITIVE)) & magnitude.lt(f64::INFINITY);
        normal.select((y.bits() + side * ulp).as_float(), y)
    }
}

impl Side {
    fn steps(self) -> i64 {
        match self {
            Side::Low => -1,
            Side::Exact => 0,
            Side::High => 1,
        }
    }
}
