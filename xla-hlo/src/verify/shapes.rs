//! Shape checks: sizes are addressable, layouts fit, and shapes equal those that the operations' rules infer.

use super::Report;
use crate::ops::{Op, ShapeContext};
use crate::{ArrayShape, Computation, InstrId, Shape};

pub(super) fn check(report: &mut Report<'_>) {
    let module = report.module;
    for (_, computation) in module.iter() {
        for id in computation.ids() {
            check_instruction(report, computation, id);
        }
    }
}

fn check_instruction(report: &mut Report<'_>, computation: &Computation, id: InstrId) {
    let instruction = &computation[id];
    for (_, leaf) in instruction.shape().leaves() {
        if let Some(complaint) = leaf.as_array().and_then(complaint_about) {
            report.instruction(computation, id, complaint);
            return;
        }
    }
    let operands = computation.operand_shapes(id);
    let cx = ShapeContext::new(report.module, &operands, Some(instruction.shape()));
    match instruction.op().rules().infer_shape(&cx) {
        Ok(expected) if expected.compatible(instruction.shape()) => {
            if let Op::Dynamic(op) = instruction.op()
                && let Err(error) = op.check_written(computation, id)
            {
                report.instruction(computation, id, error.message());
            }
        }
        Ok(expected) => report.instruction(
            computation,
            id,
            format!(
                "{} has shape {}, but the instruction has {}",
                instruction.opcode(),
                expected.without_layout(),
                instruction.shape().without_layout()
            ),
        ),
        Err(error) => report.instruction(computation, id, error.message()),
    }
}

/// Returns the fault of an array's shape, if any.
pub(super) fn complaint_about(array: &ArrayShape) -> Option<String> {
    if let Err(error) = array.checked_element_count() {
        return Some(error.message().to_string());
    }
    let layout = array.layout()?;
    if !layout.is_permutation_of(array.rank()) {
        let shape = Shape::Array(array.clone());
        return Some(format!("the layout of {shape} must name each of its {} dimensions once", array.rank()));
    }
    None
}
