//! Shape rules of tokens and transfers.

use super::super::checks::ensure;
use super::super::collective::check_channel;
use super::Transfer;
use crate::ops::ShapeContext;
use crate::{ElementType, Result, Shape};

pub(super) fn after_all(cx: &ShapeContext<'_>) -> Result<Shape> {
    (0..cx.operands().len()).try_for_each(|i| token(cx, i))?;
    Ok(Shape::Token)
}

pub(super) fn add_dependency(cx: &ShapeContext<'_>) -> Result<Shape> {
    token(cx, 1)?;
    Ok(cx.operand(0)?.without_layout())
}

pub(super) fn transfer(op: &Transfer, cx: &ShapeContext<'_>) -> Result<Shape> {
    match op {
        Transfer::Infeed { .. } => infeed(cx),
        Transfer::Outfeed { shape, .. } => outfeed(shape.as_ref(), cx),
        Transfer::Send(channel) => {
            check_channel(channel.id)?;
            token(cx, 1)?;
            Ok(in_flight(cx.operand(0)?))
        }
        Transfer::Recv(channel) => {
            check_channel(channel.id)?;
            token(cx, 0)?;
            let written = cx.written()?;
            ensure!(data_of(written).is_some(), "the result of recv must be (data, u32[], token[]), it is {written}");
            Ok(written.without_layout())
        }
        Transfer::SendDone(channel) => {
            check_channel(channel.id)?;
            operand_data(cx)?;
            Ok(Shape::Token)
        }
        Transfer::RecvDone(channel) => {
            check_channel(channel.id)?;
            Ok(Shape::Tuple(vec![operand_data(cx)?.without_layout(), Shape::Token]))
        }
    }
}

fn token(cx: &ShapeContext<'_>, i: usize) -> Result<()> {
    let shape = cx.operand(i)?;
    ensure!(*shape == Shape::Token, "operand {i} must be a token, it is {shape}");
    Ok(())
}

fn infeed(cx: &ShapeContext<'_>) -> Result<Shape> {
    token(cx, 0)?;
    let written = cx.written()?;
    let is_pair = matches!(written.as_tuple(), Some([_, Shape::Token]));
    ensure!(is_pair, "the result of infeed must be (data, token[]), it is {written}");
    Ok(written.without_layout())
}

fn outfeed(shape: Option<&Shape>, cx: &ShapeContext<'_>) -> Result<Shape> {
    let data = cx.operand(0)?;
    if let Some(shape) = shape {
        ensure!(shape.compatible(data), "outfeed_shape is {shape}, but operand 0 is {data}");
    }
    token(cx, 1)?;
    Ok(Shape::Token)
}

/// Returns the result shape of `send` and `recv`.
fn in_flight(data: &Shape) -> Shape {
    Shape::Tuple(vec![data.without_layout(), Shape::scalar(ElementType::U32), Shape::Token])
}

/// Returns the data shape of a started transfer.
fn data_of(shape: &Shape) -> Option<&Shape> {
    match shape.as_tuple()? {
        [data, context, Shape::Token] => context.compatible(&Shape::scalar(ElementType::U32)).then_some(data),
        _ => None,
    }
}

/// Returns the data shape of the transfer that operand 0 started.
fn operand_data<'a>(cx: &ShapeContext<'a>) -> Result<&'a Shape> {
    let operand = cx.operand(0)?;
    let Some(data) = data_of(operand) else {
        return Err(crate::Error::invalid_argument(format!(
            "operand 0 must be a transfer (data, u32[], token[]), it is {operand}"
        )));
    };
    Ok(data)
}
