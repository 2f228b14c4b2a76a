//! Computations and their instructions in protobuf.

use std::collections::{HashMap, HashSet};

use prost::Message;
use prost::bytes::Bytes;

use super::identifiers::sanitized;
use super::known::Known;
use super::messages::{HloComputationProto, HloInstructionProto};
use super::metadata::Payloads;
use super::numbers::{fit, required};
use super::{ProtoReader, ProtoWriter, annotations, shape, undecodable};
use crate::ops::Arity;
use crate::text::shown;
use crate::{
    CompId, Computation, Error, InstrId, Instruction, MAIN_THREAD, Module, Op, Opcode, Result, ResultExt, names,
};

/// Decoded computation with the ids of its instructions.
pub(super) struct Read {
    pub computation: Computation,
    pub id: i64,
    pub instructions: HashMap<i64, InstrId>,
}

/// Reads a computation; all of its callees must have been read.
pub(super) fn read(bytes: &Bytes, known: &Known) -> Result<Read> {
    let proto = HloComputationProto::decode(bytes.clone()).map_err(|e| undecodable("a computation", e))?;
    let name = sanitized(&proto.name, UNNAMED);
    read_instructions(proto, known).context(|| format!("computation {}", shown(&name)))
}

fn read_instructions(proto: HloComputationProto, known: &Known) -> Result<Read> {
    let mut computation = Computation::new(sanitized(&proto.name, UNNAMED));
    let mut instructions = HashMap::with_capacity(proto.instructions.len());
    for (i, bytes) in proto.instructions.into_iter().enumerate() {
        let message =
            HloInstructionProto::decode(bytes).map_err(|e| undecodable(&format!("entry {i} of instructions"), e))?;
        let id = message.id;
        let name = message.name.clone();
        let (instruction, predecessors) = read_instruction(message, known, &instructions, &computation)
            .context(|| format!("instruction {}", shown(&name)))?;
        let new = computation.add(instruction);
        for before in predecessors {
            computation.add_control_dependency(before, new);
        }
        if instructions.insert(id, new).is_some() {
            return Err(Error::invalid_argument(format!("instruction {}: another one has the id {id}", shown(&name))));
        }
    }
    let root = instructions.get(&proto.root_id);
    let root =
        root.ok_or_else(|| Error::invalid_argument(format!("root_id names no instruction: {}", proto.root_id)))?;
    computation.set_root(*root);
    if !proto.execution_thread.is_empty() && proto.execution_thread != MAIN_THREAD {
        computation.set_execution_thread(proto.execution_thread);
    }
    Ok(Read { computation, id: proto.id, instructions })
}

fn read_instruction(
    mut message: HloInstructionProto,
    known: &Known,
    earlier: &HashMap<i64, InstrId>,
    computation: &Computation,
) -> Result<(Instruction, Vec<InstrId>)> {
    let opcode = opcode(&message.opcode)?;
    let shape = shape::read(required("shape", message.shape.take().as_ref())?).context(|| "shape")?;
    let find = |field: &str, ids: Vec<i64>| {
        let find = |id: i64| {
            earlier.get(&id).copied().ok_or_else(|| {
                Error::invalid_argument(format!(
                    "{field} names instruction {id}, which does not come before in this computation"
                ))
            })
        };
        ids.into_iter().map(find).collect::<Result<Vec<InstrId>>>()
    };
    let operands = find("operand_ids", std::mem::take(&mut message.operand_ids))?;
    check_arity(opcode, operands.len())?;
    let predecessors = find("control_predecessor_ids", std::mem::take(&mut message.control_predecessor_ids))?;
    let annotations = annotations::read(&mut message, &known.payloads)?;
    let name = sanitized(&message.name, opcode.name());
    let operand_shapes = operands.iter().map(|&o| computation[o].shape()).collect();
    let mut reader = ProtoReader::new(message, operand_shapes, known);
    let op = Op::read_proto(opcode, &mut reader)?;
    let instruction = Instruction::new(op, shape, operands).with_name(name).with_annotations(annotations);
    Ok((instruction, predecessors))
}

fn opcode(name: &str) -> Result<Opcode> {
    match Opcode::from_name(name) {
        Some(opcode) if opcode.is_implemented() => Ok(opcode),
        Some(later) => Err(Error::unimplemented(format!("operation {later} is not implemented yet"))),
        None => Err(Error::invalid_argument(format!("unknown operation `{}`", shown(name)))),
    }
}

