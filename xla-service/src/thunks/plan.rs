//! Buffer plan: source of each allocation's memory, computed once for all executions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use xla_hlo::entity::EntityId;
use xla_hlo::{ArrayShape, Error, Literal, Module, Op, ParameterLeaf, Result, ResultExt};
use xla_passes::analysis::alias::ValueRef;
use xla_passes::buffers::{Allocation, AllocationId, AllocationKind, BufferAssignment, LiveValue};

use crate::executable::{ExecutionContext, MemoryAnalysis};
use crate::executor::DeviceMemory;
use crate::signature::Signature;

/// Sources of the [`ExecutionBuffers`](super::ExecutionBuffers) of every execution.
#[derive(Debug)]
pub struct BufferPlan {
    /// Source of each allocation.
    pub(super) sources: Vec<Source>,
    /// Allocations of the results, in the order of the signature's outputs.
    pub(super) results: Vec<AllocationId>,
    /// Purpose of each newly allocated memory, for error messages.
    purposes: Vec<(AllocationId, String)>,
    arguments: usize,
    constants: Constants,
    analysis: MemoryAnalysis,
}

/// Source of an allocation's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Argument with this number; copied if the program writes or returns it and it was not donated.
    Argument { index: usize, is_written: bool },
    /// Constant with this number.
    Constant(usize),
    /// New memory of this size in bytes.
    Fresh(usize),
}

impl BufferPlan {
    /// Computes the plan of a module's assignment. [`Error::Internal`] if module, assignment and signature disagree.
    pub fn new(module: &Module, assignment: &BufferAssignment, signature: &Signature) -> Result<BufferPlan> {
        let mut sources = Vec::with_capacity(assignment.allocations().len());
        let mut constants = Vec::new();
        let mut analysis = MemoryAnalysis::default();
        for allocation in assignment.allocations() {
            let bytes = allocation.size;
            sources.push(match &allocation.kind {
                AllocationKind::Parameter { leaf, output, written } => {
                    let aliased = if output.is_some() { bytes } else { 0 };
                    analysis.argument_bytes += bytes;
                    analysis.output_bytes += aliased;
                    analysis.alias_bytes += aliased;
                    Source::Argument { index: argument(signature, leaf)?, is_written: output.is_some() || *written }
                }
                AllocationKind::Constant { value } => {
                    analysis.constant_bytes += bytes;
                    constants.push(Constant::new(module, value, bytes)?);
                    Source::Constant(constants.len() - 1)
                }
                AllocationKind::Output { .. } => {
                    analysis.output_bytes += bytes;
                    Source::Fresh(bytes)
                }
                AllocationKind::Temporary => {
                    analysis.temporary_bytes += bytes;
                    Source::Fresh(bytes)
                }
            });
        }
        let results: Vec<AllocationId> = assignment.output_slices().iter().map(|o| o.slice.allocation).collect();
        if results.len() != signature.outputs().len() || results.iter().any(|id| id.index() >= sources.len()) {
            return Err(Error::internal("the buffer assignment and the signature are of different modules"));
        }
        let constants = Constants { literals: constants, devices: Mutex::default() };
        let purposes = purposes(assignment);
        Ok(BufferPlan { sources, results, purposes, arguments: signature.arguments().len(), constants, analysis })
    }

    /// Describes an allocation's new memory: `the result %add f32[8] (a2)`.
    pub(super) fn purpose(&self, id: AllocationId) -> String {
        let found = self.purposes.iter().find(|(allocation, _)| *allocation == id);
        found.map_or_else(|| format!("allocation {id}"), |(_, purpose)| format!("{purpose} ({id})"))
    }

    /// Returns the memory that one execution takes, without code.
    pub fn memory_analysis(&self) -> MemoryAnalysis {
        self.analysis
    }

    /// Returns the number of arguments of an execution.
    pub(super) fn argument_count(&self) -> usize {
        self.arguments
    }

