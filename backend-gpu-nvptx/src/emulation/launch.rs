//! Execution of command sequences on the emulated GPU, one command at a time.

use xla_hlo::Result;
use xla_passes::buffers::Slice;
use xla_service::DeviceMemory;
use xla_service::thunks::Launch;

use super::{EmulatedCode, EmulatedStream};
use crate::program::commands::{Command, CommandSequence, KernelArgument};
use crate::program::launcher::{DeviceCode, array, next_rng_counter, no_scratch};

impl DeviceCode for EmulatedCode {
    fn run(&self, sequence: &CommandSequence, launch: &mut Launch<'_>) -> Result<()> {
        let stream: &EmulatedStream = launch.context.stream.downcast()?;
        let scratch = sequence.scratch.iter().map(|&bytes| launch.context.executor.allocate(bytes));
        let scratch = scratch.collect::<Result<Vec<_>>>()?;
        // The race detector receives the accesses of the whole thunk, regardless of its commands.
        let label = launch.thunk.place();
        for operand in &launch.thunk.operands {
            stream.reads(launch.buffers.memory(operand.slice.allocation)?, operand.slice, &label)?;
        }
        for result in &launch.thunk.results {
            stream.writes(launch.buffers.memory(result.slice.allocation)?, result.slice, &label)?;
        }
        stream.launches()?;
        let counter = next_rng_counter(sequence, launch.context.random);
        run_commands(self, &sequence.commands, (&scratch, counter), launch)
    }
}

fn run_commands(
    code: &EmulatedCode,
    commands: &[Command],
    (scratch, counter): (&[DeviceMemory], [u64; 2]),
    launch: &mut Launch<'_>,
) -> Result<()> {
    for command in commands {
        match command {
            Command::Copy { from, to } => {
                let (from, to) = (array(launch.thunk, *from)?.slice, array(launch.thunk, *to)?.slice);
                launch.buffers.copy(launch.context, from, to)?;
            }
            Command::Launch { function, blocks, arguments } => {
                let argument = |argument: &KernelArgument| match *argument {
                    KernelArgument::Number(number) => Ok(number as u64),
                    KernelArgument::Counter(half) => counter.get(half).copied().ok_or_else(no_scratch),
                    KernelArgument::Scratch(number) => match scratch.get(number) {
                        Some(memory) => EmulatedStream::address(memory, 0),
                        None => Err(no_scratch()),
                    },
                    KernelArgument::Array(number) => {
                        let Slice { allocation, offset, .. } = array(launch.thunk, number)?.slice;
                        EmulatedStream::address(launch.buffers.memory(allocation)?, offset)
                    }
                };
                let arguments = arguments.iter().map(argument).collect::<Result<Vec<u64>>>()?;
                code.launch(*function, *blocks, &arguments)?;
            }
            // The host has none of NVIDIA's libraries.
            Command::Library(library) => run_commands(code, &library.otherwise, (scratch, counter), launch)?,
            // The emulated GPU measures nothing.
            Command::Choice(choice) => run_commands(code, choice.way(code.way()), (scratch, counter), launch)?,
        }
    }
    Ok(())
}
