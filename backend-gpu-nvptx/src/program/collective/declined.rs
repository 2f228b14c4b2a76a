//! Reasons against NCCL.

use std::fmt;

use xla_hlo::ElementType;
use xla_hlo::ops::BinaryOp;

/// Reason why the service executes a collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Declined {
    /// NCCL has no such operation.
    Operation(&'static str),
    /// NCCL has no such combiner of elements of this type, or another result for NaN.
    Combiner(Option<BinaryOp>, ElementType),
    /// The combiner's type is not the type of the elements.
    Accumulator(ElementType, ElementType),
    /// A member would make this number of calls.
    Calls(usize),
}

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Declined::Operation(name) => write!(f, "NCCL has no {name} with these operands"),
            Declined::Combiner(Some(operation), ty) => {
                write!(f, "NCCL does not compute {operation:?} of {ty} as HLO does")
            }
            Declined::Combiner(None, ty) => write!(f, "the combiner of {ty} is not a single operation"),
            Declined::Accumulator(accumulator, ty) => write!(f, "elements of {ty} are combined as {accumulator}"),
            Declined::Calls(calls) => write!(f, "the parts are not contiguous: {calls} calls for each member"),
        }
    }
}
