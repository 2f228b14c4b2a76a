//! Shape rule of custom calls.

use super::*;
use crate::ops::checks::ensure;

/// Returns the written shape. Attributes must refer to operands and results that exist.
pub(super) fn custom_call(op: &CustomCall, cx: &ShapeContext<'_>) -> Result<Shape> {
    let result = cx.written()?;
    if let Some(shapes) = &op.operand_layouts {
        let count = cx.operands().len();
        ensure!(
            shapes.len() == count,
            "operand_layout_constraints must have one shape for each of the {count} operands, not {}",
            shapes.len()
        );
        for (i, (shape, operand)) in shapes.iter().zip(cx.operands()).enumerate() {
            ensure!(
                shape.compatible(operand),
                "operand_layout_constraints give operand {i} the shape {shape}, it is {operand}"
            );
        }
    }
    let aliases = &op.aliases;
    aliases.iter().try_for_each(|alias| alias.check("custom-call", cx, result))?;
    for &computation in &op.computations {
        cx.computation(computation)?;
    }
    Ok(result.without_layout())
}
