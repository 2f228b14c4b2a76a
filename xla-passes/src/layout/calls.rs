//! Layouts of custom calls: operands and results of handlers, which access the bytes of arrays.

use std::collections::HashSet;

use xla_hlo::{ArrayShape, CompId, Computation, InstrId, Layout, Module, Op, Result, Shape};

use super::border::{self, Border};

/// A custom call that states a layout other than row-major.
pub(super) struct Call {
    id: InstrId,
    /// Shapes of the operands in the layouts that the call states; empty if it accepts any.
    operands: Vec<Shape>,
    result: Shape,
}

/// Returns the calls that a handler computes and that state layouts other than row-major.
pub(super) fn stated(module: &Module, id: CompId) -> Vec<Call> {
    let computation = &module[id];
    let call = |id: InstrId| {
        let Op::CustomCall(op) = computation[id].op() else { return None };
        let operands = op.operand_layouts.iter().flatten().map(in_order).collect();
        let call = Call { id, operands, result: in_order(computation[id].shape()) };
        let shapes = computation.operand_shapes(id);
        let has_handler = || matches!(op.operation(module, &shapes, computation[id].shape()), Ok(None));
        (!call.is_row_major() && call.is_static() && has_handler()).then_some(call)
    };
    computation.post_order().into_iter().filter_map(call).collect()
}

/// Returns the shape with only the order of dimensions, without tiles and packing.
fn in_order(shape: &Shape) -> Shape {
    shape.map_layouts(&mut |array| Some(Layout::from_minor_to_major(array.minor_to_major())))
}

/// Returns the bitcasts that are already at the boundary of a call: they move no data, to an operand or from a result.
pub(super) fn bitcasts(computation: &Computation, calls: &[Call]) -> HashSet<InstrId> {
    let mut found = HashSet::new();
    for call in calls {
        for (&operand, stated) in computation[call.id].operands().iter().zip(&call.operands) {
            if is_written_for(computation, operand, call.id, stated) {
                found.insert(operand);
            }
        }
        border::readers(computation, call.id, &call.result, &mut found);
    }
    found
}

/// Whether an operand is a bitcast of row-major bytes to the stated layout that only this call uses.
fn is_written_for(computation: &Computation, operand: InstrId, call: InstrId, stated: &Shape) -> bool {
    let Shape::Array(array) = stated else { return false };
    matches!(computation[operand].op(), Op::Bitcast(_))
        && computation[operand].users().iter().all(|&user| user == call)
        && border::is_as_asked(computation, operand, array)
        && border::is_view(computation, operand, computation[operand].operand(0))
}

impl Call {
    fn shapes(&self) -> impl Iterator<Item = &Shape> {
        self.operands.iter().chain([&self.result])
    }

    fn is_row_major(&self) -> bool {
        self.shapes().all(border::is_row_major)
    }

    fn is_static(&self) -> bool {
        let leaves = self.shapes().flat_map(Shape::leaves);
        leaves.into_iter().all(|(_, leaf)| leaf.as_array().is_none_or(ArrayShape::is_static))
    }

    /// Converts the call's operands to the layouts that it states, and its results to row-major for its users.
    pub fn put_border(&self, border: &mut Border<'_>) -> Result<()> {
        for (i, stated) in self.operands.iter().enumerate() {
            let operand = border.at.graph()[self.id].operand(i);
            let wanted = border.close(operand, stated)?;
            if wanted != operand {
                border.at.graph_mut().replace_operand(self.id, i, wanted);
            }
        }
        border.open(self.id, &self.result)
    }
}
