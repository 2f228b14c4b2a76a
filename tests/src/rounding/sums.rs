//! Error bounds of sums: dot products, reductions over dimensions and windows, scattered values.

use xla::Result;
use xla_hlo::ops::{BinaryOp, Op, simple_combiner};
use xla_hlo::{CompId, Literal, Module};

use super::movement::apply;
use super::{Measured, extreme, literal, number, rounding, unknown, wide};

/// Measures sums of products: `|x| dy + dx |y| + dx dy`, and a rounding of `|x| |y|` for each product.
pub(super) fn product(op: &Op, operands: &[Measured], value: Literal) -> Result<Measured> {
    let ty = value.array_shape().element_type();
    let dims = value.array_shape().dims().to_vec();
    let products = match op {
        Op::Dot(dot) => dot.dims.lhs_contracting.iter().map(|&d| operands[0].dims()[d]).product::<usize>(),
        Op::Convolution(convolution) => {
            let kernel = operands[1].dims();
            let window: usize = convolution.window.dims.iter().map(|d| d.size).product();
            window * kernel[convolution.dims.kernel_input_feature]
        }
        op => return Err(unknown(op.opcode())),
    };
    let [x, y] = operands else { return Err(unknown(op.opcode())) };
    let term = |x: Literal, y: Literal| apply(op, vec![x, y], &dims, None);
    let sizes = term(x.sizes()?, y.sizes()?)?;
    let mut terms = Vec::new();
    if x.error.is_some() {
        terms.push(term(x.errors()?, y.sizes()?)?);
    }
    if y.error.is_some() {
        terms.push(term(x.sizes()?, y.errors()?)?);
    }
    if x.error.is_some() && y.error.is_some() {
        terms.push(term(x.errors()?, y.errors()?)?);
    }
    let result = value.clone();
    Measured::new(value, |i| {
        let passed: f64 = terms.iter().map(|term| number(term, i)).sum();
        let summed = products as f64 * rounding(wide(ty), number(&sizes, i));
        passed + summed + rounding(ty, number(&result, i).abs())
    })
}

/// Measures results of combiners: sums, greatest and least values, scattered values; and sorted arrays.
pub(super) fn combined(module: &Module, op: &Op, operands: &[Measured], value: Literal) -> Result<Measured> {
    let is_exact = operands.iter().all(|operand| operand.error.is_none());
    let ty = value.array_shape().element_type();
    let combining = |id: CompId| module.get(id).and_then(simple_combiner);
    match op {
        Op::Sort(_) => {
            let greatest = (0..operands[0].count()).map(|i| operands[0].error(i)).fold(0.0, f64::max);
            // The error of a sorted value is at most the greatest error of all values.
            Measured::new(value, |_| greatest)
        }
        Op::Reduce(reduce) => {
            let length = reduce.dimensions.iter().map(|&d| operands[0].dims()[d]).product();
            reduced(op, combining(reduce.computation), length, operands, value)
        }
        Op::ReduceWindow(window) => {
            let length = window.window.dims.iter().map(|d| d.size).product();
            reduced(op, combining(window.computation), length, operands, value)
        }
        Op::Scatter(scatter) => {
            let [into, places, updates] = operands else { return Err(unknown("scatter of several arrays")) };
            if places.error.is_some() {
                return Err(unknown("scatter at rounded places"));
            }
            match combining(scatter.computation) {
                Some(BinaryOp::Add) if ty.is_float() => {
                    let sum = |of: [Literal; 2]| {
                        let [into, updates] = of;
                        let dims = value.array_shape().dims();
                        apply(op, vec![into, places.value.clone(), updates], dims, Some(BinaryOp::Add))
                    };
                    let passed = sum([into.errors()?, updates.errors()?])?;
                    let sizes = sum([into.sizes()?, updates.sizes()?])?;
                    let zeros = literal(into.dims(), |_| 0.0)?;
                    let counts = sum([zeros, literal(updates.dims(), |_| 1.0)?])?;
                    Measured::new(value.clone(), |i| {
                        number(&passed, i) + number(&counts, i) * rounding(ty, number(&sizes, i))
                    })
                }
                _ if is_exact => Ok(Measured::exact(value)),
                _ => Err(unknown("scatter of rounded values with that combiner")),
            }
        }
        Op::SelectAndScatter(scatter) => {
            let [x, source, _] = operands else { return Err(unknown("select-and-scatter of several arrays")) };
            if x.error.is_some() || combining(scatter.scatter) != Some(BinaryOp::Add) {
                return Err(unknown("select-and-scatter by rounded values"));
            }
            // An element is in at most as many windows as a window has elements.
            let window = scatter.window.dims.iter().map(|d| d.size).product::<usize>() as f64;
            let greatest = |of: &dyn Fn(usize) -> f64| (0..source.count()).map(of).fold(0.0, f64::max);
            let (size, error) = (greatest(&|i| source.number(i).abs()), greatest(&|i| source.error(i)));
            Measured::new(value, |_| window * (error + rounding(ty, window * size)))
        }
        op => Err(unknown(op.opcode())),
    }
}

/// Measures a reduction of `length` elements.
fn reduced(
    op: &Op,
    combining: Option<BinaryOp>,
    length: usize,
    operands: &[Measured],
    value: Literal,
) -> Result<Measured> {
    let is_exact = operands.iter().all(|operand| operand.error.is_none());
    let ty = value.array_shape().element_type();
    let [x, init] = operands else { return Err(unknown("reductions of several arrays to one")) };
    let all = |of: [Literal; 2], combining| apply(op, of.to_vec(), value.array_shape().dims(), Some(combining));
    match combining {
        Some(BinaryOp::Add) if ty.is_float() => {
            let passed = all([x.errors()?, init.errors()?], BinaryOp::Add)?;
            let sizes = all([x.sizes()?, init.sizes()?], BinaryOp::Add)?;
            Measured::new(value.clone(), |i| number(&passed, i) + length as f64 * rounding(ty, number(&sizes, i)))
        }
        Some(BinaryOp::Maximum | BinaryOp::Minimum) if !is_exact => {
            // Elements that cannot be the greatest do not contribute.
            let sign = if combining == Some(BinaryOp::Maximum) { 1.0 } else { -1.0 };
            let [low, high] = [-1.0, 1.0].map(|side| {
                let bound = |x: &Measured| literal(x.dims(), |i| sign * x.number(i) + side * x.error(i));
                all([bound(x)?, bound(init)?], BinaryOp::Maximum)
            });
            let ((low, high), greatest) = ((low?, high?), all([x.errors()?, init.errors()?], BinaryOp::Maximum)?);
            let of_bounds = |i| extreme(sign * number(&value, i), number(&low, i), number(&high, i));
            Measured::new(value.clone(), |i| of_bounds(i).min(number(&greatest, i)))
        }
        Some(BinaryOp::Multiply) if ty.is_float() => Err(unknown("products over dimensions")),
        _ if is_exact => Ok(Measured::exact(value)),
        _ => Err(unknown("reductions of rounded values with that combiner")),
    }
}
