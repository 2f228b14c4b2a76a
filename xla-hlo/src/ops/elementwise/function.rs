//! Scalar functions of elementwise operations, resolved for element types.
//!
//! The tables in `integer`, `real` and `complex` define which operations exist for which types. Shape rules and the
//! evaluator both use them.

use super::complex::{self, Complex, ComplexUnary};
use super::real::{self, RealUnary};
use super::{BinaryOp, Compare, CompareDirection, CompareType, ReducePrecision, UnaryOp, convert, integer};
use crate::ops::Op;
use crate::{ElementKind, ElementType, Error, Result, Scalar};

/// A unary operation on elements of one type.
#[derive(Clone, Copy)]
pub(super) enum UnaryFunction {
    Pred(fn(bool) -> bool),
    Signed(fn(i64, u32) -> i64),
    Unsigned(fn(u64, u32) -> u64),
    Real(RealUnary),
    Complex(ComplexUnary),
}

impl UnaryFunction {
    /// Returns the function of an operation for elements of type `ty`, or `None` if it is undefined.
    pub(super) fn of(op: UnaryOp, ty: ElementType) -> Option<UnaryFunction> {
        match ty.kind() {
            ElementKind::Pred => integer::pred_unary(op).map(UnaryFunction::Pred),
            ElementKind::Signed => integer::signed_unary(op).map(UnaryFunction::Signed),
            ElementKind::Unsigned => integer::unsigned_unary(op).map(UnaryFunction::Unsigned),
            ElementKind::Float => real::unary(op, ty).map(UnaryFunction::Real),
            ElementKind::Complex => complex::unary(op).map(UnaryFunction::Complex),
        }
    }

    /// Returns the element type of the result for elements of type `ty`.
    pub(super) fn result_type(self, ty: ElementType) -> ElementType {
        match self {
            UnaryFunction::Real(RealUnary::Pred(_)) => ElementType::Pred,
            UnaryFunction::Complex(ComplexUnary::Real(_)) => ty.real_part(),
            UnaryFunction::Pred(_)
            | UnaryFunction::Signed(_)
            | UnaryFunction::Unsigned(_)
            | UnaryFunction::Real(RealUnary::Real(_))
            | UnaryFunction::Complex(ComplexUnary::Complex(_)) => ty,
        }
    }

    fn apply(self, bits: u32, x: Scalar) -> Scalar {
        match (self, x) {
            (UnaryFunction::Pred(f), Scalar::Pred(x)) => Scalar::Pred(f(x)),
            (UnaryFunction::Signed(f), Scalar::Signed(x)) => Scalar::Signed(f(x, bits)),
            (UnaryFunction::Unsigned(f), Scalar::Unsigned(x)) => Scalar::Unsigned(f(x, bits)),
            (UnaryFunction::Real(RealUnary::Real(f)), Scalar::Float(x)) => Scalar::Float(f(x)),
            (UnaryFunction::Real(RealUnary::Pred(f)), Scalar::Float(x)) => Scalar::Pred(f(x)),
            (UnaryFunction::Complex(ComplexUnary::Complex(f)), Scalar::Complex(re, im)) => {
                from_complex(f(Complex::new(re, im)))
            }
            (UnaryFunction::Complex(ComplexUnary::Real(f)), Scalar::Complex(re, im)) => {
                Scalar::Float(f(Complex::new(re, im)))
            }
            (_, x) => mismatch(x),
        }
    }
}

/// A binary operation on elements of one type.
#[derive(Clone, Copy)]
pub(super) enum BinaryFunction {
    Pred(fn(bool, bool) -> bool),
    Signed(fn(i64, i64, u32) -> i64),
    Unsigned(fn(u64, u64, u32) -> u64),
    Real(fn(f64, f64) -> f64),
    Complex(fn(Complex, Complex) -> Complex),
    /// Combines two floats into a complex number.
    MakeComplex,
}

impl BinaryFunction {
    /// Returns the function of an operation for elements of type `ty`, or `None` if it is undefined.
    pub(super) fn of(op: BinaryOp, ty: ElementType) -> Option<BinaryFunction> {
        match ty.kind() {
            ElementKind::Pred => integer::pred_binary(op).map(BinaryFunction::Pred),
            ElementKind::Signed => integer::signed_binary(op).map(BinaryFunction::Signed),
            ElementKind::Unsigned => integer::unsigned_binary(op).map(BinaryFunction::Unsigned),
            ElementKind::Float if op == BinaryOp::Complex => ty.complex_of().map(|_| BinaryFunction::MakeComplex),
            ElementKind::Float => real::binary(op, ty).map(BinaryFunction::Real),
            ElementKind::Complex => complex::binary(op).map(BinaryFunction::Complex),
        }
    }

