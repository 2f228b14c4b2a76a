//! Error bounds of data movement: the operation is applied to the array of errors.

use xla::Result;
use xla_hlo::builder::ModuleBuilder;
use xla_hlo::eval::evaluate;
use xla_hlo::ops::{Binary, BinaryOp, Op};
use xla_hlo::{ArrayShape, ElementType, Literal, Shape};

use super::{Measured, unknown};

/// Measures the result of an operation that only moves elements.
pub(super) fn measured(op: &Op, operands: &[Measured], value: Literal) -> Result<Measured> {
    let moved = match op {
        Op::Broadcast(_)
        | Op::Reshape(_)
        | Op::Transpose(_)
        | Op::Slice(_)
        | Op::Reverse(_)
        | Op::DynamicSlice(_)
        | Op::Gather(_) => 1,
        Op::Pad(_) | Op::DynamicUpdateSlice(_) => 2,
        Op::Concatenate(_) => operands.len(),
        op => return Err(unknown(op.opcode())),
    };
    if operands[moved..].iter().any(|index| index.error.is_some()) {
        return Err(unknown(format!("{} at rounded places", op.opcode())));
    }
    if operands.iter().all(|operand| operand.error.is_none()) {
        return Ok(Measured::exact(value));
    }
    let data = operands[..moved].iter().map(Measured::errors);
    let places = operands[moved..].iter().map(|index| Ok(index.value.clone()));
    let literals: Vec<Literal> = data.chain(places).collect::<Result<_>>()?;
    let error = apply(op, literals, value.array_shape().dims(), None)?;
    Ok(Measured { value, error: Some(error) })
}

/// Runs an operation on arrays with a result of `f64`, and with another combiner if it has one.
pub(super) fn apply(op: &Op, operands: Vec<Literal>, dims: &[usize], combiner: Option<BinaryOp>) -> Result<Literal> {
    let mut module = ModuleBuilder::new("errors");
    let scalar = || Shape::scalar(ElementType::F64);
    let mut op = op.clone();
    if let Some(combining) = combiner {
        let mut b = module.computation("combiner");
        let (x, y) = (b.parameter(scalar())?, b.parameter(scalar())?);
        let root = b.instruction(Binary { op: combining }, None, [x, y])?;
        let id = b.finish(root);
        match &mut op {
            Op::Reduce(op) => op.computation = id,
            Op::ReduceWindow(op) => op.computation = id,
            Op::Scatter(op) => op.computation = id,
            op => return Err(unknown(op.opcode())),
        }
    }
    let mut b = module.computation("main");
    let shapes = operands.iter().map(|operand| operand.shape().with_default_layouts());
    let ids = shapes.map(|shape| b.parameter(shape)).collect::<Result<Vec<_>>>()?;
    let root = b.instruction(op, Some(ArrayShape::new(ElementType::F64, dims).into()), ids)?;
    let main = b.finish(root);
    let module = module.finish(main)?;
    evaluate(&module, operands)
}
