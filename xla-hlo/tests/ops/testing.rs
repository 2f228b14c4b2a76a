//! Test helpers of the operation families, which build, verify and evaluate one instruction.

use xla_hlo::builder::{ComputationBuilder, ModuleBuilder};
use xla_hlo::eval::evaluate;
use xla_hlo::ops::{Binary, BinaryOp, Op};
use xla_hlo::text::{PrintOptions, parse_module, print_module};
use xla_hlo::verify::VerifiedModule;
use xla_hlo::{ArrayShape, CompId, ElementKind, ElementType, InstrId, Literal, Result, Scalar, Shape};

/// Evaluates one operation on the given operands, after the shape rule and the verifier accept it.
///
/// `op` may first add the computations that the operation calls. `written` is the result shape, for operations that
/// need it.
pub fn run<O: Into<Op>>(
    op: impl FnOnce(&mut ModuleBuilder) -> O,
    written: Option<Shape>,
    operands: &[Literal],
) -> Result<Literal> {
    let shapes: Vec<Shape> = operands.iter().map(|operand| operand.shape().clone()).collect();
    run_in_layouts(op, written, operands, &shapes)
}

/// Evaluates one operation like [`run`], with operands in the layouts of `shapes`.
pub fn run_in_layouts<O: Into<Op>>(
    op: impl FnOnce(&mut ModuleBuilder) -> O,
    written: Option<Shape>,
    operands: &[Literal],
    shapes: &[Shape],
) -> Result<Literal> {
    let mut module = ModuleBuilder::new("test");
    let op = op(&mut module);
    let mut b = module.computation("main");
    let parameters = shapes.iter().map(|shape| b.parameter(shape.clone())).collect::<Result<Vec<_>>>()?;
    let root = b.instruction(op, written, parameters)?;
    let main = b.finish(root);
    let module = module.finish(main)?;
    evaluate(&module, operands.to_vec())
}

