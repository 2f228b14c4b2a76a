//! Reasons to gather the operands of a collective.

use std::fmt;

/// Reason why each member of a collective gathers the operands of all members and computes the results itself, instead
/// of executing an operation of the engine. Each of `N` members then has the memory and the work of all `N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gathering {
    /// The combiner is not a single associative operation on accumulator and element, in this order.
    Combiner,
    /// The device is in no group.
    NoGroup,
    /// An array has a dimension of dynamic size.
    DynamicSize,
    /// The shapes do not fit the number of members, or the types of operands and results differ.
    Shapes,
    /// Operands and results have different layouts in memory, or an array is tiled, or rows are not contiguous. The
    /// engine then receives literals, which are row-major.
    Layouts,
    /// The engine does not accept the sizes.
    Sizes,
}

impl fmt::Display for Gathering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Gathering::Combiner => "the combiner is not a single operation",
            Gathering::NoGroup => "the device is in no group",
            Gathering::DynamicSize => "an array has a dynamic size",
            Gathering::Shapes => "the shapes do not fit the group",
            Gathering::Layouts => "the layouts of operands and results differ",
            Gathering::Sizes => "the sizes are too large",
        })
    }
}
