//! Elementwise operations.

mod attributes;
mod complex;
mod complex_hyperbolic;
mod convert;
mod double_double;
mod eval;
mod function;
mod integer;
mod proto;
mod real;
mod shape;
mod sharding;

pub(super) use convert::total_order_key;

pub use function::ElementFunction;

use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{ElementKind, ElementType, Error, Literal, Result, Shape};

/// Declares an enum of operations whose variants have the names of their opcodes.
macro_rules! by_opcode {
    ($(#[$doc:meta])* $name:ident: $($variant:ident)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[allow(missing_docs, reason = "each variant is the opcode of its name")]
        pub enum $name { $($variant,)* }

        impl $name {
            /// All variants.
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            /// Returns the opcode, which is the operation's name in text.
            pub const fn opcode(self) -> Opcode {
                match self { $($name::$variant => Opcode::$variant,)* }
            }

            /// Returns the operation of an opcode, or `None` if the opcode is not in this enum.
            pub const fn from_opcode(opcode: Opcode) -> Option<$name> {
                match opcode { $(Opcode::$variant => Some($name::$variant),)* _ => None }
            }
        }
    };
}

by_opcode! {
    /// A function of one element.
    UnaryOp: Abs Acos Acosh Asin Asinh Atan Atanh Cbrt Ceil Cosh Cosine CountLeadingZeros Erf Exponential
        ExponentialMinusOne Floor Imag IsFinite Log LogPlusOne Logistic Negate Not Popcnt Real RoundNearestAfz
        RoundNearestEven Rsqrt Sign Sine Sinh Sqrt Tan Tanh
}

by_opcode! {
    /// A function of two elements of one type.
    BinaryOp: Add And Atan2 Complex Divide Maximum Minimum Mulhi Multiply Or Power Remainder ShiftLeft
        ShiftRightArithmetic ShiftRightLogical Subtract Xor
}

/// `result_accuracy=`: required accuracy of a transcendental function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ResultAccuracy {
    /// Chosen by the platform.
    #[default]
    Default,
    /// Higher than the platform's default.
    High,
    /// Highest possible.
    Highest,
    /// Within a tolerance. Floats are stored as the bits of `f64`, so that they can be compared and hashed.
    Tolerance {
        /// Absolute tolerance, as the bits of an `f64`.
        atol: u64,
        /// Relative tolerance, as the bits of an `f64`.
        rtol: u64,
        /// Tolerance in units in the last place.
        ulps: i64,
    },
}

/// Applies a function to each element of one array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unary {
    /// Function that is applied to the elements.
    pub op: UnaryOp,
    /// Required accuracy; only affects transcendental functions.
    pub accuracy: ResultAccuracy,
}

impl From<UnaryOp> for Unary {
    fn from(op: UnaryOp) -> Unary {
        Unary { op, accuracy: ResultAccuracy::Default }
    }
}

/// Applies a function to the elements of two arrays of equal dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Binary {
    /// Function that is applied to the elements.
    pub op: BinaryOp,
}

/// Direction of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the usual names")]
pub enum CompareDirection {
    Eq,
    Ne,
    Ge,
    Gt,
    Le,
    Lt,
}

/// Order of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CompareType {
    /// IEEE order: NaN is unordered, and zeros are equal.
    Float,
    /// Total order: -NaN < -inf < ... < -0 < +0 < ... < +inf < +NaN.
    TotalOrder,
    /// Order of two's complement integers.
    Signed,
    /// Order of unsigned integers and booleans.
    Unsigned,
}

/// `compare`: a comparison of the elements of two arrays.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Compare {
    /// Direction of the comparison.
    pub direction: CompareDirection,
    /// Order of the elements; `None` for the default order of the element type.
    pub order: Option<CompareType>,
}

impl Compare {
    /// Creates a comparison in the default order of the element type.
    pub fn new(direction: CompareDirection) -> Compare {
        Compare { direction, order: None }
    }

    /// Returns the effective order for operands of type `ty`.
    pub fn order_for(&self, ty: ElementType) -> CompareType {
        self.order.unwrap_or(match ty.kind() {
            ElementKind::Float | ElementKind::Complex => CompareType::Float,
            ElementKind::Signed => CompareType::Signed,
            ElementKind::Unsigned | ElementKind::Pred => CompareType::Unsigned,
        })
    }
}