    /// Returns the element type of the result for elements of type `ty`.
    pub(super) fn result_type(self, ty: ElementType) -> ElementType {
        match self {
            BinaryFunction::MakeComplex => ty.complex_of().unwrap_or(ty),
            BinaryFunction::Pred(_)
            | BinaryFunction::Signed(_)
            | BinaryFunction::Unsigned(_)
            | BinaryFunction::Real(_)
            | BinaryFunction::Complex(_) => ty,
        }
    }

    fn apply(self, bits: u32, a: Scalar, b: Scalar) -> Scalar {
        match (self, a, b) {
            (BinaryFunction::Pred(f), Scalar::Pred(a), Scalar::Pred(b)) => Scalar::Pred(f(a, b)),
            (BinaryFunction::Signed(f), Scalar::Signed(a), Scalar::Signed(b)) => Scalar::Signed(f(a, b, bits)),
            (BinaryFunction::Unsigned(f), Scalar::Unsigned(a), Scalar::Unsigned(b)) => Scalar::Unsigned(f(a, b, bits)),
            (BinaryFunction::Real(f), Scalar::Float(a), Scalar::Float(b)) => Scalar::Float(f(a, b)),
            (BinaryFunction::Complex(f), Scalar::Complex(..), Scalar::Complex(..)) => {
                from_complex(f(to_complex(a), to_complex(b)))
            }
            (BinaryFunction::MakeComplex, Scalar::Float(a), Scalar::Float(b)) => Scalar::Complex(a, b),
            (_, a, _) => mismatch(a),
        }
    }
}

/// An elementwise operation on scalars whose types are known: the arithmetic of HLO, one element at a time.
///
/// ```
/// use xla_hlo::ops::{Binary, BinaryOp, ElementFunction, Op};
/// use xla_hlo::{ElementType, Scalar};
///
/// let add = Op::from(Binary { op: BinaryOp::Add });
/// let add = ElementFunction::new(&add, &[ElementType::S8; 2], ElementType::S8).unwrap().unwrap();
/// assert_eq!(add.apply(&[Scalar::Signed(127), Scalar::Signed(1)]), Scalar::Signed(-128));
/// ```
#[derive(Clone)]
pub struct ElementFunction {
    kind: Kind,
    /// Element type of the operand that selects the function (a value, not a predicate).
    operand: ElementType,
    result: ElementType,
}

#[derive(Clone)]
enum Kind {
    Unary(UnaryFunction),
    Binary(BinaryFunction),
    Compare(Compare),
    Select,
    Clamp,
    Convert,
    BitcastConvert,
    ReducePrecision(ReducePrecision),
}

impl ElementFunction {
    /// Resolves an operation for the types of its operands and its result. `None` if the operation is not elementwise;
    /// an error for types that its shape rule rejects.
    pub fn new(op: &Op, operands: &[ElementType], result: ElementType) -> Result<Option<ElementFunction>> {
        let Some(&first) = operands.first() else { return Ok(None) };
        let missing = || Error::invalid_argument(format!("{} is not defined for {first}", op.opcode()));
        let (kind, operand) = match op {
            Op::Unary(u) => (Kind::Unary(UnaryFunction::of(u.op, first).ok_or_else(missing)?), first),
            Op::Binary(b) => (Kind::Binary(BinaryFunction::of(b.op, first).ok_or_else(missing)?), first),
            Op::Compare(compare) => (Kind::Compare(compare.clone()), first),
            Op::Select(_) => (Kind::Select, result),
            Op::Clamp(_) => (Kind::Clamp, first),
            Op::Convert(_) => (Kind::Convert, first),
            Op::BitcastConvert(_) if first.bit_width() == result.bit_width() => (Kind::BitcastConvert, first),
            Op::ReducePrecision(reduce) => (Kind::ReducePrecision(reduce.clone()), first),
            _ => return Ok(None),
        };
        Ok(Some(ElementFunction { kind, operand, result }))
    }

    /// Returns the result for one element of each operand. Each element must be a value of its operand's type.
    pub fn apply(&self, operands: &[Scalar]) -> Scalar {
        self.compute(operands).rounded(self.result)
    }

