//! Formula builder: Rust's operators on terms add instructions.

use std::cell::{Cell, RefCell};
use std::ops::{Add, Div, Mul, Neg, Sub};

use xla_hlo::ops::{
    Binary, BinaryOp, BitcastConvert, Broadcast, Compare, CompareDirection, Constant, Convert, Select, Unary, UnaryOp,
};
use xla_hlo::{ArrayShape, ElementType, Error, InstrId, Literal, Op, Result, Scalar, Shape};

use super::super::context::Lowering;

/// Builder that adds the instructions of a formula.
///
/// Operators on terms cannot fail. Therefore, the first error is kept, and [`Formula::finish`] returns it.
pub(super) struct Formula<'f, 's> {
    lowering: RefCell<&'f mut Lowering<'s>>,
    error: Cell<Option<Error>>,
}

/// Array in a formula.
#[derive(Clone, Copy)]
pub(super) struct Term<'t> {
    formula: &'t dyn Writer,
    id: InstrId,
}

/// Interface that terms use to add instructions.
trait Writer {
    /// Adds an instruction. `result`, an instruction and an element type, determines the shape of operations whose
    /// shape cannot be inferred: the dimensions of the former with elements of the latter.
    fn instruction(&self, op: Op, result: Option<(InstrId, ElementType)>, operands: &[InstrId]) -> InstrId;
    /// Adds the constant `value` with the shape and type of `like`.
    fn splat(&self, like: InstrId, value: f64) -> InstrId;
    fn element_type(&self, id: InstrId) -> ElementType;
}

impl<'f, 's> Formula<'f, 's> {
    pub fn new(lowering: &'f mut Lowering<'s>) -> Self {
        Formula { lowering: RefCell::new(lowering), error: Cell::new(None) }
    }

    pub fn term(&self, id: InstrId) -> Term<'_> {
        Term { formula: self, id }
    }

    /// Returns the array that a formula computes, or the first error.
    pub fn finish(&self, result: Term<'_>) -> Result<InstrId> {
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(result.id),
        }
    }

    fn array(&self, id: InstrId) -> Result<ArrayShape> {
        let shape = self.lowering.borrow_mut().shape(id);
        shape.as_array().cloned().ok_or_else(|| Error::invalid_argument(format!("{shape} is not an array")))
    }

    /// Returns the instruction, or `otherwise` after an error.
    fn keep(&self, id: Result<InstrId>, otherwise: InstrId) -> InstrId {
        id.unwrap_or_else(|error| {
            let first = self.error.take().unwrap_or(error);
            self.error.set(Some(first));
            otherwise
        })
    }
}

impl Writer for Formula<'_, '_> {
    fn instruction(&self, op: Op, result: Option<(InstrId, ElementType)>, operands: &[InstrId]) -> InstrId {
        let id = match result {
            None => self.lowering.borrow_mut().infer(op, operands),
            Some((like, ty)) => self.array(like).and_then(|array| {
                let shape = Shape::array(ty, array.dims().to_vec());
                self.lowering.borrow_mut().add(op, shape, operands)
            }),
        };
        self.keep(id, operands[0])
    }

    fn splat(&self, like: InstrId, value: f64) -> InstrId {
        let splat = self.array(like).and_then(|array| {
            let ty = array.element_type();
            let value = if ty.is_float() { Scalar::Float(value) } else { Scalar::Unsigned(value as u64) };
            let constant = Constant { literal: Literal::scalar(ty, value) };
            let mut lowering = self.lowering.borrow_mut();
            let scalar = lowering.infer(constant, [])?;
            let shape = Shape::array(ty, array.dims().to_vec());
            lowering.add(Broadcast { dimensions: Vec::new() }, shape, [scalar])
        });
        self.keep(splat, like)
    }

    fn element_type(&self, id: InstrId) -> ElementType {
        self.array(id).map_or(ElementType::F32, |array| array.element_type())
    }
}

