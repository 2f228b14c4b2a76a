//! Arithmetic, comparison and selection on lanes.

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Shl, Sub};

use inkwell::values::{BasicValueEnum, FastMathFlags, InstructionOpcode as Op};
use inkwell::{FloatPredicate, IntPredicate};

use super::Lanes;
use xla_hlo::Error;

/// Right operand of an operator: lanes of the same type, or a constant.
pub trait Operand<'e, 'ctx> {
    /// Converts this operand to lanes of the type of `like`.
    fn lift(self, like: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx>;
}

impl<'e, 'ctx> Operand<'e, 'ctx> for Lanes<'e, 'ctx> {
    fn lift(self, _like: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        self
    }
}

impl<'e, 'ctx> Operand<'e, 'ctx> for f64 {
    fn lift(self, like: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        like.constant(self)
    }
}

impl<'e, 'ctx> Operand<'e, 'ctx> for i64 {
    fn lift(self, like: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        like.int(self)
    }
}

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    fn instruction(self, op: Op, rhs: impl Operand<'e, 'ctx>) -> Self {
        let rhs = rhs.lift(self);
        if !self.agrees(rhs) {
            return self;
        }
        self.or_self(self.emitter.builder.build_binop(op, self.raw, rhs.raw, ""))
    }

    fn float_or_int(self, float: Op, int: Op, rhs: impl Operand<'e, 'ctx>) -> Self {
        self.instruction(if self.is_float() { float } else { int }, rhs)
    }

    /// `contract`: lets the code generator fuse this addition, subtraction or multiplication with another one so
    /// marked.
    pub fn contractable(self) -> Self {
        self.with_flag(FastMathFlags::AllowContract)
    }

    pub(super) fn with_flag(self, flag: FastMathFlags) -> Self {
        let instruction = match self.raw {
            BasicValueEnum::FloatValue(value) => value.as_instruction(),
            BasicValueEnum::VectorValue(value) => value.as_instruction(),
            _ => None,
        };
        if let Some(instruction) = instruction
            && instruction.can_use_fast_math_flags()
            && instruction.set_fast_math_flags(flag).is_err()
        {
            self.emitter.fail(Error::internal("LLVM refuses a fast-math flag on an instruction that can have one"));
        }
        self
    }

    /// `udiv`: returns the unsigned quotient; the divisor must not be zero.
    pub fn udiv(self, rhs: impl Operand<'e, 'ctx>) -> Self {
        self.instruction(Op::UDiv, rhs)
    }

    /// `sdiv`: returns the signed quotient, truncated; the divisor must not be zero and the quotient must fit.
    pub fn sdiv(self, rhs: impl Operand<'e, 'ctx>) -> Self {
        self.instruction(Op::SDiv, rhs)
    }

    /// `urem`: returns the unsigned remainder; the divisor must not be zero.
    pub fn urem(self, rhs: impl Operand<'e, 'ctx>) -> Self {
        self.instruction(Op::URem, rhs)
    }

    /// `srem`: returns the signed remainder with the dividend's sign; the divisor must not be zero and the quotient
    /// must fit.
    pub fn srem(self, rhs: impl Operand<'e, 'ctx>) -> Self {
        self.instruction(Op::SRem, rhs)
    }

    /// `frem`: returns the exact remainder of floats with the dividend's sign; one library call per lane.
    pub fn float_remainder(self, rhs: Self) -> Self {
        self.instruction(Op::FRem, rhs)
    }

    /// `lshr`: shifts right logically; the amount must be less than the width.
    pub fn lshr(self, amount: impl Operand<'e, 'ctx>) -> Self {
        let amount = amount.lift(self);
        let bits = self.scalar().bits();
        if bits < 32 && self.width() > 1 && self.emitter.target().is_webassembly() && !amount.is_one_number() {
            // WebAssembly shifts all lanes by one amount. If amounts differ, LLVM 22 extracts the lanes without
            // clearing the bits above a narrow lane, and shifts those bits into it.
            return self.zext(32).instruction(Op::LShr, amount.zext(32)).trunc(bits);
        }
        self.instruction(Op::LShr, amount)
    }

