//! The memory of one execution: arguments, results, temporaries and constants, by allocation.

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

/// A memory for each allocation of a [buffer assignment](xla_passes::buffers). Memory that others may be reading cannot
/// be written.
#[derive(Debug)]
pub struct ExecutionBuffers {
    entries: SmallVec<[Entry; 8]>,
}

#[derive(Debug)]
enum Entry {
    Owned(DeviceMemory),
    Shared(Arc<DeviceMemory>),
    /// Handed out as a result.
    Taken,
}

impl ExecutionBuffers {
    /// Memory for one execution. Donated arguments are taken over; those that the program writes or returns but
    /// that were not donated are copied first. Results and temporaries are allocated, constants are shared.
    pub fn new(
        plan: &BufferPlan,
        context: &ExecutionContext<'_>,
        arguments: Vec<Argument>,
    ) -> Result<ExecutionBuffers> {
        if arguments.len() != plan.argument_count() {
            return Err(Error::internal(format!(
                "{} arguments for a program of {}",
                arguments.len(),
                plan.argument_count()
            )));
        }
        let constants = plan.constants(context)?;
        let mut arguments: Vec<Option<Argument>> = arguments.into_iter().map(Some).collect();
        let mut entry = |(index, source): (usize, &Source)| match *source {
            Source::Fresh(bytes) => {
                let memory = context.executor.allocate(bytes);
                memory.context(|| plan.purpose(AllocationId::from_index(index))).map(Entry::Owned)
            }
            Source::Constant(number) => Ok(Entry::Shared(constants[number].clone())),
            Source::Argument { index, is_written } => match arguments[index].take() {
                Some(Argument::Donated(memory)) => Ok(Entry::Owned(memory)),
                Some(Argument::Shared(memory)) if is_written => {
                    let part = || format!("a copy of argument {index}, which was not donated");
                    context.during(part, || duplicate(&memory, context)).map(Entry::Owned)
                }
                Some(Argument::Shared(memory)) => Ok(Entry::Shared(memory)),
                None => Err(Error::internal(format!("argument {index} has two allocations"))),
            },
        };
        Ok(ExecutionBuffers { entries: plan.sources.iter().enumerate().map(&mut entry).collect::<Result<_>>()? })
    }

    /// The memory of an allocation.
    pub fn memory(&self, id: AllocationId) -> Result<&DeviceMemory> {
        match self.entries.get(id.index()) {
            Some(Entry::Owned(memory)) => Ok(memory),
            Some(Entry::Shared(memory)) => Ok(memory),
            Some(Entry::Taken) | None => Err(Error::internal(format!("allocation {id} has no memory"))),
        }
    }

    /// The memory of an allocation for writing. An error for what others may be reading: constants, arguments that were
    /// not donated.
    pub fn memory_mut(&mut self, id: AllocationId) -> Result<&mut DeviceMemory> {
        match self.entries.get_mut(id.index()) {
            Some(Entry::Owned(memory)) => Ok(memory),
            Some(Entry::Shared(_)) => Err(Error::internal(format!("allocation {id} is read only"))),
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

    /// The first byte of each allocation, in order, for compiled code of a platform whose memory is [`HostMemory`].
    ///
    /// The code may read through all of them, and write through those of allocations that the assignment lets it write,
    /// as long as this table is not used otherwise.
    pub fn host_pointers(&mut self) -> impl Iterator<Item = Result<*mut u8>> {
        let ids = (0..self.entries.len()).map(AllocationId::from_index);
        ids.map(|id| Ok(self.memory(id)?.downcast::<HostMemory>()?.as_ptr()))
    }

    /// Takes the results out, in the order of the signature's.
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