    /// Returns the result before it is rounded or wrapped to its type, which happens when it is written to a literal.
    /// Like [`ElementFunction::apply`], panics if the number of operands or the kinds of values differ from the
    /// resolved ones.
    pub fn compute(&self, operands: &[Scalar]) -> Scalar {
        let bits = self.operand.bit_width() as u32;
        match (&self.kind, operands) {
            (Kind::Unary(f), &[x]) => f.apply(bits, x),
            (Kind::Binary(f), &[a, b]) => f.apply(bits, a, b),
            (Kind::Compare(op), &[a, b]) => Scalar::Pred(compare(op, self.operand, a, b)),
            (Kind::Select, &[pred, on_true, on_false]) => {
                if pred.as_bool() {
                    on_true
                } else {
                    on_false
                }
            }
            (Kind::Clamp, &[min, x, max]) => clamp(min, x, max),
            (Kind::Convert, &[x]) => convert::convert(x, self.result),
            (Kind::BitcastConvert, &[Scalar::Complex(re, im)]) => Scalar::Complex(re, im),
            (Kind::BitcastConvert, &[x]) => Scalar::from_bits(self.result, x.to_bits(self.operand)),
            (Kind::ReducePrecision(op), &[x]) => convert::reduce_precision(op, self.operand, x),
            (_, operands) => unreachable!("an elementwise function has {} operands", operands.len()),
        }
    }
}

fn compare(op: &Compare, ty: ElementType, a: Scalar, b: Scalar) -> bool {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let order = match (op.order_for(ty), a, b) {
        (CompareType::TotalOrder, a, b) => Some(convert::total_order_key(ty, a).cmp(&convert::total_order_key(ty, b))),
        (_, Scalar::Pred(a), Scalar::Pred(b)) => Some(a.cmp(&b)),
        (_, Scalar::Signed(a), Scalar::Signed(b)) => Some(a.cmp(&b)),
        (_, Scalar::Unsigned(a), Scalar::Unsigned(b)) => Some(a.cmp(&b)),
        (_, Scalar::Float(a), Scalar::Float(b)) => a.partial_cmp(&b),
        // Complex numbers are compared only for equality.
        (_, Scalar::Complex(..), Scalar::Complex(..)) => (a == b).then_some(Equal),
        (_, a, _) => mismatch(a),
    };
    match op.direction {
        CompareDirection::Eq => order == Some(Equal),
        CompareDirection::Ne => order != Some(Equal),
        CompareDirection::Ge => matches!(order, Some(Greater | Equal)),
        CompareDirection::Gt => order == Some(Greater),
        CompareDirection::Le => matches!(order, Some(Less | Equal)),
        CompareDirection::Lt => order == Some(Less),
    }
}

/// Returns min(max(x, min), max). If any operand is NaN, returns the first NaN in operand order.
fn clamp(min: Scalar, x: Scalar, max: Scalar) -> Scalar {
    match (min, x, max) {
        (Scalar::Pred(min), Scalar::Pred(x), Scalar::Pred(max)) => Scalar::Pred((x | min) & max),
        (Scalar::Signed(min), Scalar::Signed(x), Scalar::Signed(max)) => Scalar::Signed(x.max(min).min(max)),
        (Scalar::Unsigned(min), Scalar::Unsigned(x), Scalar::Unsigned(max)) => Scalar::Unsigned(x.max(min).min(max)),
        (Scalar::Float(min), Scalar::Float(x), Scalar::Float(max)) => {
            Scalar::Float(real::minimum(real::maximum(min, x), max))
        }
        (Scalar::Complex(..), Scalar::Complex(..), Scalar::Complex(..)) => {
            from_complex(complex::minimum(complex::maximum(to_complex(min), to_complex(x)), to_complex(max)))
        }
        (min, ..) => mismatch(min),
    }
}

fn to_complex(x: Scalar) -> Complex {
    match x {
        Scalar::Complex(re, im) => Complex::new(re, im),
        other => mismatch(other),
    }
}

fn from_complex(z: Complex) -> Scalar {
    Scalar::Complex(z.re, z.im)
}

/// Panics for a value of another kind than the operation was resolved for, which is a bug of the caller.
fn mismatch(x: Scalar) -> ! {
    unreachable!("an elementwise function cannot be applied to {x:?}")
}
