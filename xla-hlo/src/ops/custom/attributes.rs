//! Text form of custom calls.

use super::{CustomCall, CustomCallApi, CustomCallSchedule, DimLabels, PaddingType};
use crate::ops::Precision;
use crate::text::{AttributeCursor, AttributeValue, AttributeWriter, TokenKind, attribute_words};
use crate::{Literal, Result, Shape};

attribute_words! {
    any case CustomCallSchedule, "SCHEDULE_NONE, SCHEDULE_LATEST or SCHEDULE_EARLIEST":
    "SCHEDULE_NONE" => CustomCallSchedule::None,
    "SCHEDULE_LATEST" => CustomCallSchedule::Latest,
    "SCHEDULE_EARLIEST" => CustomCallSchedule::Earliest,
}

attribute_words! {
    any case CustomCallApi,
    "API_VERSION_ORIGINAL, API_VERSION_STATUS_RETURNING, API_VERSION_STATUS_RETURNING_UNIFIED or API_VERSION_TYPED_FFI":
    "API_VERSION_ORIGINAL" => CustomCallApi::Original,
    "API_VERSION_STATUS_RETURNING" => CustomCallApi::StatusReturning,
    "API_VERSION_STATUS_RETURNING_UNIFIED" => CustomCallApi::StatusReturningUnified,
    "API_VERSION_TYPED_FFI" => CustomCallApi::TypedFfi,
}

attribute_words! {
    PaddingType, "PADDING_VALID or PADDING_SAME":
    "PADDING_VALID" => PaddingType::Valid,
    "PADDING_SAME" => PaddingType::Same,
}

impl AttributeValue for DimLabels {
    const WHAT: &'static str = "labels of dimensions such as b01f_01io->b01f";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        Ok(DimLabels(cursor.expect(TokenKind::DimLabels, Self::WHAT)?.to_string()))
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        w.push(&self.0);
    }
}

impl AttributeValue for Vec<Shape> {
    const WHAT: &'static str = "a list of shapes such as {f32[2]{0}, s32[]}";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        cursor.braced(AttributeCursor::shape)
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        w.push("{");
        w.join(self, ", ", |w, shape| w.display(shape));
        w.push("}");
    }
}

impl AttributeValue for Literal {
    const WHAT: &'static str = "a literal with its shape, such as f32[2]{0} {1, 2}";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        cursor.literal()
    }

    /// Writes a literal with its shape. The shape of an array includes a layout, which XLA's parser requires.
    fn write(&self, w: &mut AttributeWriter<'_>) {
        let text = self.to_string();
        match text.strip_prefix(&self.shape().to_string()).filter(|_| self.shape().as_array().is_some()) {
            Some(value) => w.display(format_args!("{}{value}", self.shape().clone().with_default_layouts())),
            None => w.push(&text),
        }
    }
}

/// Writes all attributes, in XLA's order.
pub(super) fn write(op: &CustomCall, w: &mut AttributeWriter<'_>) {
    fn some<T: AttributeValue>(w: &mut AttributeWriter<'_>, name: &'static str, value: Option<&T>) {
        if let Some(value) = value {
            w.attribute(name, value);
        }
    }
    fn unless<T: AttributeValue + PartialEq>(w: &mut AttributeWriter<'_>, name: &'static str, value: &T, default: &T) {
        some(w, name, Some(value).filter(|v| *v != default));
    }
    some(w, "window", op.window.as_ref());
    some(w, "dim_labels", op.dim_labels.as_ref());
    unless(w, "feature_group_count", &op.feature_group_count, &1);
    unless(w, "batch_group_count", &op.batch_group_count, &1);
    some(w, "operand_precision", Some(&op.precision).filter(|p| p.iter().any(|&p| p != Precision::Default)));
    some(w, "padding_type", op.padding_type.as_ref());
    w.attribute("custom_call_target", &op.target);
    some(w, "operand_layout_constraints", op.operand_layouts.as_ref());
    unless(w, "custom_call_has_side_effect", &op.has_side_effect, &false);
    some(w, "literal", op.literal.as_ref());
    unless(w, "output_to_operand_aliasing", &op.aliases, &Vec::new());
    unless(w, "schedule", &op.schedule, &CustomCallSchedule::None);
    unless(w, "api_version", &op.api, &CustomCallApi::Original);
    unless(w, "called_computations", &op.computations, &Vec::new());
}
