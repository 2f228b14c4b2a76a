//! A GPU's approximate instructions, with the errors that the PTX ISA (9.1, "Floating Point Instructions") allows them:
//! reciprocals and quotients.
//!
//! On the host, for GPU kernels that run there, they are computed exactly, or with an error on one side
//! ([`Approximations`](crate::emitter::Approximations)), so that tests see what the document allows and not what one
//! device does.

use crate::emitter::Side;
use crate::lanes::{Lanes, Scalar};
use crate::target::Simt;

/// An instruction of one operand.
pub(super) struct Instruction {
    /// LLVM's intrinsic, and whether it is overloaded over the operand's type.
    pub name: &'static str,
    pub overloaded: bool,
    /// Subnormal operands and results become zero.
    pub flushes: bool,
    pub group: Group,
    pub bound: Bound,
}

/// Instructions whose results are [wrong on the same side](crate::emitter::Approximations).
#[derive(Clone, Copy)]
pub(super) enum Group {
    Powers,
    Reciprocals,
}

/// Documented error.
#[derive(Clone, Copy)]
pub(super) enum Bound {
    /// Units of the last place of the correctly rounded result.
    Ulp(i64),
    /// Relative.
    Relative(f64),
}

const RCP: Instruction = Instruction {
    name: "llvm.nvvm.rcp.approx.ftz.f",
    overloaded: false,
    flushes: true,
    group: Group::Reciprocals,
    bound: Bound::Ulp(1),
};

/// `1 / x` within 1 ulp; zero and infinity for what is subnormal, and where the result is.
pub(super) fn rcp<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    RCP.emit(x, |x| x.constant(1.0) / x)
}

/// `1 / sqrt x` within 2^-22.9, relative.
pub(super) fn rsqrt<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let bound = Bound::Relative(2f64.powf(-22.9));
    let rsqrt = Instruction { name: "llvm.nvvm.rsqrt.approx.f", flushes: false, bound, ..RCP };
    rsqrt.emit(x, |x| x.constant(1.0) / x.sqrt())
}

/// `x / y` within 2 ulp of the correctly rounded quotient, of all numbers.
pub(super) fn divide<'e, 'ctx>(x: Lanes<'e, 'ctx>, y: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    if on_gpu(x) {
        return x.in_parts(1, y, |x, y| x.call_plain("llvm.nvvm.div.full", &[], &[y.raw()]));
    }
    Instruction { bound: Bound::Ulp(2), ..RCP }.wrong(x / y)
}

/// Whether functions of such lanes are built on these instructions.
pub(crate) fn serves(x: Lanes<'_, '_>) -> bool {
    x.scalar() == Scalar::F32 && x.emitter().target().simt().is_some()
}

/// `1 / x` for a normal number, near enough to be corrected by the residue; correctly rounded for processors.
pub(in crate::math) fn near_reciprocal<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    if serves(x) { rcp(x) } else { x.constant(1.0) / x }
}

pub(super) fn on_gpu(x: Lanes<'_, '_>) -> bool {
    x.emitter().target().simt() == Some(Simt::Nvptx)
}

impl Instruction {
    /// The intrinsic, of scalars, or what is `exact` in `f64`.
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

    /// -1, 0 or 1: the side on which results are wrong.
    fn side(&self, x: Lanes<'_, '_>) -> i64 {
        let sides = x.emitter().options().approximations;
        match self.group {
            Group::Powers => sides.powers,
            Group::Reciprocals => sides.reciprocals,
        }
        .steps()
    }

    /// Steps away from a correctly rounded result, if that is a normal number.
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