/// `select`: the element of operand 1 if operand 0 is true, otherwise of operand 2. A scalar predicate selects the
/// whole array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Select;

/// `clamp(min, x, max)`: limits elements to a range. The bounds may be scalars.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Clamp;

/// `convert`: converts numbers to another element type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Convert;

/// `bitcast-convert`: reinterprets bits as another element type. If the widths differ, a minor-most dimension of their
/// ratio is added or removed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BitcastConvert;

/// `reduce-precision`: reduces the precision of floats to fewer exponent and mantissa bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReducePrecision {
    /// Number of exponent bits, at least 1.
    pub exponent_bits: u32,
    /// Number of mantissa bits.
    pub mantissa_bits: u32,
}

impl ReadAttributes for Unary {
    fn read(opcode: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        let op = UnaryOp::from_opcode(opcode).ok_or_else(|| Error::internal(format!("{opcode} is not unary")))?;
        Ok(Unary { op, accuracy: r.optional("result_accuracy")?.unwrap_or_default() })
    }
}

impl OpRules for Unary {
    fn opcode(&self) -> Opcode {
        self.op.opcode()
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::unary(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        if self.accuracy != ResultAccuracy::Default {
            w.attribute("result_accuracy", &self.accuracy);
        }
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::unary(self, ev, operands, shape)
    }
}

impl ReadAttributes for Binary {
    fn read(opcode: Opcode, _: &mut AttributeReader<'_>) -> Result<Self> {
        let op = BinaryOp::from_opcode(opcode).ok_or_else(|| Error::internal(format!("{opcode} is not binary")))?;
        Ok(Binary { op })
    }
}

impl OpRules for Binary {
    fn opcode(&self) -> Opcode {
        self.op.opcode()
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::binary(self, cx)
    }

    fn write_attributes(&self, _: &mut AttributeWriter<'_>) {}

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::binary(self, ev, operands, shape)
    }
}

impl ReadAttributes for Compare {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Compare { direction: r.required("direction")?, order: r.optional("type")? })
    }
}

impl OpRules for Compare {
    fn opcode(&self) -> Opcode {
        Opcode::Compare
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::compare(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("direction", &self.direction);
        if let Some(order) = &self.order {
            w.attribute("type", order);
        }
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::compare(self, ev, operands, shape)
    }
}

impl ReadAttributes for Select {
    fn read(_: Opcode, _: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Select)
    }
}

impl OpRules for Select {
    fn opcode(&self) -> Opcode {
        Opcode::Select
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::select(self, cx)
    }

    fn write_attributes(&self, _: &mut AttributeWriter<'_>) {}

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::select(self, ev, operands, shape)
    }
}

impl ReadAttributes for Clamp {
    fn read(_: Opcode, _: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Clamp)
    }
}

impl OpRules for Clamp {
    fn opcode(&self) -> Opcode {
        Opcode::Clamp
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::clamp(self, cx)
    }

    fn write_attributes(&self, _: &mut AttributeWriter<'_>) {}

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::clamp(self, ev, operands, shape)
    }
}

impl ReadAttributes for Convert {
    fn read(_: Opcode, _: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Convert)
    }
}

impl OpRules for Convert {
    fn opcode(&self) -> Opcode {
        Opcode::Convert
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::convert(self, cx)
    }

    fn write_attributes(&self, _: &mut AttributeWriter<'_>) {}

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::convert(self, ev, operands, shape)
    }
}

impl ReadAttributes for BitcastConvert {
    fn read(_: Opcode, _: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(BitcastConvert)
    }
}

impl OpRules for BitcastConvert {
    fn opcode(&self) -> Opcode {
        Opcode::BitcastConvert
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::bitcast_convert(self, cx)
    }

    fn write_attributes(&self, _: &mut AttributeWriter<'_>) {}

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::bitcast_convert(self, ev, operands, shape)
    }
}

impl ReadAttributes for ReducePrecision {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(ReducePrecision { exponent_bits: r.required("exponent_bits")?, mantissa_bits: r.required("mantissa_bits")? })
    }
}

impl OpRules for ReducePrecision {
    fn opcode(&self) -> Opcode {
        Opcode::ReducePrecision
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::reduce_precision(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("exponent_bits", &self.exponent_bits);
        w.attribute("mantissa_bits", &self.mantissa_bits);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::reduce_precision(self, ev, operands, shape)
    }
}
