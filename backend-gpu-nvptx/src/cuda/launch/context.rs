//! Launch context: the stream of a command sequence, and the addresses of its arrays.

use xla_hlo::{Error, Result};
use xla_passes::buffers::Slice;
use xla_service::ExecutionContext;
use xla_service::thunks::{ExecutionBuffers, Thunk};

use super::loaded::LoadedProgram;
use crate::autotune::cache::AutotuneCache;
use crate::cuda::library::ChosenCall;
use crate::cuda::stream::CudaStream;
use crate::program::commands::{Command, CommandSequence, KernelArgument, LibraryCommand};
use crate::program::launcher::{array, next_rng_counter, no_scratch};

/// Command with the addresses of its arrays.
#[derive(Debug)]
pub(crate) enum ResolvedCommand {
    Launch { function: usize, blocks: u32, arguments: Vec<u64> },
    Copy { from: u64, to: u64, bytes: usize },
    Library { call: ChosenCall, addresses: Vec<u64> },
}

/// Command sequence that is launched, with its stream and arrays.
pub(crate) struct LaunchContext<'a> {
    pub loaded: &'a LoadedProgram,
    pub autotune: &'a AutotuneCache,
    pub sequence: &'a CommandSequence,
    pub thunk: &'a Thunk,
    buffers: &'a ExecutionBuffers,
    pub stream: &'a CudaStream,
    /// Run of the program.
    pub run: &'a ExecutionContext<'a>,
    /// Addresses of the sequence's scratch memories, which live until the work is sent.
    scratch: &'a [u64],
    /// Random counter from which the sequence draws, low half first.
    counter: [u64; 2],
}

impl ResolvedCommand {
    /// Sends the command to a stream.
    pub fn send(&self, loaded: &LoadedProgram, stream: &CudaStream) -> Result<()> {
        match self {
            ResolvedCommand::Launch { function, blocks, arguments } => {
                stream.launch(loaded.module.call(*function, *blocks, arguments)?)
            }
            ResolvedCommand::Copy { from, to, bytes } => stream.copy_apart(*from, *to, *bytes),
            ResolvedCommand::Library { call, addresses } => stream.library(&loaded.libraries, call, addresses),
        }
    }
}

impl<'a> LaunchContext<'a> {
    /// Creates the context of a sequence. Advances the random counter if the sequence draws from it.
    pub fn new(
        loaded: &'a LoadedProgram,
        autotune: &'a AutotuneCache,
        sequence: &'a CommandSequence,
        thunk: &'a Thunk,
        buffers: &'a ExecutionBuffers,
        (stream, run): (&'a CudaStream, &'a ExecutionContext<'a>),
        scratch: &'a [u64],
    ) -> LaunchContext<'a> {
        let counter = next_rng_counter(sequence, run.random);
        LaunchContext { loaded, autotune, sequence, thunk, buffers, stream, run, scratch, counter }
    }

    /// Adds a library call, with the commands before and after it.
    pub fn call(
        &self,
        library: &LibraryCommand,
        algorithm: u32,
        argument: &dyn Fn(&KernelArgument) -> Result<u64>,
        resolved: &mut Vec<ResolvedCommand>,
    ) -> Result<()> {
        self.plain(&library.before, argument, resolved)?;
        let addresses = library.arrays.iter().map(argument).collect::<Result<Vec<u64>>>()?;
        let call = ChosenCall { call: library.call.clone(), algorithm: algorithm as usize };
        resolved.push(ResolvedCommand::Library { call, addresses });
        self.plain(&library.then, argument, resolved)
    }

    /// Adds commands without measuring candidates: choices use their default alternative.
    pub fn plain(
        &self,
        commands: &[Command],
        argument: &dyn Fn(&KernelArgument) -> Result<u64>,
        resolved: &mut Vec<ResolvedCommand>,
    ) -> Result<()> {
        for command in commands {
            match command {
                Command::Copy { from, to } => resolved.push(ResolvedCommand::Copy {
                    from: argument(&KernelArgument::Array(*from))?,
                    to: argument(&KernelArgument::Array(*to))?,
                    bytes: array(self.thunk, *to)?.slice.size,
                }),
                Command::Launch { function, blocks, arguments } => {
                    let arguments = arguments.iter().map(argument).collect::<Result<_>>()?;
                    resolved.push(ResolvedCommand::Launch { function: *function, blocks: *blocks, arguments });
                }
                Command::Library(library) => self.preferred(library, argument, resolved)?,
                Command::Choice(choice) => self.plain(choice.way(0), argument, resolved)?,
            }
        }
        Ok(())
    }

    /// Adds a library call with its first algorithm, or its fallback if the library does not take the call.
    fn preferred(
        &self,
        library: &LibraryCommand,
        argument: &dyn Fn(&KernelArgument) -> Result<u64>,
        resolved: &mut Vec<ResolvedCommand>,
    ) -> Result<()> {
        let addresses = library.arrays.iter().map(argument).collect::<Result<Vec<u64>>>()?;
        match self.loaded.libraries.algorithms(&library.call, &addresses) {
            Ok(_) => self.call(library, 0, argument, resolved),
            Err(Error::FailedPrecondition(_) | Error::Unimplemented(_)) if !library.otherwise.is_empty() => {
                self.plain(&library.otherwise, argument, resolved)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the value of an argument.
    pub fn argument(&self, argument: &KernelArgument) -> Result<u64> {
        match *argument {
            KernelArgument::Number(number) => Ok(number as u64),
            KernelArgument::Scratch(number) => self.scratch.get(number).copied().ok_or_else(no_scratch),
            KernelArgument::Counter(half) => self.counter.get(half).copied().ok_or_else(no_scratch),
            KernelArgument::Array(number) => array_address(self.thunk, number, self.buffers, self.stream),
        }
    }
}

fn array_address(thunk: &Thunk, number: usize, buffers: &ExecutionBuffers, stream: &CudaStream) -> Result<u64> {
    let Slice { allocation, offset, size } = array(thunk, number)?.slice;
    stream.address_of(buffers.memory(allocation)?, offset, size)
}

/// Resolves a copy from one array of a thunk to another.
pub(crate) fn copy(
    thunk: &Thunk,
    [from, to]: [usize; 2],
    buffers: &ExecutionBuffers,
    stream: &CudaStream,
) -> Result<ResolvedCommand> {
    let bytes = array(thunk, to)?.slice.size;
    let [from, to] = [from, to].map(|number| array_address(thunk, number, buffers, stream));
    Ok(ResolvedCommand::Copy { from: from?, to: to?, bytes })
}