    /// Returns the constants' memory on the context's device, and uploads them at the first call.
    pub(super) fn constants(&self, context: &ExecutionContext<'_>) -> Result<Uploaded> {
        self.constants.on_device(context)
    }
}

fn purposes(assignment: &BufferAssignment) -> Vec<(AllocationId, String)> {
    let mut largest: HashMap<AllocationId, &LiveValue> = HashMap::new();
    for value in assignment.values() {
        let entry = largest.entry(value.slice.allocation).or_insert(value);
        if value.slice.size > entry.slice.size {
            *entry = value;
        }
    }
    let purpose = |allocation: &Allocation| {
        let name = &largest.get(&allocation.id)?.name;
        match allocation.kind {
            AllocationKind::Output { .. } => Some((allocation.id, format!("the result {name}"))),
            AllocationKind::Temporary => Some((allocation.id, format!("temporary values, the largest of them {name}"))),
            AllocationKind::Parameter { .. } | AllocationKind::Constant { .. } => None,
        }
    };
    assignment.allocations().iter().filter_map(purpose).collect()
}

fn argument(signature: &Signature, leaf: &ParameterLeaf) -> Result<usize> {
    let found = signature.arguments().iter().position(|a| a.parameter == leaf.parameter && a.path == leaf.path);
    found.ok_or_else(|| Error::internal(format!("parameter {} {:?} has no argument", leaf.parameter, leaf.path)))
}

/// Constants of a program: their values, and their memory on each device that has run the program.
#[derive(Debug)]
struct Constants {
    literals: Vec<Constant>,
    devices: Mutex<Vec<(usize, Uploaded)>>,
}

/// Memory of the constants on one device.
pub(super) type Uploaded = Arc<[Arc<DeviceMemory>]>;

#[derive(Debug)]
struct Constant {
    name: String,
    literal: Literal,
    shape: ArrayShape,
    bytes: usize,
}

impl Constant {
    /// Returns the constant in an allocation of `bytes` bytes.
    fn new(module: &Module, value: &ValueRef, bytes: usize) -> Result<Constant> {
        let instruction = &module[value.computation][value.instruction];
        let literal = match instruction.op() {
            Op::Constant(c) => value.path.iter().try_fold(&c.literal, |literal, &i| literal.elements().get(i)),
            _ => None,
        };
        let shape = instruction.shape().subshape(&value.path).and_then(|shape| shape.as_array());
        match (literal, shape) {
            (Some(literal), Some(shape)) => Ok(Constant {
                name: instruction.name().to_string(),
                literal: literal.clone(),
                shape: shape.clone(),
                bytes,
            }),
            _ => {
                Err(Error::internal(format!("%{} is not a constant with a leaf {:?}", instruction.name(), value.path)))
            }
        }
    }
}

impl Constants {
    fn on_device(&self, context: &ExecutionContext<'_>) -> Result<Uploaded> {
        if self.literals.is_empty() {
            return Ok(Uploaded::default());
        }
        let ordinal = context.executor.description().ordinal;
        let mut devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, uploaded)) = devices.iter().find(|(device, _)| *device == ordinal) {
            return Ok(uploaded.clone());
        }
        let mut memories = Vec::with_capacity(self.literals.len());
        for Constant { name, literal, shape, bytes } in &self.literals {
            let upload = || {
                let mut memory = context.executor.allocate(*bytes)?;
                context.transfer.write(context.stream, literal, shape, &mut memory, 0)?;
                Ok(Arc::new(memory))
            };
            memories.push(context.during(|| format!("the constant %{name}, {shape}"), upload)?);
        }
        // Later runs on other streams reuse the memory, so wait until the upload is complete.
        context.stream.record_event()?.wait().context(|| "the program's constants")?;
        let uploaded = Uploaded::from(memories);
        devices.push((ordinal, uploaded.clone()));
        Ok(uploaded)
    }
}
