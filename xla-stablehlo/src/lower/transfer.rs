//! Transfers to and from the host and other devices, ordered by tokens.

use xla_hlo::ops::{Channel, GetTupleElement, Transfer};
use xla_hlo::{Error, InstrId, Layout, Result, Shape};

use super::call::Call;
use super::context::Lowering;
use super::types::packed_shape;
use crate::ir::{AttrId, Attribute, Type};

/// Frontend attribute of `send` and `recv` between devices.
const SOURCE_TARGET_PAIRS: &str = "_xla_send_recv_source_target_pairs";

/// Lowers a transfer; returns one instruction per result.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<Vec<InstrId>>> {
    Some(match call.name {
        "infeed" => infeed(lowering, call),
        "outfeed" => outfeed(lowering, call),
        "send" => send(lowering, call),
        "recv" => recv(lowering, call),
        _ => return None,
    })
}

/// Returns the operands or results without the token, which is the last one.
fn without_token<'c, T>(list: &'c [T], what: &str) -> Result<&'c [T]> {
    let split = list.split_last().map(|(_, data)| data);
    split.ok_or_else(|| Error::invalid_argument(format!("a transfer has no token among its {what}")))
}

/// Returns the elements of the data, and the token, from `pair`, a tuple of data and token.
fn data_and_token(lowering: &mut Lowering<'_>, pair: InstrId, count: usize, is_tuple: bool) -> Result<Vec<InstrId>> {
    let mut values = Vec::with_capacity(count + 1);
    if count > 0 {
        let data = lowering.infer(GetTupleElement { index: 0 }, [pair])?;
        if is_tuple {
            for index in 0..count {
                values.push(lowering.infer(GetTupleElement { index }, [data])?);
            }
        } else {
            values.push(data);
        }
    }
    values.push(lowering.infer(GetTupleElement { index: 1 }, [pair])?);
    Ok(values)
}

/// Lowers an infeed. Its data is a tuple, even for a single array.
fn infeed(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Vec<InstrId>> {
    let data = with_layouts(call, without_token(&call.results, "results")?)?;
    let count = data.len();
    let shape = Shape::Tuple(vec![Shape::Tuple(data), Shape::Token]);
    let config = optional_string(call, "infeed_config")?;
    let pair = lowering.add(Transfer::Infeed { config }, shape, call.operands.clone())?;
    data_and_token(lowering, pair, count, true)
}

/// Assigns the layouts in the attribute `layout` to shapes: a minor-to-major list of dimensions for each.
fn with_layouts(call: &Call<'_>, shapes: &[Shape]) -> Result<Vec<Shape>> {
    let module = call.attributes.module;
    let lists = match call.attributes.get("layout").map(|id| &module.attributes[id]) {
        Some(Attribute::Array(lists)) if !lists.is_empty() => lists,
        _ => return Ok(shapes.to_vec()),
    };
    let wrong = || Error::invalid_argument("layout must be a list of dimensions for each result");
    if lists.len() != shapes.len() {
        return Err(wrong());
    }
    let dimension = |&id: &AttrId| match module.attributes[id] {
        Attribute::Integer { value, .. } => usize::try_from(value).ok(),
        _ => None,
    };
    let one = |(&list, shape): (&AttrId, &Shape)| {
        let Attribute::Array(list) = &module.attributes[list] else { return Err(wrong()) };
        let order = list.iter().map(dimension).collect::<Option<Vec<usize>>>().ok_or_else(wrong)?;
        Ok(match shape {
            // A scalar has only one layout, so the list is ignored.
            Shape::Array(array) if array.rank() > 0 => {
                Shape::Array(array.clone().with_layout(Some(Layout::from_minor_to_major(order))))
            }
            other => other.clone(),
        })
    };
    lists.iter().zip(shapes).map(one).collect()
}

fn outfeed(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Vec<InstrId>> {
    let data = without_token(&call.operands, "operands")?.to_vec();
    let token = call.operands[data.len()];
    let data = lowering.tuple(data)?;
    let shape = Some(lowering.shape(data).with_default_layouts());
    let config = optional_string(call, "outfeed_config")?;
    Ok(vec![lowering.add(Transfer::Outfeed { shape, config }, call.shape(), [data, token])?])
}

fn send(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Vec<InstrId>> {
    let channel = channel(lowering, call)?;
    let data = without_token(&call.operands, "operands")?.to_vec();
    let token = call.operands[data.len()];
    let data = lowering.packed(data)?;
    let start = lowering.infer(Transfer::Send(channel.clone()), [data, token])?;
    Ok(vec![lowering.infer(Transfer::SendDone(channel), [start])?])
}

fn recv(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Vec<InstrId>> {
    let channel = channel(lowering, call)?;
    let data = without_token(&call.results, "results")?.to_vec();
    let count = data.len();
    let in_flight = Shape::Tuple(vec![packed_shape(data), Shape::scalar(xla_hlo::ElementType::U32), Shape::Token]);
    let start = lowering.add(Transfer::Recv(channel.clone()), in_flight, call.operands.clone())?;
    let done = lowering.infer(Transfer::RecvDone(channel), [start])?;
    data_and_token(lowering, done, count, count != 1)
}

/// Returns the channel of a `send` or `recv`. Device pairs become a frontend attribute of its instructions.
fn channel(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Channel> {
    if let Some(pairs) = pairs(call)? {
        lowering.annotate(SOURCE_TARGET_PAIRS, pairs);
    }
    let id = Some(call.attributes.int("channel_id")?).filter(|&id| id != 0);
    let is_host_transfer = match call.attributes.get("is_host_transfer") {
        Some(_) => call.attributes.flag("is_host_transfer")?,
        None => false,
    };
    Ok(Channel { id, is_host_transfer })
}

/// Formats the device pairs as `{{0,1},{1,2}}`.
fn pairs(call: &Call<'_>) -> Result<Option<String>> {
    let module = call.attributes.module;
    let is_absent = match call.attributes.get("source_target_pairs").map(|id| &module.attributes[id]) {
        None => true,
        Some(Attribute::Type(ty)) => module.types[*ty] == Type::None,
        Some(_) => false,
    };
    if is_absent {
        return Ok(None);
    }
    let pair = |pair: Vec<i64>| format!("{{{}}}", pair.iter().map(i64::to_string).collect::<Vec<_>>().join(","));
    let pairs: Vec<String> = call.attributes.rows("source_target_pairs")?.into_iter().map(pair).collect();
    Ok((!pairs.is_empty()).then(|| format!("{{{}}}", pairs.join(","))))
}

fn optional_string(call: &Call<'_>, name: &str) -> Result<String> {
    call.attributes.get(name).map_or_else(|| Ok(String::new()), |_| call.attributes.string(name))
}