    /// Whether all lanes are the same constant.
    fn is_one_number(self) -> bool {
        let BasicValueEnum::VectorValue(vector) = self.raw else { return false };
        let lane = |lane| match vector.is_const().then(|| vector.get_element_as_constant(lane)) {
            Some(BasicValueEnum::IntValue(number)) => number.get_zero_extended_constant(),
            _ => None,
        };
        lane(0).is_some_and(|first| (1..self.width()).all(|other| lane(other) == Some(first)))
    }

    /// `ashr`: shifts right arithmetically; the amount must be less than the width.
    pub fn ashr(self, amount: impl Operand<'e, 'ctx>) -> Self {
        self.instruction(Op::AShr, amount)
    }

    fn compare_float(self, predicate: FloatPredicate, rhs: impl Operand<'e, 'ctx>) -> Self {
        let rhs = rhs.lift(self);
        if !self.agrees(rhs) {
            return self.mask(false);
        }
        let builder = &self.emitter.builder;
        match (self.raw, rhs.raw) {
            (BasicValueEnum::FloatValue(x), BasicValueEnum::FloatValue(y)) => {
                self.or_self(builder.build_float_compare(predicate, x, y, "").map(Into::into))
            }
            (BasicValueEnum::VectorValue(x), BasicValueEnum::VectorValue(y)) => {
                self.or_self(builder.build_float_compare(predicate, x, y, "").map(Into::into))
            }
            _ => self.misuse("a floating-point comparison has integer operands"),
        }
    }

    fn compare_int(self, predicate: IntPredicate, rhs: impl Operand<'e, 'ctx>) -> Self {
        let rhs = rhs.lift(self);
        if !self.agrees(rhs) {
            return self.mask(false);
        }
        let builder = &self.emitter.builder;
        match (self.raw, rhs.raw) {
            (BasicValueEnum::IntValue(x), BasicValueEnum::IntValue(y)) => {
                self.or_self(builder.build_int_compare(predicate, x, y, "").map(Into::into))
            }
            (BasicValueEnum::VectorValue(x), BasicValueEnum::VectorValue(y)) => {
                self.or_self(builder.build_int_compare(predicate, x, y, "").map(Into::into))
            }
            _ => self.misuse("an integer comparison has floating-point operands"),
        }
    }

    pub(crate) fn misuse(self, what: &str) -> Self {
        self.emitter.fail(Error::internal(format!("{what} (lanes of type {})", self.raw.get_type())));
        self
    }

    /// Compares for equality; false if a float operand is NaN.
    pub fn eq(self, rhs: impl Operand<'e, 'ctx>) -> Self {
        if self.is_float() {
            self.compare_float(FloatPredicate::OEQ, rhs)
        } else {
            self.compare_int(IntPredicate::EQ, rhs)
        }
    }

    /// Compares for inequality; true if a float operand is NaN.
    pub fn ne(self, rhs: impl Operand<'e, 'ctx>) -> Self {
        if self.is_float() {
            self.compare_float(FloatPredicate::UNE, rhs)
        } else {
            self.compare_int(IntPredicate::NE, rhs)
        }
    }

    /// Compares with `<`: signed for integers, false for NaN.
    pub fn lt(self, rhs: impl Operand<'e, 'ctx>) -> Self {
        if self.is_float() {
            self.compare_float(FloatPredicate::OLT, rhs)
        } else {
            self.compare_int(IntPredicate::SLT, rhs)
        }
    }

    /// Compares with `<=`: signed for integers, false for NaN.
    pub fn le(self, rhs: impl Operand<'e, 'ctx>) -> Self {
        if self.is_float() {
            self.compare_float(FloatPredicate::OLE, rhs)
        } else {
            self.compare_int(IntPredicate::SLE, rhs)
        }
    }

    /// Compares with `>`: signed for integers, false for NaN.
    pub fn gt(self, rhs: impl Operand<'e, 'ctx>) -> Self {
        if self.is_float() {
            self.compare_float(FloatPredicate::OGT, rhs)
        } else {
            self.compare_int(IntPredicate::SGT, rhs)
        }
    }

