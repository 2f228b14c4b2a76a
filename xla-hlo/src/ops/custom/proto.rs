//! Custom calls in protobuf.

use super::{CustomCall, CustomCallApi, CustomCallSchedule, DimLabels, PaddingType};
use crate::ops::control_flow::{read_aliases, write_aliases};
use crate::ops::dot::{read_precision_config, write_precision_config};
use crate::ops::window::{read_window, write_window};
use crate::proto::messages::ConvolutionDimensionNumbers;
use crate::proto::numbers::index;
use crate::proto::{ProtoAttributes, ProtoNumber, ProtoReader, ProtoWriter, literal, proto_numbers, shape};
use crate::{Error, Opcode, Result, ResultExt};

proto_numbers! { CustomCallSchedule: 0 => None, 1 => Latest, 2 => Earliest }

proto_numbers! { CustomCallApi: 1 => Original, 2 => StatusReturning, 3 => StatusReturningUnified, 4 => TypedFfi }

proto_numbers! { PaddingType: 1 => Valid, 2 => Same }

/// Enum value for an attribute that is not set.
const UNSAID: i32 = 0;

impl ProtoAttributes for CustomCall {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let (precision, _) = read_precision_config(r.message.precision_config.as_deref())?;
        let labels = r.message.convolution_dimension_numbers.take();
        let literal = r.message.literal.take().map(|l| literal::read(*l)).transpose();
        let layouts = r.message.operand_shapes_with_layout.iter().map(shape::read).collect::<Result<Vec<_>>>();
        let groups = |count: i64| if count == 0 { 1 } else { count };
        Ok(CustomCall {
            target: std::mem::take(&mut r.message.custom_call_target),
            window: r.message.window.take().map(|w| read_window(Some(&w))).transpose()?,
            dim_labels: labels.map(|l| read_labels(&l)).transpose().context(|| "convolution_dimension_numbers")?,
            feature_group_count: groups(r.message.feature_group_count),
            batch_group_count: groups(r.message.batch_group_count),
            precision,
            padding_type: match r.message.padding_type {
                UNSAID => None,
                number => Some(ProtoReader::number("padding_type", number)?),
            },
            operand_layouts: if r.message.constrain_layout { Some(layouts?) } else { None },
            has_side_effect: r.message.custom_call_has_side_effect,
            literal: literal.context(|| "literal")?,
            aliases: read_aliases(&r.message.output_operand_aliasing)?,
            schedule: ProtoReader::number("custom_call_schedule", r.message.custom_call_schedule)?,
            api: match r.message.custom_call_api_version {
                UNSAID => CustomCallApi::Original,
                number => ProtoReader::number("custom_call_api_version", number)?,
            },
            computations: r.calls()?,
        })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        let CustomCall {
            target,
            window,
            dim_labels,
            feature_group_count,
            batch_group_count,
            precision,
            padding_type,
            operand_layouts,
            has_side_effect,
            literal,
            aliases,
            schedule,
            api,
            computations,
        } = self;
        w.calls(computations)?;
        let operands = w.operands.len();
        let message = &mut *w.message;
        message.custom_call_target.clone_from(target);
        message.window = window.as_ref().map(write_window).transpose()?;
        message.convolution_dimension_numbers = dim_labels.as_ref().map(write_labels).transpose()?.map(Box::new);
        message.feature_group_count = *feature_group_count;
        message.batch_group_count = *batch_group_count;
        message.precision_config = Some(Box::new(write_precision_config(precision, None, operands)));
        message.padding_type = padding_type.map_or(UNSAID, ProtoNumber::number);
        message.constrain_layout = operand_layouts.is_some();
        message.operand_shapes_with_layout =
            operand_layouts.iter().flatten().map(shape::write).collect::<Result<_>>()?;
        message.custom_call_has_side_effect = *has_side_effect;
        let literal = literal.as_ref().map(|l| literal::write(l, l.shape())).transpose()?;
        message.literal = literal.map(Box::new);
        message.output_operand_aliasing = write_aliases(aliases)?;
        message.custom_call_schedule = schedule.number();
        message.custom_call_api_version = api.number();
        Ok(())
    }
}

/// Upper bound of dimension numbers: no array has more dimensions.
const MAX_RANK: usize = 64;

/// Returns dimension labels as text, such as `b01f_01io->b01f`, with `?` for a dimension without a role. A label
/// omitted in text is dimension 0 in protobuf, and is overwritten by a label that is present.
fn read_labels(dims: &ConvolutionDimensionNumbers) -> Result<DimLabels> {
    let side = |a: (char, i64), b: (char, i64), spatial: &[i64]| {
        let mut labels = Vec::new();
        let named = [(a.0.to_string(), a.1), (b.0.to_string(), b.1)];
        let spatial = spatial.iter().enumerate().map(|(i, &d)| (i.to_string(), d));
        for (label, dimension) in named.into_iter().chain(spatial) {
            let place = index("a dimension", dimension)?;
            if place >= MAX_RANK {
                return Err(Error::invalid_argument(format!("dimension {place} is too large")));
            }
            if labels.len() <= place {
                labels.resize(place + 1, "?".to_string());
            }
            labels[place] = label;
        }
        Ok(labels.concat())
    };
    let input = ('b', dims.input_batch_dimension);
    let kernel = ('i', dims.kernel_input_feature_dimension);
    let output = ('b', dims.output_batch_dimension);
    Ok(DimLabels(format!(
        "{}_{}->{}",
        side(input, ('f', dims.input_feature_dimension), &dims.input_spatial_dimensions)?,
        side(kernel, ('o', dims.kernel_output_feature_dimension), &dims.kernel_spatial_dimensions)?,
        side(output, ('f', dims.output_feature_dimension), &dims.output_spatial_dimensions)?,
    )))
}

/// Returns dimension numbers by role; a missing label is 0. Spatial dimensions are numbered from 0.
fn write_labels(labels: &DimLabels) -> Result<ConvolutionDimensionNumbers> {
    let wrong = || Error::invalid_argument(format!("dim_labels={} does not have three parts", labels.0));
    let (input, rest) = labels.0.split_once('_').ok_or_else(wrong)?;
    let (kernel, output) = rest.split_once("->").ok_or_else(wrong)?;
    let place = |side: &str, label: char| side.find(label).map(|i| i as i64);
    let named = |side: &str, label: char| place(side, label).unwrap_or(0);
    let spatial = |side: &str| -> Vec<i64> { ('0'..='9').map_while(|label| place(side, label)).collect() };
    Ok(ConvolutionDimensionNumbers {
        kernel_input_feature_dimension: named(kernel, 'i'),
        kernel_output_feature_dimension: named(kernel, 'o'),
        kernel_spatial_dimensions: spatial(kernel),
        input_batch_dimension: named(input, 'b'),
        input_feature_dimension: named(input, 'f'),
        output_batch_dimension: named(output, 'b'),
        output_feature_dimension: named(output, 'f'),
        input_spatial_dimensions: spatial(input),
        output_spatial_dimensions: spatial(output),
    })
}
