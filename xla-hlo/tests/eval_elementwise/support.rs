//! Helpers that run one operation or one small module, and read tables.

use xla_hlo::builder::ModuleBuilder;
use xla_hlo::eval::evaluate;
use xla_hlo::{ArrayShape, ElementType, Literal, Op, Result, Scalar, Shape};

/// Returns the result of one operation; `shape` is needed if it cannot be inferred.
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

/// Returns the error of the shape rule for an operation on operands of given shapes.
pub fn refusal(op: impl Into<Op>, operands: &[Shape], shape: Option<Shape>) -> String {
    let mut module = ModuleBuilder::new("refused");
    let mut b = module.computation("main");
    let parameters: Vec<_> = operands.iter().map(|shape| b.parameter(shape.clone()).unwrap()).collect();
    b.instruction(op, shape, parameters).expect_err("the operation must be refused").to_string()
}

/// Returns a vector.
pub fn vector(ty: ElementType, values: &[Scalar]) -> Literal {
    Literal::from_fn(&ArrayShape::new(ty, [values.len()]), |i| values[i]).unwrap()
}

/// Returns a vector of `f64`.
pub fn f64s(values: &[f64]) -> Literal {
    floats(ElementType::F64, values)
}

/// Returns a vector of floats of any type.
pub fn floats(ty: ElementType, values: &[f64]) -> Literal {
    Literal::from_fn(&ArrayShape::new(ty, [values.len()]), |i| Scalar::Float(values[i])).unwrap()
}

/// Returns a vector of integers of any type, from their low bits.
pub fn integers(ty: ElementType, values: &[i128]) -> Literal {
    Literal::from_fn(&ArrayShape::new(ty, [values.len()]), |i| Scalar::from_bits(ty, values[i] as u64)).unwrap()
}

/// Returns the elements of an array.
pub fn scalars(literal: &Literal) -> Vec<Scalar> {
    (0..literal.array_shape().element_count()).map(|i| literal.get(i)).collect()
}

/// Returns the elements of a float array.
pub fn reals(literal: &Literal) -> Vec<f64> {
    let real = |x| if let Scalar::Float(v) = x { v } else { panic!("{x:?} is not a float") };
    scalars(literal).into_iter().map(real).collect()
}

/// Returns the elements of an integer or pred array.
pub fn wholes(literal: &Literal) -> Vec<i128> {
    scalars(literal).into_iter().map(|x| x.as_i128().unwrap()).collect()
}

/// Returns the lines of a table without its heading, split at spaces.
pub fn rows(table: &str) -> impl Iterator<Item = Vec<&str>> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(' ').collect())
}

/// Returns an `f64` from the hexadecimal digits of its pattern.
pub fn f64_of(digits: &str) -> f64 {
    if digits == "nan" { f64::NAN } else { f64::from_bits(u64::from_str_radix(digits, 16).unwrap()) }
}

/// Returns the number of representable steps between two values; 0 for equal values and for two NaNs. Zeros of
/// different signs are not equal.
pub fn steps_between(a: f64, b: f64) -> u64 {
    if a.is_nan() && b.is_nan() {
        return 0;
    }
    let order =
        |x: f64| if x.is_sign_negative() { -((x.to_bits() & !(1 << 63)) as i64) - 1 } else { x.to_bits() as i64 };
    order(a).abs_diff(order(b))
}
