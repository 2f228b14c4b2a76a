//! The custom call itself: target and attributes.

use crate::ops::{OutputOperandAlias, Precision, Window};
use crate::{CompId, Literal, Shape};

/// `schedule=`: where a scheduler should put a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CustomCallSchedule {
    /// Anywhere.
    #[default]
    None,
    /// As late as possible.
    Latest,
    /// As early as possible.
    Earliest,
}

/// `api_version=`: what XLA's own handlers of a target look like, and what the backend's text says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CustomCallApi {
    /// The text is opaque.
    #[default]
    Original,
    /// The text is opaque; the handler may fail.
    StatusReturning,
    /// The same on every platform.
    StatusReturningUnified,
    /// The text is a dictionary of typed values; see [`FfiAttributes`](super::FfiAttributes).
    TypedFfi,
}

/// `padding_type=`: how the window of a convolution is padded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PaddingType {
    /// Not at all.
    Valid,
    /// So that the result has as many elements as the input has strides.
    Same,
}

/// The labels of a convolution's dimensions as text; a custom call gives them no meaning.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DimLabels(pub String);

/// A call of a function by name. The handler's configuration is the instruction's `backend_config`.
///
/// The result's shape is the written one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CustomCall {
    /// The function's name.
    pub target: String,
    /// The window of calls that stand for a convolution.
    pub window: Option<Window>,
    /// The labels of a convolution's dimensions, such as `b01f_01io->b01f`; `?` stands for dimensions without one.
    pub dim_labels: Option<DimLabels>,
    /// Groups of channels of a convolution.
    pub feature_group_count: i64,
    /// Groups of images of a convolution.
    pub batch_group_count: i64,
    /// One for each operand, or empty for the default.
    pub precision: Vec<Precision>,
    /// Padding of the window.
    pub padding_type: Option<PaddingType>,
    /// Operand shapes with the layouts that the function wants. Without them it takes any.
    pub operand_layouts: Option<Vec<Shape>>,
    /// Whether the call does more than give its result.
    pub has_side_effect: bool,
    /// A value for the function.
    pub literal: Option<Literal>,
    /// Results that live in operand buffers.
    pub aliases: Vec<OutputOperandAlias>,
    /// Wish for the call's place in the schedule.
    pub schedule: CustomCallSchedule,
    /// Interface of XLA's handlers.
    pub api: CustomCallApi,
    /// Computations that the function may run.
    pub computations: Vec<CompId>,
}

impl CustomCall {
    /// A call of `target` without attributes.
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

    /// The results that live in operand buffers, as numbers of leaves: of an operand's among all operands', of a
    /// result's among all results', arrays and tokens depth first.
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
