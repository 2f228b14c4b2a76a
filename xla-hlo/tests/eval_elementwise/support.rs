//! Runs one operation, or one small module, and reads tables.

use xla_hlo::builder::ModuleBuilder;
use xla_hlo::eval::evaluate;
use xla_hlo::{ArrayShape, ElementType, Literal, Op, Result, Scalar, Shape};

/// The result of one operation on operands; `shape` where the operation needs it written.
pub fn run(op: impl Into<Op>, operands: &[Literal], shape: Option<Shape>) -> Result<Literal> {
    let mut module = ModuleBuilder::new("one_operation");
    let mut b = module.computation("main");
    let mut parameters = Vec::new();
    for operand in operands {
        parameters.push(b.parameter(operand.shape().clone())?);
    }
    let root = b.instruction(op, shape, parameters)?;
    let main = b.finish(root);
    let module = module.finish(main)?;
    evaluate(&module, operands.to_vec())
}

/// The message of the shape rule that refuses an operation on operands of those shapes.
pub fn refusal(op: impl Into<Op>, operands: &[Shape], shape: Option<Shape>) -> String {
    let mut module = ModuleBuilder::new("refused");
    let mut b = module.computation("main");
    let parameters: Vec<_> = operands.iter().map(|shape| b.parameter(shape.clone()).unwrap()).collect();
    b.instruction(op, shape, parameters).expect_err("the operation must be refused").to_string()
}

/// A vector.
pub fn vector(ty: ElementType, values: &[Scalar]) -> Literal {
    Literal::from_fn(&ArrayShape::new(ty, [values.len()]), |i| values[i]).unwrap()
}

/// A vector of `f64`.
pub fn f64s(values: &[f64]) -> Literal {
    floats(ElementType::F64, values)
}

/// A vector of floats of any type.
pub fn floats(ty: ElementType, values: &[f64]) -> Literal {
    Literal::from_fn(&ArrayShape::new(ty, [values.len()]), |i| Scalar::Float(values[i])).unwrap()
}

/// A vector of integers of any type, given by their low bits.
pub fn integers(ty: ElementType, values: &[i128]) -> Literal {
    Literal::from_fn(&ArrayShape::new(ty, [values.len()]), |i| Scalar::from_bits(ty, values[i] as u64)).unwrap()
}

/// Elements of an array.
pub fn scalars(literal: &Literal) -> Vec<Scalar> {
    (0..literal.array_shape().element_count()).map(|i| literal.get(i)).collect()
}

/// Elements of a float array.
pub fn reals(literal: &Literal) -> Vec<f64> {
    let real = |x| if let Scalar::Float(v) = x { v } else { panic!("{x:?} is not a float") };
    scalars(literal).into_iter().map(real).collect()
}

/// Elements of an integer or pred array.
pub fn wholes(literal: &Literal) -> Vec<i128> {
    scalars(literal).into_iter().map(|x| x.as_i128().unwrap()).collect()
}

/// The lines of a table without the heading, split at white space.
pub fn rows(table: &str) -> impl Iterator<Item = Vec<&str>> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(' ').collect())
}

/// An `f64` from the digits of its pattern.
pub fn f64_of(digits: &str) -> f64 {
    if digits == "nan" { f64::NAN } else { f64::from_bits(u64::from_str_radix(digits, 16).unwrap()) }
}

/// Maximum number of representable values between two; 0 for equal values (NaN included), zeros of either sign apart.
pub fn steps_between(a: f64, b: f64) -> u64 {
    if a.is_nan() && b.is_nan() {
        return 0;
    }
    let order =
        |x: f64| if x.is_sign_negative() { -((x.to_bits() & !(1 << 63)) as i64) - 1 } else { x.to_bits() as i64 };
    order(a).abs_diff(order(b))
}
