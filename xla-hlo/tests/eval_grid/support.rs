//! Runs programs over a grid, and prints their values.

use xla_hlo::eval::grid::{self, Grid};
use xla_hlo::text::parse_module;
use xla_hlo::{ArrayShape, ElementKind, Literal, Result, Scalar, VerifiedModule};

/// Runs a program on all devices of its header. `argument` returns an argument by its number, device and shape.
pub fn run(text: &str, argument: impl Fn(usize, usize, &ArrayShape) -> Literal) -> Result<Vec<Literal>> {
    let module = VerifiedModule::new(parse_module(text)?)?;
    let entry = module.entry();
    let shapes = entry.parameters().iter().map(|&p| entry[p].shape().expect_array());
    let shapes = shapes.collect::<Result<Vec<_>>>()?;
    let of_device = |device| shapes.iter().enumerate().map(|(number, shape)| argument(number, device, shape)).collect();
    let devices = Grid::of(&module)?.device_count();
    grid::evaluate(&module, (0..devices).map(of_device).collect())
}

/// Returns `100 number + 10 device + i` as element `i`.
pub fn argument(number: usize, device: usize, shape: &ArrayShape) -> Literal {
    let ty = shape.element_type();
    let scalar = |i: usize| {
        let x = (100 * number + 10 * device + i) as i64;
        match ty.kind() {
            ElementKind::Float => Scalar::Float(x as f64),
            ElementKind::Complex => Scalar::Complex(x as f64, device as f64),
            ElementKind::Pred => Scalar::Pred((device >> i) & 1 == 1),
            ElementKind::Signed | ElementKind::Unsigned => Scalar::from_i64(ty, x).rounded(ty),
        }
    };
    Literal::from_fn(shape, scalar).unwrap()
}

/// Returns the text of a value: its shape and its elements in row-major order.
pub fn value(literal: &Literal) -> String {
    if literal.shape().as_tuple().is_some() {
        let elements: Vec<String> = literal.elements().iter().map(value).collect();
        return format!("({})", elements.join(", "));
    }
    let Some(shape) = literal.shape().as_array() else { return literal.shape().to_string() };
    let elements = (0..shape.element_count()).map(|i| match literal.get(i) {
        Scalar::Pred(x) => x.to_string(),
        Scalar::Signed(x) => x.to_string(),
        Scalar::Unsigned(x) => x.to_string(),
        Scalar::Float(x) => x.to_string(),
        Scalar::Complex(re, im) => format!("({re}, {im})"),
    });
    format!("{shape} {}", elements.collect::<Vec<_>>().join(" "))
}
