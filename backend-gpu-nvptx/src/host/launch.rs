//! Routines on the host, step by step.

use xla_hlo::Result;
use xla_passes::buffers::Slice;
use xla_service::DeviceMemory;
use xla_service::thunks::Launch;

use super::{HostCode, HostStream};
use crate::device::{Routine, Step, Word};
use crate::launch::{DeviceCode, array, drawn, no_scratch};

impl DeviceCode for HostCode {
    fn run(&self, routine: &Routine, launch: &mut Launch<'_>) -> Result<()> {
        let stream: &HostStream = launch.context.stream.downcast()?;
        let scratch = routine.scratch.iter().map(|&bytes| launch.context.executor.allocate(bytes));
        let scratch = scratch.collect::<Result<Vec<_>>>()?;
        // What a kernel reads and writes is told for the whole thunk, whatever its steps.
        let label = launch.thunk.place();
        for operand in &launch.thunk.operands {
            stream.reads(launch.buffers.memory(operand.slice.allocation)?, operand.slice, &label)?;
        }
        for result in &launch.thunk.results {
            stream.writes(launch.buffers.memory(result.slice.allocation)?, result.slice, &label)?;
        }
        stream.launches()?;
        let counter = drawn(routine, launch.context.random);
        steps_on_host(self, &routine.steps, (&scratch, counter), launch)
    }
}

fn steps_on_host(
    code: &HostCode,
    steps: &[Step],
    (scratch, counter): (&[DeviceMemory], [u64; 2]),
    launch: &mut Launch<'_>,
) -> Result<()> {
    for step in steps {
        match step {
            Step::Copy { from, to } => {
                let (from, to) = (array(launch.thunk, *from)?.slice, array(launch.thunk, *to)?.slice);
                launch.buffers.copy(launch.context, from, to)?;
            }
            Step::Launch { function, blocks, arguments } => {
                let word = |word: &Word| match *word {
                    Word::Number(number) => Ok(number as u64),
                    Word::Counter(half) => counter.get(half).copied().ok_or_else(no_scratch),
                    Word::Scratch(number) => match scratch.get(number) {
                        Some(memory) => HostStream::address(memory, 0),
                        None => Err(no_scratch()),
                    },
                    Word::Array(number) => {
                        let Slice { allocation, offset, .. } = array(launch.thunk, number)?.slice;
                        HostStream::address(launch.buffers.memory(allocation)?, offset)
                    }
                };
                let words = arguments.iter().map(word).collect::<Result<Vec<u64>>>()?;
                code.launch(*function, *blocks, &words)?;
            }
            // The host has none of NVIDIA's libraries.
            Step::Library(library) => steps_on_host(code, &library.otherwise, (scratch, counter), launch)?,
        }
    }
    Ok(())
}
