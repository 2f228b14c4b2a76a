//! The custom call operation: target and attributes.

use crate::ops::{OutputOperandAlias, Precision, Window};
use crate::{CompId, Literal, Shape};

/// `schedule=`: requested position of a call in the schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CustomCallSchedule {
    /// No preference.
    #[default]
    None,
    /// As late as possible.
    Latest,
    /// As early as possible.
    Earliest,
}

/// `api_version=`: interface of XLA's handlers of a target, and format of the text in `backend_config`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CustomCallApi {
    /// Opaque text.
    #[default]
    Original,
    /// Opaque text; the handler returns a status.
    StatusReturning,
    /// Opaque text; the handler returns a status and has the same signature on every platform.
    StatusReturningUnified,
    /// A dictionary of typed values; see [`FfiAttributes`](super::FfiAttributes).
    TypedFfi,
}

/// `padding_type=`: padding of the window of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PaddingType {
    /// No padding.
    Valid,
    /// Padding for a result size of the input size divided by the stride.
    Same,
}

/// Labels of a convolution's dimensions as text. They have no meaning for custom calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DimLabels(pub String);

/// `custom-call`: a call of a function by name. The configuration of the handler is the instruction's `backend_config`.
///
/// The shape of the result is the written one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CustomCall {
    /// Name of the function.
    pub target: String,
    /// Window, for calls that represent a convolution.
    pub window: Option<Window>,
    /// Labels of a convolution's dimensions, such as `b01f_01io->b01f`; `?` denotes a dimension without a label.
    pub dim_labels: Option<DimLabels>,
    /// Number of channel groups of a convolution.
    pub feature_group_count: i64,
    /// Number of image groups of a convolution.
    pub batch_group_count: i64,
    /// Precision of each operand; empty for the default.
    pub precision: Vec<Precision>,
    /// Padding of the window.
    pub padding_type: Option<PaddingType>,
    /// Operand shapes with the layouts that the function requires; `None` if it accepts any layout.
    pub operand_layouts: Option<Vec<Shape>>,
    /// Whether the call has an effect beyond its result.
    pub has_side_effect: bool,
    /// A literal argument of the function.
    pub literal: Option<Literal>,
    /// Results that share operand buffers.
    pub aliases: Vec<OutputOperandAlias>,
    /// Requested position in the schedule.
    pub schedule: CustomCallSchedule,
    /// Interface of XLA's handlers of the target.
    pub api: CustomCallApi,
    /// Computations that the function may call.
    pub computations: Vec<CompId>,
}

impl CustomCall {
    /// Creates a call of `target` without attributes.
    pub fn new(target: impl Into<String>) -> CustomCall {
        CustomCall {
            target: target.into(),
            window: None,
            dim_labels: None,
            feature_group_count: 1,
            batch_group_count: 1,
            precision: Vec::new(),
            padding_type: None,
            operand_layouts: None,
            has_side_effect: false,
            literal: None,
            aliases: Vec::new(),
            schedule: CustomCallSchedule::None,
            api: CustomCallApi::Original,
            computations: Vec::new(),
        }
    }

    /// Returns the aliases as pairs of leaf indices: of an operand's leaf among the leaves of all operands, and of a
    /// result's leaf among the leaves of the result. Leaves are arrays and tokens, depth first.
    pub fn aliased_leaves(&self, operands: &[&Shape], result: &Shape) -> Vec<(usize, usize)> {
        let place = |shape: &Shape, path: &[usize]| shape.leaves().iter().position(|(leaf, _)| leaf == path);
        let alias = |alias: &OutputOperandAlias| {
            let before: usize = operands.get(..alias.operand)?.iter().map(|shape| shape.leaves().len()).sum();
            let operand = before + place(operands.get(alias.operand)?, &alias.path)?;
            Some((operand, place(result, &alias.output)?))
        };
        self.aliases.iter().filter_map(alias).collect()
    }
}
