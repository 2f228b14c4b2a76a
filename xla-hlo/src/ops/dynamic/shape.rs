//! Shape rules of operations on dynamic sizes.

use super::super::checks::ensure;
use super::Dynamic;
use crate::ops::ShapeContext;
use crate::{ArrayShape, Dynamism, ElementType, Result, Shape};

pub(super) fn infer(op: &Dynamic, cx: &ShapeContext<'_>) -> Result<Shape> {
    let operand = cx.array(0)?;
    match op {
        Dynamic::GetDimensionSize { dimension } => {
            check_dimension(*dimension, operand)?;
            Ok(Shape::scalar(ElementType::S32))
        }
        Dynamic::SetDimensionSize { dimension } => {
            check_dimension(*dimension, operand)?;
            check_size(cx, 1)?;
            let mut dynamism: Vec<Dynamism> = (0..operand.rank()).map(|d| operand.dynamism(d)).collect();
            dynamism[*dimension] = Dynamism::Bounded;
            Ok(operand.clone().with_layout(None).with_dynamism(dynamism).into())
        }
        Dynamic::DynamicReshape => {
            let result = cx.written_array()?;
            super::super::checks::same_element_type(("the operand", operand), ("the result", result))?;
            let sizes = cx.operands().len() - 1;
            ensure!(sizes == result.rank(), "the result {result} needs {} sizes, found {sizes}", result.rank());
            (1..=sizes).try_for_each(|i| check_size(cx, i))?;
            let (before, after) = (operand.checked_element_count()?, result.checked_element_count()?);
            ensure!(before == after, "the operand {operand} has up to {before} elements, the result {result} {after}");
            Ok(result.clone().with_layout(None).into())
        }
    }
}

fn check_dimension(dimension: usize, operand: &ArrayShape) -> Result<()> {
    ensure!(dimension < operand.rank(), "the operand {operand} has no dimension {dimension}");
    Ok(())
}

fn check_size(cx: &ShapeContext<'_>, i: usize) -> Result<()> {
    let size = cx.operand(i)?;
    ensure!(size.compatible(&Shape::scalar(ElementType::S32)), "operand {i}, a size, must be s32[], it is {size}");
    Ok(())
}
