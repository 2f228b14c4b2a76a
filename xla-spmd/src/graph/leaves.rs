//! Arrays of tuples, and the operands of instructions that exist only for sharding.

use xla_hlo::sdy::Role;
use xla_hlo::{Computation, Error, InstrId, Op, Result, Shape};

/// Checks the operands and the result of an instruction that exists only for sharding.
pub(super) fn check_arrays(computation: &Computation, at: InstrId, role: &Role) -> Result<()> {
    let instruction = &computation[at];
    let operands = || instruction.operands().iter().map(|&operand| computation[operand].shape());
    let is_valid = match role {
        Role::GlobalToLocal(_) | Role::LocalToGlobal(_) => true,
        Role::Group(_) => operands().count() == 1,
        Role::Constraint(_) | Role::Reshard(_) | Role::FunctionResult(_) | Role::Barrier(_) | Role::DataFlowEdge(_) => {
            let is_one = |shape: &Shape| shape.leaves().len() == 1;
            let result = instruction.shape();
            is_one(result) && operands().map(|shape| (is_one(shape), shape.dims())).eq([(true, result.dims())])
        }
    };
    if !is_valid {
        return Err(Error::invalid_argument(
            "the custom call needs one operand, and a result of its dimensions unless it adds the operand to a group",
        ));
    }
    Ok(())
}

/// Returns the instruction that computes a leaf, and the leaf's number there: looks through tuples and their elements.
pub(super) fn source_of(computation: &Computation, mut id: InstrId, mut leaf: usize) -> (InstrId, usize) {
    loop {
        let instruction = &computation[id];
        match instruction.op() {
            Op::Tuple(_) => {
                let mut found = None;
                for &operand in instruction.operands() {
                    let count = computation[operand].shape().leaves().len();
                    if leaf < count {
                        found = Some(operand);
                        break;
                    }
                    leaf -= count;
                }
                let Some(operand) = found else { return (id, leaf) };
                id = operand;
            }
            Op::GetTupleElement(element) => {
                leaf += leaves_before(computation[instruction.operand(0)].shape(), element.index);
                id = instruction.operand(0);
            }
            _ => return (id, leaf),
        }
    }
}

/// Returns the number of leaves of the elements of a tuple before element `index`.
pub(super) fn leaves_before(tuple: &Shape, index: usize) -> usize {
    tuple.as_tuple().unwrap_or_default().iter().take(index).map(|shape| shape.leaves().len()).sum()
}
