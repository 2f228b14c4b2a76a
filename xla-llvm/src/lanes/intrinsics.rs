//! LLVM intrinsics on lanes, each with a fallback for targets that lack the instruction.

use inkwell::intrinsics::Intrinsic;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, FastMathFlags, ValueKind};

use super::operators::Operand;
use super::{Lanes, Scalar};
use crate::emitter::Emitter;
use crate::target::FloatAbilities;
use xla_hlo::Error;

impl<'ctx> Emitter<'ctx> {
    /// Calls an intrinsic overloaded over `types`. Returns `None` (and records an error) if LLVM has no such intrinsic,
    /// or if its result is void.
    pub(crate) fn intrinsic(
        &self,
        name: &str,
        types: &[BasicTypeEnum<'ctx>],
        arguments: &[BasicValueEnum<'ctx>],
    ) -> Option<BasicValueEnum<'ctx>> {
        let declaration = Intrinsic::find(name).and_then(|found| found.get_declaration(&self.module, types));
        let Some(declaration) = declaration else {
            self.fail(Error::internal(format!("LLVM has no intrinsic `{name}` for these types")));
            return None;
        };
        let arguments: Vec<BasicMetadataValueEnum<'ctx>> = arguments.iter().map(|&a| a.into()).collect();
        match self.record(self.builder.build_call(declaration, &arguments, ""))?.try_as_basic_value() {
            ValueKind::Basic(value) => Some(value),
            ValueKind::Instruction(_) => None,
        }
    }
}

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    /// Calls an intrinsic overloaded over this value's type alone, with the arguments `self` and `others`.
    fn call(self, name: &str, others: &[BasicValueEnum<'ctx>]) -> Self {
        let mut arguments = vec![self.raw];
        arguments.extend_from_slice(others);
        match self.emitter.intrinsic(name, &[self.raw.get_type()], &arguments) {
            Some(raw) => Lanes { raw, ..self },
            None => self,
        }
    }

    /// Calls an intrinsic that maps `f32` lanes to `f32` lanes, overloaded over `types`.
    pub(crate) fn call_plain(self, name: &str, types: &[BasicTypeEnum<'ctx>], others: &[BasicValueEnum<'ctx>]) -> Self {
        let arguments = [&[self.raw], others].concat();
        self.emitter.intrinsic(name, types, &arguments).map_or(self, |raw| Lanes { raw, ..self })
    }

    /// Returns the target's native `tanh` of any accuracy: `tanh.approx` on GPUs from sm_75 on.
    pub(crate) fn approximate_tanh(self) -> Self {
        self.call("llvm.tanh", &[]).with_flag(FastMathFlags::ApproxFunc)
    }

    /// Computes `self * y + z`, rounded once if the target has FMA and twice otherwise. Code that needs a single
    /// rounding uses `exact_product` of the math functions.
    pub fn fma(self, y: impl Operand<'e, 'ctx>, z: impl Operand<'e, 'ctx>) -> Self {
        let (y, z) = (y.lift(self), z.lift(self));
        if !(self.agrees(y) && self.agrees(z)) {
            return self;
        }
        if self.float_abilities().fma { self.call("llvm.fma", &[y.raw, z.raw]) } else { self * y + z }
    }

    /// Returns the target's abilities in this floating-point type.
    pub(crate) fn float_abilities(self) -> FloatAbilities {
        let abilities = self.emitter.target().abilities();
        if self.scalar() == Scalar::F64 { abilities.f64 } else { abilities.f32 }
    }

    /// `llvm.sqrt`: returns the correctly rounded square root.
    pub fn sqrt(self) -> Self {
        self.call("llvm.sqrt", &[])
    }

    /// `llvm.fabs`: returns the absolute value of a float.
    pub fn fabs(self) -> Self {
        self.call("llvm.fabs", &[])
    }

    /// `llvm.copysign`: returns this float with the sign of `sign`.
    pub fn copysign(self, sign: Self) -> Self {
        if self.agrees(sign) { self.call("llvm.copysign", &[sign.raw]) } else { self }
    }

    /// `llvm.ctpop`: counts the set bits of an integer.
    pub fn popcount(self) -> Self {
        self.call("llvm.ctpop", &[])
    }

    /// `llvm.ctlz`: counts the leading zeros of an integer; the result for zero is the width.
    pub fn leading_zeros(self) -> Self {
        let no_poison = self.emitter.int_type(1).const_zero();
        self.call("llvm.ctlz", &[no_poison.into()])
    }

    /// `llvm.fshl`: returns the high word of (`self`, `low`) shifted left by `amount` modulo the width.
    pub fn funnel_shift_left(self, low: Self, amount: Self) -> Self {
        if self.agrees(low) && self.agrees(amount) { self.call("llvm.fshl", &[low.raw, amount.raw]) } else { self }
    }

    /// `llvm.smin`: returns the signed minimum of integers.
    pub fn smin(self, rhs: impl Operand<'e, 'ctx>) -> Self {
        self.call("llvm.smin", &[rhs.lift(self).raw])
    }

    /// `llvm.smax`: returns the signed maximum of integers.
    pub fn smax(self, rhs: impl Operand<'e, 'ctx>) -> Self {
        self.call("llvm.smax", &[rhs.lift(self).raw])
    }

    /// `llvm.umin`: returns the unsigned minimum of integers.
    pub fn umin(self, rhs: impl Operand<'e, 'ctx>) -> Self {
        self.call("llvm.umin", &[rhs.lift(self).raw])
    }

    /// `llvm.umax`: returns the unsigned maximum of integers.
    pub fn umax(self, rhs: impl Operand<'e, 'ctx>) -> Self {
        self.call("llvm.umax", &[rhs.lift(self).raw])
    }

    /// Returns the lesser of two floats as `x < y ? x : y`, one instruction on x86; `y` if either is NaN.
    pub fn lesser(self, y: impl Operand<'e, 'ctx>) -> Self {
        let y = y.lift(self);
        self.lt(y).select(self, y)
    }

    /// Returns the greater of two floats as `x > y ? x : y`, one instruction on x86; `y` if either is NaN.
    pub fn greater(self, y: impl Operand<'e, 'ctx>) -> Self {
        let y = y.lift(self);
        self.gt(y).select(self, y)
    }

    /// Returns the greater of two floats; NaN if either is NaN. For zeros of different signs, returns either one.
    pub fn maximum(self, y: Self) -> Self {
        if self.keeps_nan_in_hardware() {
            return self.call("llvm.maximum", &[y.raw]);
        }
        self.is_nan().select(self, self.greater(y))
    }

    /// Returns the lesser of two floats; NaN if either is NaN. For zeros of different signs, returns either one.
    pub fn minimum(self, y: Self) -> Self {
        if self.keeps_nan_in_hardware() {
            return self.call("llvm.minimum", &[y.raw]);
        }
        self.is_nan().select(self, self.lesser(y))
    }

    /// Whether the PTX instructions `max.NaN` and `min.NaN` support these lanes.
    pub(crate) fn keeps_nan_in_hardware(self) -> bool {
        self.scalar() == Scalar::F32 && self.emitter.target().compute_capability() >= Some(80)
    }

    /// `llvm.roundeven`: rounds to the nearest integral value, ties to even.
    pub fn round_even(self) -> Self {
        self.round_to_integral("llvm.roundeven", |x| {
            // Adding 2^(mantissa bits) removes the fraction. This is exact for smaller values; larger ones are integral
            // already.
            let big = x.constant(if x.scalar() == Scalar::F64 { 2f64.powi(52) } else { 2f64.powi(23) });
            let magnitude = x.fabs();
            magnitude.lt(big).select(((magnitude + big) - big).copysign(x), x)
        })
    }

    /// `llvm.trunc`: rounds toward zero.
    pub fn truncate(self) -> Self {
        self.round_to_integral("llvm.trunc", |x| {
            let magnitude = x.fabs();
            let rounded = magnitude.round_even();
            rounded.gt(magnitude).select(rounded - 1.0, rounded).copysign(x)
        })
    }

    /// `llvm.floor`: rounds toward minus infinity.
    pub fn floor(self) -> Self {
        self.round_to_integral("llvm.floor", |x| {
            let rounded = x.round_even();
            rounded.gt(x).select(rounded - 1.0, rounded).copysign(x)
        })
    }

    /// `llvm.ceil`: rounds toward plus infinity.
    pub fn ceil(self) -> Self {
        self.round_to_integral("llvm.ceil", |x| {
            let rounded = x.round_even();
            rounded.lt(x).select(rounded + 1.0, rounded).copysign(x)
        })
    }

    fn round_to_integral(self, name: &str, without: impl FnOnce(Self) -> Self) -> Self {
        if self.float_abilities().rounding { self.call(name, &[]) } else { without(self) }
    }
}