fn check_arity(opcode: Opcode, count: usize) -> Result<()> {
    let plural = |n: usize| if n == 1 { "1 operand".to_string() } else { format!("{n} operands") };
    let complaint = match opcode.arity() {
        Arity::Exactly(n) if count != n => format!("{opcode} takes {}, found {count}", plural(n)),
        Arity::AtLeast(n) if count < n => format!("{opcode} takes at least {}, found {count}", plural(n)),
        Arity::Exactly(_) | Arity::AtLeast(_) => return Ok(()),
    };
    Err(Error::invalid_argument(complaint))
}

/// Name for a computation whose message has none.
const UNNAMED: &str = "computation";

/// Names and ids of the computations and instructions of a module that is written.
///
/// Computations are numbered from 1 in the order of writing. The id of an instruction has its computation's id in the
/// upper 32 bits and its position, from 0, in the lower 32 bits. Instruction names are unique in the whole module, as
/// XLA requires: a number is appended to a name that is taken.
#[derive(Default)]
pub(super) struct Identities {
    computations: HashMap<CompId, i64>,
    names: HashSet<String>,
    next_suffix: HashMap<String, u32>,
}

impl Identities {
    pub fn new(order: &[CompId]) -> Identities {
        Identities { computations: order.iter().copied().zip(1..).collect(), ..Identities::default() }
    }

    /// Returns the id of a computation.
    pub fn computation(&self, id: CompId) -> i64 {
        self.computations[&id]
    }

    fn instruction(&self, computation: CompId, place: usize) -> Result<i64> {
        let place: u32 = fit("the number of instructions", place)?;
        Ok((self.computation(computation) << 32) | i64::from(place))
    }

    fn unique_name(&mut self, wish: &str) -> String {
        let name = names::unique(wish, &mut self.next_suffix, |name| self.names.contains(name));
        self.names.insert(name.clone());
        name
    }
}

/// Id and name of an instruction in the message of its computation.
struct Place {
    id: i64,
    name: String,
}

/// Writes a computation with its instructions in execution order, and returns their ids in that order.
pub(super) fn write(
    module: &Module,
    id: CompId,
    identities: &mut Identities,
    payloads: &mut Payloads,
) -> Result<(HloComputationProto, Vec<i64>)> {
    let computation = &module[id];
    let order = computation.sequence();
    let mut places = HashMap::with_capacity(order.len());
    for (place, &instruction) in order.iter().enumerate() {
        let name = identities.unique_name(computation[instruction].name());
        places.insert(instruction, Place { id: identities.instruction(id, place)?, name });
    }
    let thread = Some(computation.execution_thread()).filter(|thread| *thread != MAIN_THREAD);
    let parameters = computation.parameters().iter().map(|p| (places[p].name.clone(), computation[*p].shape()));
    let mut proto = HloComputationProto {
        name: computation.name().to_string(),
        instructions: Vec::with_capacity(order.len()),
        program_shape: Some(shape::write_program(parameters, computation.result_shape())?),
        id: identities.computation(id),
        root_id: places[&computation.root()].id,
        is_fusion_computation: false,
        execution_thread: thread.unwrap_or_default().to_string(),
    };
    for &instruction in &order {
        let message = write_instruction(module, computation, instruction, &places, identities, payloads)
            .context(|| format!("%{} in {}", computation[instruction].name(), computation.name()))?;
        proto.instructions.push(message.encode_to_vec().into());
    }
    Ok((proto, order.iter().map(|instruction| places[instruction].id).collect()))
}

fn write_instruction(
    module: &Module,
    computation: &Computation,
    id: InstrId,
    places: &HashMap<InstrId, Place>,
    identities: &Identities,
    payloads: &mut Payloads,
) -> Result<HloInstructionProto> {
    let instruction = &computation[id];
    let Place { id: own_id, name } = &places[&id];
    let mut message = HloInstructionProto {
        name: name.clone(),
        opcode: instruction.opcode().name().to_string(),
        shape: Some(shape::write(instruction.shape())?),
        id: *own_id,
        operand_ids: instruction.operands().iter().map(|o| places[o].id).collect(),
        control_predecessor_ids: instruction.control_predecessors().iter().map(|p| places[p].id).collect(),
        ..HloInstructionProto::default()
    };
    annotations::write(&mut message, instruction.annotations(), payloads)?;
    let mut writer = ProtoWriter {
        message: &mut message,
        shape: instruction.shape(),
        operands: computation.operand_shapes(id),
        module,
        computations: &identities.computations,
        payloads,
    };
    instruction.op().write_proto(&mut writer)?;
    Ok(message)
}