impl<'t> Term<'t> {
    fn with(self, id: InstrId) -> Term<'t> {
        Term { id, ..self }
    }

    pub fn element_type(self) -> ElementType {
        self.formula.element_type(self.id)
    }

    /// Returns a constant with the shape and type of this array.
    pub fn constant(self, value: f64) -> Term<'t> {
        self.with(self.formula.splat(self.id, value))
    }

    pub fn unary(self, op: UnaryOp) -> Term<'t> {
        self.with(self.formula.instruction(Unary::from(op).into(), None, &[self.id]))
    }

    pub fn binary(self, op: BinaryOp, other: Term<'t>) -> Term<'t> {
        self.with(self.formula.instruction(Binary { op }.into(), None, &[self.id, other.id]))
    }

    fn compare(self, direction: CompareDirection, other: Term<'t>) -> Term<'t> {
        self.with(self.formula.instruction(Compare::new(direction).into(), None, &[self.id, other.id]))
    }

    /// Converts the values to another type.
    pub fn convert(self, ty: ElementType) -> Term<'t> {
        if self.element_type() == ty {
            return self;
        }
        self.with(self.formula.instruction(Convert.into(), Some((self.id, ty)), &[self.id]))
    }

    /// Reinterprets the bits as a type of the same width.
    pub fn bitcast(self, ty: ElementType) -> Term<'t> {
        self.with(self.formula.instruction(BitcastConvert.into(), Some((self.id, ty)), &[self.id]))
    }

    /// Selects `on_true` where this predicate holds, otherwise `on_false`.
    pub fn select(self, on_true: impl Operand<'t>, on_false: Term<'t>) -> Term<'t> {
        let on_true = on_true.over(on_false);
        self.with(self.formula.instruction(Select.into(), None, &[self.id, on_true.id, on_false.id]))
    }

    pub fn and(self, other: Term<'t>) -> Term<'t> {
        self.binary(BinaryOp::And, other)
    }

    pub fn or(self, other: Term<'t>) -> Term<'t> {
        self.binary(BinaryOp::Or, other)
    }

    pub fn not(self) -> Term<'t> {
        self.unary(UnaryOp::Not)
    }

    /// Evaluates a polynomial with these coefficients, highest power first, by Horner's rule.
    pub fn polynomial(self, coefficients: &[f64]) -> Term<'t> {
        let first = self.constant(coefficients[0]);
        coefficients[1..].iter().fold(first, |sum, &coefficient| sum * self + coefficient)
    }
}

/// Term, or a number that is broadcast to the shape of another term.
pub(super) trait Operand<'t> {
    fn over(self, like: Term<'t>) -> Term<'t>;
}

impl<'t> Operand<'t> for Term<'t> {
    fn over(self, _: Term<'t>) -> Term<'t> {
        self
    }
}

impl<'t> Operand<'t> for f64 {
    fn over(self, like: Term<'t>) -> Term<'t> {
        like.constant(self)
    }
}

macro_rules! arithmetic {
    ($($operator:ident $method:ident $op:ident;)*) => { $(
        impl<'t, T: Operand<'t>> $operator<T> for Term<'t> {
            type Output = Term<'t>;

            fn $method(self, other: T) -> Term<'t> {
                self.binary(BinaryOp::$op, other.over(self))
            }
        }

        impl<'t> $operator<Term<'t>> for f64 {
            type Output = Term<'t>;

            fn $method(self, other: Term<'t>) -> Term<'t> {
                other.constant(self).binary(BinaryOp::$op, other)
            }
        }
    )* };
}

arithmetic! {
    Add add Add;
    Sub sub Subtract;
    Mul mul Multiply;
    Div div Divide;
}

impl<'t> Neg for Term<'t> {
    type Output = Term<'t>;

    fn neg(self) -> Term<'t> {
        self.unary(UnaryOp::Negate)
    }
}

macro_rules! functions {
    ($($name:ident $op:ident;)*) => {
        impl<'t> Term<'t> { $(
            pub fn $name(self) -> Term<'t> {
                self.unary(UnaryOp::$op)
            }
        )* }
    };
}

functions! {
    abs Abs;
    cos Cosine;
    erf Erf;
    exp Exponential;
    floor Floor;
    imag Imag;
    log Log;
    log1p LogPlusOne;
    real Real;
    sign Sign;
    sin Sine;
    sqrt Sqrt;
}

macro_rules! comparisons {
    ($($name:ident $direction:ident;)*) => {
        impl<'t> Term<'t> { $(
            pub fn $name(self, other: impl Operand<'t>) -> Term<'t> {
                self.compare(CompareDirection::$direction, other.over(self))
            }
        )* }
    };
}

comparisons! {
    equals Eq;
    differs Ne;
    is_less Lt;
    is_at_most Le;
    is_greater Gt;
}
