//! Evaluator of the elementwise family, which applies one scalar function to every element.

use super::function::ElementFunction;
use super::*;
use crate::eval::parallel::ELEMENT;
use crate::literal::scalar::mask;
use crate::ops::Op;
use crate::{ArrayShape, Scalar};

pub(super) fn unary(op: &Unary, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    apply(ev, op.clone().into(), &operands, shape)
}

pub(super) fn binary(op: &Binary, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    apply(ev, op.clone().into(), &operands, shape)
}

pub(super) fn compare(op: &Compare, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    apply(ev, op.clone().into(), &operands, shape)
}

pub(super) fn select(op: &Select, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    apply(ev, op.clone().into(), &operands, shape)
}

pub(super) fn clamp(op: &Clamp, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    apply(ev, op.clone().into(), &operands, shape)
}

pub(super) fn convert(op: &Convert, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    apply(ev, op.clone().into(), &operands, shape)
}

pub(super) fn bitcast_convert(
    op: &BitcastConvert,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let result = shape.expect_array()?;
    let operand = operand(&operands, 0)?;
    let (from, to) = (operand.array_shape().element_type().bit_width(), result.element_type().bit_width());
    match from.cmp(&to) {
        std::cmp::Ordering::Equal => apply(ev, op.clone().into(), &operands, shape),
        std::cmp::Ordering::Less => join_bits(operand, result),
        std::cmp::Ordering::Greater => split_bits(operand, result),
    }
}

pub(super) fn reduce_precision(
    op: &ReducePrecision,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    apply(ev, op.clone().into(), &operands, shape)
}

/// Applies the operation to every element. Scalar operands are broadcast to the size of array operands.
fn apply(ev: &mut Evaluator<'_>, op: Op, operands: &[Literal], shape: &Shape) -> Result<Literal> {
    let shape = shape.expect_array()?;
    let types: Vec<_> = operands.iter().map(|operand| operand.array_shape().element_type()).collect();
    let function = ElementFunction::new(&op, &types, shape.element_type())?
        .ok_or_else(|| Error::internal(format!("{} is not elementwise", op.opcode())))?;
    let columns: Vec<Column<'_>> = operands.iter().map(Column::new).collect();
    if !shape.is_scalar() && columns.iter().all(|column| column.step == 0) {
        let elements: Vec<Scalar> = columns.iter().map(|column| column.at(0)).collect();
        return Literal::splat(shape, function.compute(&elements));
    }
    match columns[..] {
        [x] => ev.array(shape, ELEMENT, |i| function.compute(&[x.at(i)])),
        [x, y] => ev.array(shape, ELEMENT, |i| function.compute(&[x.at(i), y.at(i)])),
        [x, y, z] => ev.array(shape, ELEMENT, |i| function.compute(&[x.at(i), y.at(i), z.at(i)])),
        _ => Err(Error::internal(format!("{} has {} operands", op.opcode(), operands.len()))),
    }
}

/// Elements of an operand, with the properties needed for access to each of them.
#[derive(Clone, Copy)]
struct Column<'a> {
    ty: ElementType,
    bytes: &'a [u8],
    /// Bytes from one element to the next; 0 for a scalar or a splat.
    step: usize,
}

impl<'a> Column<'a> {
    fn new(operand: &'a Literal) -> Column<'a> {
        let ty = operand.array_shape().element_type();
        if let Some(element) = operand.as_splat() {
            return Column { ty, bytes: element, step: 0 };
        }
        let step = if operand.array_shape().is_scalar() { 0 } else { ty.byte_width() };
        Column { ty, bytes: operand.bytes(), step }
    }

    fn at(self, i: usize) -> Scalar {
        Scalar::read(self.ty, &self.bytes[i * self.step..])
    }
}

fn operand(operands: &[Literal], i: usize) -> Result<&Literal> {
    operands.get(i).ok_or_else(|| Error::internal(format!("operand {i} is missing")))
}

/// Joins consecutive elements into one element of the result; the first contains the least significant bits.
fn join_bits(operand: &Literal, shape: &ArrayShape) -> Result<Literal> {
    let from = operand.array_shape().element_type();
    let parts = shape.element_type().bit_width() / from.bit_width();
    Literal::from_fn(shape, |i| {
        let bits = (0..parts).rev().fold(0, |bits, part| {
            let next = operand.get(i * parts + part).to_bits(from);
            // The shift is never by all 64 bits, since a part is narrower than the whole.
            (bits << from.bit_width()) | next
        });
        Scalar::from_bits(shape.element_type(), bits)
    })
}

/// Splits each element into consecutive elements of the result; the first contains the least significant bits.
fn split_bits(operand: &Literal, shape: &ArrayShape) -> Result<Literal> {
    let from = operand.array_shape().element_type();
    let width = shape.element_type().bit_width();
    let parts = from.bit_width() / width;
    Literal::from_fn(shape, |i| {
        let bits = operand.get(i / parts).to_bits(from);
        // A boolean is a single bit, so the other bits are masked.
        Scalar::from_bits(shape.element_type(), bits >> (i % parts * width) & mask(width))
    })
}
