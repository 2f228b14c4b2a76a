//! Memory of one execution: arguments, results, temporaries and constants, by allocation.

use std::sync::Arc;

use smallvec::SmallVec;
use xla_hlo::entity::EntityId;
use xla_hlo::{Error, Result, ResultExt};
use xla_passes::buffers::{AllocationId, Slice};

use super::BufferPlan;
use super::plan::Source;
use crate::executable::{Argument, ExecutionContext};
use crate::executor::DeviceMemory;
use crate::host::HostMemory;

/// Memory for each allocation of a [buffer assignment](xla_passes::buffers). Shared memory cannot be written.
#[derive(Debug)]
pub struct ExecutionBuffers {
    entries: SmallVec<[Entry; 8]>,
}

#[derive(Debug)]
enum Entry {
    Owned(DeviceMemory),
    Shared(Arc<DeviceMemory>),
    /// Moved out as a result.
    Taken,
}

impl ExecutionBuffers {
    /// Allocates the memory of one execution. Takes over donated arguments, and copies arguments that the program
    /// writes or returns but that were not donated. Allocates results and temporaries, and shares constants.
    pub fn new(
        plan: &BufferPlan,
        context: &ExecutionContext<'_>,
        arguments: Vec<Argument>,
    ) -> Result<ExecutionBuffers> {
        if arguments.len() != plan.argument_count() {
            return Err(Error::internal(format!(
                "{} arguments were passed to a program of {}",
                arguments.len(),
                plan.argument_count()
            )));
        }
        let constants = plan.constants(context)?;
        let mut arguments: SmallVec<[Option<Argument>; 8]> = arguments.into_iter().map(Some).collect();
        let mut buffers = ExecutionBuffers { entries: SmallVec::with_capacity(plan.sources.len()) };
        for (index, source) in plan.sources.iter().enumerate() {
            buffers.entries.push(match *source {
                Source::Fresh(bytes) => {
                    let memory = context.executor.allocate(bytes);
                    Entry::Owned(memory.context(|| plan.purpose(AllocationId::from_index(index)))?)
                }
                Source::Constant(number) => Entry::Shared(constants[number].clone()),
                Source::Argument { index, is_written } => match arguments[index].take() {
                    Some(Argument::Donated(memory)) => Entry::Owned(memory),
                    Some(Argument::Shared(memory)) if is_written => {
                        let part = || format!("a copy of argument {index}, which was not donated");
                        Entry::Owned(context.during(part, || duplicate(&memory, context))?)
                    }
                    Some(Argument::Shared(memory)) => Entry::Shared(memory),
                    None => return Err(Error::internal(format!("argument {index} has two allocations"))),
                },
            });
        }
        Ok(buffers)
    }

    /// Returns the memory of an allocation.
    pub fn memory(&self, id: AllocationId) -> Result<&DeviceMemory> {
        match self.entries.get(id.index()) {
            Some(Entry::Owned(memory)) => Ok(memory),
            Some(Entry::Shared(memory)) => Ok(memory),
            Some(Entry::Taken) | None => Err(Error::internal(format!("allocation {id} has no memory"))),
        }
    }

    /// Returns the memory of an allocation for writing. An error for shared memory: constants, and arguments that were
    /// not donated.
    pub fn memory_mut(&mut self, id: AllocationId) -> Result<&mut DeviceMemory> {
        match self.entries.get_mut(id.index()) {
            Some(Entry::Owned(memory)) => Ok(memory),
            Some(Entry::Shared(_)) => Err(Error::internal(format!("allocation {id} is read-only"))),
            Some(Entry::Taken) | None => Err(Error::internal(format!("allocation {id} has no memory"))),
        }
    }

    /// Copies the bytes of one slice to another of the same size.
    pub fn copy(&mut self, context: &ExecutionContext<'_>, source: Slice, target: Slice) -> Result<()> {
        let range = source.offset..source.offset.saturating_add(source.size);
        if source.allocation == target.allocation {
            return context.stream.copy_within(self.memory_mut(target.allocation)?, range, target.offset);
        }
        match self.entries.get_disjoint_mut([source.allocation.index(), target.allocation.index()]) {
            Ok([Entry::Owned(from), Entry::Owned(to)]) => context.stream.copy(from, range, to, target.offset),
            Ok([Entry::Shared(from), Entry::Owned(to)]) => context.stream.copy(from, range, to, target.offset),
            Ok([Entry::Owned(_) | Entry::Shared(_) | Entry::Taken, _]) | Err(_) => Err(Error::internal(format!(
                "cannot copy from allocation {} to {}",
                source.allocation, target.allocation
            ))),
        }
    }

    /// Returns the address of each allocation, in order, for compiled code of a platform whose memory is
    /// [`HostMemory`].
    ///
    /// The code may read through all of them, and write through the pointers of allocations that the assignment lets it
    /// write, as long as this table is not accessed in any other manner.
    pub fn host_pointers(&mut self) -> Result<SmallVec<[*mut u8; 8]>> {
        let mut pointers = SmallVec::with_capacity(self.entries.len());
        for id in (0..self.entries.len()).map(AllocationId::from_index) {
            pointers.push(self.memory(id)?.downcast::<HostMemory>()?.as_ptr());
        }
        Ok(pointers)
    }

    /// Moves the results out, in the order of the signature.
    pub fn into_results(mut self, plan: &BufferPlan, context: &ExecutionContext<'_>) -> Result<Vec<DeviceMemory>> {
        let mut results: Vec<DeviceMemory> = Vec::with_capacity(plan.results.len());
        for id in &plan.results {
            match std::mem::replace(&mut self.entries[id.index()], Entry::Taken) {
                Entry::Owned(memory) => results.push(memory),
                Entry::Shared(memory) => {
                    let part = || format!("a copy of shared memory for result {}", results.len());
                    results.push(context.during(part, || duplicate(&memory, context))?);
                }
                Entry::Taken => return Err(Error::internal(format!("two results have the same memory, {id}"))),
            }
        }
        Ok(results)
    }
}

fn duplicate(memory: &DeviceMemory, context: &ExecutionContext<'_>) -> Result<DeviceMemory> {
    let mut copy = context.executor.allocate(memory.byte_size())?;
    context.stream.copy(memory, 0..memory.byte_size(), &mut copy, 0)?;
    Ok(copy)
}