    /// Compares with `>=`: signed for integers, false for NaN.
    pub fn ge(self, rhs: impl Operand<'e, 'ctx>) -> Self {
        if self.is_float() {
            self.compare_float(FloatPredicate::OGE, rhs)
        } else {
            self.compare_int(IntPredicate::SGE, rhs)
        }
    }

    /// Compares unsigned integers with `<`.
    pub fn ult(self, rhs: impl Operand<'e, 'ctx>) -> Self {
        self.compare_int(IntPredicate::ULT, rhs)
    }

    /// Compares unsigned integers with `<=`.
    pub fn ule(self, rhs: impl Operand<'e, 'ctx>) -> Self {
        self.compare_int(IntPredicate::ULE, rhs)
    }

    /// Compares unsigned integers with `>`.
    pub fn ugt(self, rhs: impl Operand<'e, 'ctx>) -> Self {
        self.compare_int(IntPredicate::UGT, rhs)
    }

    /// Compares unsigned integers with `>=`.
    pub fn uge(self, rhs: impl Operand<'e, 'ctx>) -> Self {
        self.compare_int(IntPredicate::UGE, rhs)
    }

    /// Whether all lanes are constants.
    pub(crate) fn is_constant(self) -> bool {
        match self.raw {
            BasicValueEnum::VectorValue(vector) => vector.is_const(),
            BasicValueEnum::IntValue(int) => int.is_const(),
            BasicValueEnum::FloatValue(float) => float.is_const(),
            _ => false,
        }
    }

    /// Whether a float lane is NaN.
    pub fn is_nan(self) -> Self {
        self.compare_float(FloatPredicate::UNO, self)
    }

    /// Whether either float lane is NaN.
    pub fn unordered(self, rhs: impl Operand<'e, 'ctx>) -> Self {
        self.compare_float(FloatPredicate::UNO, rhs)
    }

    /// `select`: returns `then` where this mask is set, and `otherwise` elsewhere.
    pub fn select(self, then: Self, otherwise: impl Operand<'e, 'ctx>) -> Self {
        let otherwise = otherwise.lift(then);
        if !then.agrees(otherwise) {
            return then;
        }
        let builder = &self.emitter.builder;
        match self.raw {
            BasicValueEnum::IntValue(mask) => then.or_self(builder.build_select(mask, then.raw, otherwise.raw, "")),
            BasicValueEnum::VectorValue(mask) => then.or_self(builder.build_select(mask, then.raw, otherwise.raw, "")),
            _ => then.misuse("the condition of a select is not a mask"),
        }
    }
}

macro_rules! operator {
    ($($trait:ident $method:ident ($float:ident, $int:ident))*) => { $(
        impl<'e, 'ctx, R: Operand<'e, 'ctx>> $trait<R> for Lanes<'e, 'ctx> {
            type Output = Self;

            fn $method(self, rhs: R) -> Self {
                self.float_or_int(Op::$float, Op::$int, rhs)
            }
        }
    )* };
}

operator! {
    Add add (FAdd, Add)
    Sub sub (FSub, Sub)
    Mul mul (FMul, Mul)
    Div div (FDiv, SDiv)
    BitAnd bitand (And, And)
    BitOr bitor (Or, Or)
    BitXor bitxor (Xor, Xor)
    Shl shl (Shl, Shl)
}

impl<'e, 'ctx> Neg for Lanes<'e, 'ctx> {
    type Output = Self;

    fn neg(self) -> Self {
        match self.raw {
            BasicValueEnum::FloatValue(x) => self.or_self(self.emitter.builder.build_float_neg(x, "").map(Into::into)),
            BasicValueEnum::VectorValue(x) if self.is_float() => {
                self.or_self(self.emitter.builder.build_float_neg(x, "").map(Into::into))
            }
            _ => self.int(0) - self,
        }
    }
}

impl<'e, 'ctx> Not for Lanes<'e, 'ctx> {
    type Output = Self;

    fn not(self) -> Self {
        self ^ self.int(-1)
    }
}
