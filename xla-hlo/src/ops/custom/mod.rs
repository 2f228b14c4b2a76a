//! Calls to functions that HLO does not define: their attributes, and the handlers that stand for them.
//!
//! What a call means is up to a [`CustomCallHandler`], found by the call's target in a [`CustomCallRegistry`], an
//! ordinary value that whoever runs a program hands in. Some targets that frameworks emit are built in.

mod attributes;
mod builtin;
mod ffi;
mod handler;
mod operation;
mod proto;
mod shape;
#[cfg(test)]
mod tests;

pub use attributes::DimLabels;
pub use ffi::{FfiAttributes, FfiValue};
pub use handler::{CustomCallContext, CustomCallHandler, CustomCallRegistry};
pub use operation::CustomCallOperation;

use super::{OpRules, Opcode, OutputOperandAlias, Precision, ReadAttributes, ShapeContext, Window, checks};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{CompId, Error, Literal, Result, Shape};

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
    /// The text is a dictionary of typed values; see [`FfiAttributes`].
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

/// A call of a function by name. The text for the handler is the instruction's `backend_config`.
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
    /// How the window is padded.
    pub padding_type: Option<PaddingType>,
    /// Operand shapes with the layouts that the function wants. Without them it takes any.
    pub operand_layouts: Option<Vec<Shape>>,
    /// Whether the call does more than give its result.
    pub has_side_effect: bool,
    /// A value for the function.
    pub literal: Option<Literal>,
    /// Results that live in operand buffers.
    pub aliases: Vec<OutputOperandAlias>,
    /// Where a scheduler should put the call.
    pub schedule: CustomCallSchedule,
    /// What XLA's handlers look like.
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
}

impl ReadAttributes for CustomCall {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        let one: Option<CompId> = r.optional("to_apply")?;
        let several: Option<Vec<CompId>> = r.optional("called_computations")?;
        if one.is_some() && several.is_some() {
            return Err(Error::invalid_argument("custom-call takes to_apply or called_computations, not both"));
        }
        Ok(CustomCall {
            target: r.required("custom_call_target")?,
            window: r.optional("window")?,
            dim_labels: r.optional("dim_labels")?,
            feature_group_count: r.optional("feature_group_count")?.unwrap_or(1),
            batch_group_count: r.optional("batch_group_count")?.unwrap_or(1),
            precision: r.optional("operand_precision")?.unwrap_or_default(),
            padding_type: r.optional("padding_type")?,
            operand_layouts: r.optional("operand_layout_constraints")?,
            has_side_effect: r.optional("custom_call_has_side_effect")?.unwrap_or(false),
            literal: r.optional("literal")?,
            aliases: r.optional("output_to_operand_aliasing")?.unwrap_or_default(),
            schedule: r.optional("schedule")?.unwrap_or_default(),
            api: r.optional("api_version")?.unwrap_or_default(),
            computations: several.unwrap_or_else(|| one.into_iter().collect()),
        })
    }
}

impl OpRules for CustomCall {
    fn opcode(&self) -> Opcode {
        Opcode::CustomCall
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::custom_call(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        attributes::write(self, w);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        let instruction = ev.instruction().ok_or_else(|| Error::internal("a custom call outside of a computation"))?;
        let shapes: Vec<&Shape> = (0..operands.len()).filter_map(|i| ev.operand_shape(i)).collect();
        match self.operation(ev.module(), &shapes, instruction.shape())? {
            Some(CustomCallOperation::Identity) => checks::operands(operands).map(|[operand]| operand),
            Some(CustomCallOperation::TopK(op)) => op.evaluate(ev, operands, shape),
            None => ev.custom_calls().call(instruction, operands),
        }
    }

    fn called_computations(&self) -> Vec<CompId> {
        self.computations.clone()
    }

    fn visit_called_computations(&mut self, f: &mut dyn FnMut(&mut CompId)) {
        self.computations.iter_mut().for_each(f);
    }
}
