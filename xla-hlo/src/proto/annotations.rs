//! Annotations of an instruction in protobuf.

use super::identifiers::sanitized;
use super::messages::{FrontendAttributesProto, HloInstructionProto, ParameterReplication, Statistic, StatisticsViz};
use super::metadata::Payloads;
use super::{origin, sharding};
use crate::text::shown;
use crate::{Annotations, Error, FrontendAttributes, Result, ResultExt};

/// Name, in the text form, of the statistic that holds the index to visualize.
const SHOWN_INDEX: &str = "visualizing_index";

/// Moves the annotations out of the message; `None` if there are none.
pub(super) fn read(message: &mut HloInstructionProto, payloads: &Payloads) -> Result<Option<Box<Annotations>>> {
    let metadata = message.metadata.take().map(|m| payloads.read(*m)).transpose().context(|| "metadata")?;
    let sharding = message.sharding.take().map(|s| sharding::read(*s, payloads)).transpose();
    let annotations = Annotations {
        metadata: metadata.unwrap_or_default(),
        sharding: sharding.context(|| "sharding")?,
        frontend_attributes: read_frontend_attributes(message.frontend_attributes.take())?,
        backend_config: std::mem::take(&mut message.backend_config).into(),
        statistics: message.statistics_viz.take().map(read_statistics).transpose()?.unwrap_or_default(),
        origin: match message.original_value.take() {
            Some(original) => origin::read(&original).context(|| "original_value")?,
            None => String::new(),
        },
        parameter_replication: message
            .parameter_replication
            .take()
            .map_or_else(Vec::new, |r| r.replicated_at_leaf_buffers),
    };
    Ok((annotations != Annotations::default()).then(|| Box::new(annotations)))
}

/// Reads frontend attributes, of a module or an instruction.
pub(super) fn read_frontend_attributes(proto: Option<FrontendAttributesProto>) -> Result<FrontendAttributes> {
    let attributes = proto.unwrap_or_default().map;
    attributes.keys().try_for_each(|key| check_key("frontend_attributes", key))?;
    Ok(attributes)
}

/// Checks that the text form can spell a name.
fn check_key(field: &str, key: &str) -> Result<()> {
    if !key.is_empty() && sanitized(key, "") == key {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "{field}: `{}` is not a name, which begins with a letter or `_` and goes on with letters, digits, `_`, `.` and `-`",
        shown(key)
    )))
}

fn read_statistics(proto: StatisticsViz) -> Result<Vec<(String, String)>> {
    if proto.statistics.is_empty() {
        return Ok(Vec::new());
    }
    proto.statistics.iter().try_for_each(|statistic| check_key("statistics_viz", &statistic.stat_name))?;
    let index = (SHOWN_INDEX.to_string(), proto.stat_index_to_visualize.to_string());
    let statistics = proto.statistics.into_iter().map(|s| (s.stat_name, number_text(s.stat_val)));
    Ok(std::iter::once(index).chain(statistics).collect())
}

/// Returns the shortest text that reads back as the same number.
fn number_text(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_string();
    }
    let magnitude = value.abs();
    let plain = magnitude == 0.0 || magnitude.is_infinite() || (1e-5..1e15).contains(&magnitude);
    if plain { value.to_string() } else { format!("{value:e}") }
}

/// Writes annotations to the message. Like XLA, writes some messages even if they are empty.
pub(super) fn write(
    message: &mut HloInstructionProto,
    annotations: Option<&Annotations>,
    payloads: &mut Payloads,
) -> Result<()> {
    let none = Annotations::default();
    let Annotations {
        metadata,
        sharding,
        frontend_attributes,
        backend_config,
        statistics,
        origin,
        parameter_replication,
    } = annotations.unwrap_or(&none);
    message.metadata = Some(Box::new(payloads.write(metadata)?));
    message.sharding = sharding.as_ref().map(|s| sharding::write(s, payloads).map(Box::new)).transpose()?;
    message.frontend_attributes = Some(write_frontend_attributes(frontend_attributes));
    message.backend_config = backend_config.as_bytes().to_vec();
    message.statistics_viz = Some(write_statistics(statistics)?);
    if !origin.is_empty() {
        message.original_value = Some(Box::new(origin::write(origin)?));
    }
    if !parameter_replication.is_empty() {
        let replicated_at_leaf_buffers = parameter_replication.clone();
        message.parameter_replication = Some(ParameterReplication { replicated_at_leaf_buffers });
    }
    Ok(())
}

/// Writes frontend attributes, of a module or an instruction.
pub(super) fn write_frontend_attributes(attributes: &FrontendAttributes) -> FrontendAttributesProto {
    FrontendAttributesProto { map: attributes.clone() }
}

fn write_statistics(statistics: &[(String, String)]) -> Result<StatisticsViz> {
    let mut proto = StatisticsViz::default();
    for (name, value) in statistics {
        let number = || Error::invalid_argument(format!("statistic {name} is `{value}`, which is not a number"));
        if name == SHOWN_INDEX {
            proto.stat_index_to_visualize = value.parse().map_err(|_| number())?;
        } else {
            let stat_val = value.parse().map_err(|_| number())?;
            proto.statistics.push(Statistic { stat_name: name.clone(), stat_val });
        }
    }
    Ok(proto)
}