/// Adds a computation over scalars of the given types.
pub fn function(
    module: &mut ModuleBuilder,
    parameters: &[ElementType],
    body: impl FnOnce(&mut ComputationBuilder<'_>, &[InstrId]) -> Result<InstrId>,
) -> CompId {
    let mut b = module.computation("function");
    let parameters: Vec<InstrId> = parameters
        .iter()
        .map(|&ty| b.parameter(Shape::scalar(ty)))
        .collect::<Result<_>>()
        .expect("parameters are fine");
    let root = body(&mut b, &parameters).expect("the body of the test's function is well-formed");
    b.finish(root)
}

/// Adds a computation that applies one binary operation to its two parameters.
pub fn combiner(module: &mut ModuleBuilder, op: BinaryOp, ty: ElementType) -> CompId {
    function(module, &[ty, ty], |b, p| b.instruction(Binary { op }, None, [p[0], p[1]]))
}

/// Adds the combiner `10 * acc + x`, whose result shows the order of a reduction.
pub fn append_digit(module: &mut ModuleBuilder, ty: ElementType) -> CompId {
    function(module, &[ty, ty], |b, p| {
        let ten = b.constant(scalar(ty, 10.0))?;
        let shifted = b.multiply(ten, p[0])?;
        b.add(shifted, p[1])
    })
}

/// Adds the combiner `acc + x` in a form that is not recognised as a plain addition.
pub fn disguised_add(module: &mut ModuleBuilder, ty: ElementType) -> CompId {
    function(module, &[ty, ty], |b, p| {
        let negated = b.negate(p[1])?;
        b.subtract(p[0], negated)
    })
}

/// Builds an array from row-major values; for complex types these are the real parts.
pub fn array(ty: ElementType, dims: &[usize], values: &[f64]) -> Literal {
    let shape = ArrayShape::new(ty, dims);
    assert_eq!(shape.element_count(), values.len(), "{shape} takes another number of values");
    Literal::from_fn(&shape, |i| number(ty, values[i])).expect("the array fits into memory")
}

/// Builds a scalar.
pub fn scalar(ty: ElementType, value: f64) -> Literal {
    array(ty, &[], &[value])
}

fn number(ty: ElementType, value: f64) -> Scalar {
    match ty.kind() {
        ElementKind::Float => Scalar::Float(value),
        ElementKind::Complex => Scalar::Complex(value, 0.0),
        ElementKind::Pred | ElementKind::Signed | ElementKind::Unsigned => Scalar::from_i64(ty, value as i64),
    }
}

/// Returns the array's elements in row-major order; for complex types the real parts.
pub fn numbers(literal: &Literal) -> Vec<f64> {
    (0..literal.array_shape().element_count())
        .map(|i| match literal.get(i) {
            Scalar::Pred(p) => f64::from(u8::from(p)),
            Scalar::Signed(v) => v as f64,
            Scalar::Unsigned(v) => v as f64,
            Scalar::Float(v) | Scalar::Complex(v, _) => v,
        })
        .collect()
}

/// Builds an array of pairwise different bytes (up to the range of a byte), so that a misplaced or altered byte is
/// detected.
pub fn distinct_bytes(ty: ElementType, dims: &[usize], seed: u8) -> Literal {
    let shape = ArrayShape::new(ty, dims);
    let bytes = (0..shape.byte_size()).map(|i| (i as u8).wrapping_mul(37).wrapping_add(seed)).collect();
    Literal::from_bytes(&shape, bytes).expect("the size is the shape's")
}

/// Asserts that an operation failed with an error that contains `message`.
pub fn assert_refused(what: &str, result: Result<Literal>, message: &str) {
    match result {
        Ok(value) => panic!("{what}: gave {} instead of an error about {message:?}", value.shape()),
        Err(error) => assert!(error.message().contains(message), "{what}: {:?} lacks {message:?}", error.message()),
    }
}

/// Evaluates a module in text form. Also asserts that its printed text parses and prints back to itself.
pub fn run_text(text: &str, operands: &[Literal]) -> Result<Literal> {
    let module = VerifiedModule::new(parse_module(text)?)?;
    let printed = print_module(&module, &PrintOptions::short_parsable());
    let again = parse_module(&printed).unwrap_or_else(|e| panic!("{e} in what was printed:\n{printed}"));
    assert_eq!(print_module(&again, &PrintOptions::short_parsable()), printed, "printing is a fixed point");
    evaluate(&module, operands.to_vec())
}

/// Prints a module and returns the line of the entry root, without its name.
pub fn printed_root(text: &str) -> String {
    let module = parse_module(text).unwrap_or_else(|e| panic!("{e}"));
    let printed = print_module(&module, &PrintOptions::short_parsable());
    let line = printed.lines().rfind(|line| line.trim_start().starts_with("ROOT")).expect("there is a root");
    line.split_once(" = ").expect("the root has a name").1.to_string()
}

/// Asserts that numbers agree within `tolerance`, which is relative for expected magnitudes above 1 and otherwise
/// absolute.
pub fn assert_near(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}: {found:?}");
    for (a, b) in found.iter().zip(expected) {
        let near = (a - b).abs() <= tolerance * b.abs().max(1.0) || (a.is_nan() && b.is_nan()) || a == b;
        assert!(near, "{what}: {found:?} instead of {expected:?}");
    }
}

/// Real and imaginary part.
pub type Complex = (f64, f64);

/// Returns the elements of an array of floats or complex numbers.
pub fn complex_numbers(literal: &Literal) -> Vec<Complex> {
    let number = |i| match literal.get(i) {
        Scalar::Complex(re, im) => (re, im),
        Scalar::Float(re) => (re, 0.0),
        other => panic!("{other:?} is not a float"),
    };
    (0..literal.array_shape().element_count()).map(number).collect()
}

/// Multiplies two complex numbers.
pub fn times(a: Complex, b: Complex) -> Complex {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

/// Multiplies matrices `x` and `y` with n rows, k shared and m result columns.
pub fn matrix_product(
    (n, k, m): (usize, usize, usize),
    x: impl Fn(usize, usize) -> Complex,
    y: impl Fn(usize, usize) -> Complex,
) -> Vec<Complex> {
    let sum = |i: usize, j: usize| {
        (0..k).map(|l| times(x(i, l), y(l, j))).fold((0.0, 0.0), |s: Complex, t| (s.0 + t.0, s.1 + t.1))
    };
    (0..n * m).map(|i| sum(i / m, i % m)).collect()
}
