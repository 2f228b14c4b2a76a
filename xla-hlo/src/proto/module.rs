//! Modules and their enclosing protobuf messages.

use std::collections::HashMap;

use prost::Message;
use prost::bytes::Bytes;

use super::computation::{self, Identities};
use super::identifiers::sanitized;
use super::known::Known;
use super::messages::InstructionSequenceProto;
use super::messages::{HloModuleConfigProto, HloModuleProto, HloScheduleProto};
use super::metadata::Payloads;
use super::{header, outline, splats, undecodable};
use crate::text::shown;
use crate::{CompId, Error, InstrId, Module, Op, Result, ResultExt};

/// Reads a serialized module: `HloModuleProto`, or one inside `HloProto`, `HloSnapshot` or `HloModuleProtoWithConfig`.
///
/// The module is well-formed; [`crate::VerifiedModule`] checks that it is a valid program. The error is the first one
/// found, with the computation, instruction and field at fault.
pub fn parse_module(bytes: &[u8]) -> Result<Module> {
    read(Bytes::copy_from_slice(bytes)).context(|| "serialised HLO")
}

/// Serializes a module as `HloModuleProto`, in the form that XLA reads. An error names the part that the message cannot
/// represent.
pub fn serialize_module(module: &Module) -> Result<Vec<u8>> {
    splats::broadcast(module)
        .and_then(|module| write(&module))
        .map(|proto| proto.encode_to_vec())
        .context(|| format!("module {} cannot be serialised", module.name()))
}

fn read(mut bytes: Bytes) -> Result<Module> {
    let mut config = None;
    // A snapshot contains a message that contains the module.
    for _ in 0..2 {
        let Some(inner) = wrapped(&bytes) else { break };
        let wrapper = Wrapper::decode(bytes.clone()).map_err(|e| undecodable("the message around the module", e))?;
        config = wrapper.config;
        bytes = inner;
    }
    let proto = HloModuleProto::decode(bytes).map_err(|e| undecodable("the module", e))?;
    read_module(proto, config)
}

/// Message that encloses a module. Only the fields next to the module are decoded.
#[derive(Clone, PartialEq, Message)]
struct Wrapper {
    #[prost(message, optional, tag = "2")]
    config: Option<HloModuleConfigProto>,
}

/// Returns the bytes of field 1 if they are a message. In a bare module they are its name, which cannot begin with the
/// tag of a field, because that is a control character.
fn wrapped(bytes: &Bytes) -> Option<Bytes> {
    const NAME: u8 = 0x0a;
    const ENTRY_NAME: u8 = 0x12;
    const COMPUTATIONS: u8 = 0x1a;
    let mut rest = bytes.clone();
    if bytes.first() != Some(&NAME) {
        return None;
    }
    rest = rest.slice(1..);
    let length = usize::try_from(prost::encoding::decode_varint(&mut rest).ok()?).ok()?;
    let inner = (length <= rest.len()).then(|| rest.slice(..length))?;
    matches!(inner.first(), Some(&(NAME | ENTRY_NAME | COMPUTATIONS))).then_some(inner)
}

fn read_module(proto: HloModuleProto, config: Option<HloModuleConfigProto>) -> Result<Module> {
    if proto.computations.is_empty() {
        return Err(Error::invalid_argument("the module has no computation"));
    }
    let mut module = Module::new(sanitized(&proto.name, "module"));
    let mut known = Known { payloads: Payloads::new(proto.payloads), ..Known::default() };
    let mut instructions: HashMap<i64, HashMap<i64, InstrId>> = HashMap::new();
    for i in outline::callees_first(&proto.computations)? {
        let read = computation::read(&proto.computations[i], &known)?;
        known.computations.insert(read.id, module.add(read.computation));
        if proto.schedule.is_some() {
            instructions.insert(read.id, read.instructions);
        }
    }
    let entry = known.computations.get(&proto.entry_computation_id);
    let entry = entry.ok_or_else(|| {
        let id = proto.entry_computation_id;
        Error::invalid_argument(format!("entry_computation_id names computation {id}, which does not exist"))
    })?;
    module.set_entry(*entry);
    if let Some(schedule) = &proto.schedule {
        read_schedule(&mut module, schedule, &known.computations, &instructions).context(|| "schedule")?;
    }
    let parts = header::Parts {
        shape: proto.host_program_shape,
        aliases: proto.input_output_alias,
        donors: proto.buffer_donor,
        frontend_attributes: proto.frontend_attributes,
        stack: proto.stack_frame_index,
    };
    header::read(parts, config, module.attributes_mut())?;
    module.own_fusions()?;
    Ok(module)
}

fn read_schedule(
    module: &mut Module,
    schedule: &HloScheduleProto,
    computations: &HashMap<i64, CompId>,
    instructions: &HashMap<i64, HashMap<i64, InstrId>>,
) -> Result<()> {
    module.attributes_mut().is_scheduled = true;
    for (id, sequence) in &schedule.sequences {
        let (Some(&computation), Some(instructions)) = (computations.get(id), instructions.get(id)) else {
            return Err(Error::invalid_argument(format!("sequences names computation {id}, which does not exist")));
        };
        let find = |id: &i64| {
            instructions.get(id).copied().ok_or_else(|| {
                let name = shown(module[computation].name());
                Error::invalid_argument(format!("instruction_ids names {id}, which is not in computation {name}"))
            })
        };
        let order = sequence.instruction_ids.iter().map(find).collect::<Result<Vec<InstrId>>>()?;
        module.computation_mut(computation).set_schedule(Some(order));
    }
    Ok(())
}

fn write(module: &Module) -> Result<HloModuleProto> {
    let order = module.post_order();
    let mut identities = Identities::new(&order);
    let fused = fused(module);
    let mut payloads = Payloads::default();
    let mut schedule = HloScheduleProto::default();
    let mut proto = HloModuleProto {
        name: module.name().to_string(),
        entry_computation_name: module.entry().name().to_string(),
        entry_computation_id: identities.computation(module.entry_id()),
        ..HloModuleProto::default()
    };
    for &id in &order {
        let (mut computation, instruction_ids) = computation::write(module, id, &mut identities, &mut payloads)?;
        computation.is_fusion_computation = fused.contains(&id);
        // XLA requires a sequence for every computation that is not fused, including those of reductions.
        if !computation.is_fusion_computation {
            schedule.sequences.insert(computation.id, InstructionSequenceProto { instruction_ids });
        }
        proto.computations.push(computation.encode_to_vec().into());
    }
    proto.schedule = module.attributes().is_scheduled.then_some(schedule);
    let parts = header::write(module)?;
    Ok(HloModuleProto {
        host_program_shape: parts.shape,
        input_output_alias: parts.aliases,
        buffer_donor: parts.donors,
        frontend_attributes: parts.frontend_attributes,
        stack_frame_index: parts.stack,
        payloads: payloads.into_vec(),
        ..proto
    })
}

/// Returns the computations that fusions call.
fn fused(module: &Module) -> Vec<CompId> {
    let mut fused = Vec::new();
    for (_, computation) in module.iter() {
        for (_, instruction) in computation.iter() {
            if let Op::Fusion(fusion) = instruction.op() {
                fused.push(fusion.computation);
            }
        }
    }
    fused
}
