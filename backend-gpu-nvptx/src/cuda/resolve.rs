//! The pieces of work that a routine is here and now, with their addresses.

use std::sync::PoisonError;

use xla_hlo::eval::RandomState;
use xla_hlo::{Error, Result};
use xla_passes::buffers::Slice;
use xla_service::thunks::{ExecutionBuffers, Thunk};

use super::executor::{CudaMemory, address_on, scratch};
use super::launch::Loaded;
use super::library::{ChosenCall, LibraryCall};
use super::stream::CudaStream;
use super::tune::LibraryTrial;
use crate::autotune::Candidate;
use crate::choices::{AutotuneCache, DeviceKey};
use crate::cuda::driver::Driver;
use crate::device::{Command, CommandSequence, KernelArgument, LibraryCommand};
use crate::launch::{array, next_rng_counter, no_scratch};

/// Work with its addresses, in the order in which it is sent.
#[derive(Debug)]
pub(super) enum ResolvedCommand {
    Launch { function: usize, blocks: u32, arguments: Vec<u64> },
    Copy { from: u64, to: u64, bytes: usize },
    Library { call: ChosenCall, addresses: Vec<u64> },
}

/// Where a routine runs.
pub(super) struct LaunchContext<'a> {
    pub loaded: &'a Loaded,
    autotune: &'a AutotuneCache,
    pub thunk: &'a Thunk,
    buffers: &'a ExecutionBuffers,
    pub stream: &'a CudaStream,
    /// The routine's own memory, which must live until the work is sent.
    pub scratch: Vec<CudaMemory>,
    scratch_addresses: Vec<u64>,
    /// The halves of the counter of random numbers that the routine draws from.
    counter: [u64; 2],
}

impl ResolvedCommand {
    /// Sends it to a stream.
    pub fn send(&self, loaded: &Loaded, stream: &CudaStream) -> Result<()> {
        match self {
            ResolvedCommand::Launch { function, blocks, arguments } => {
                stream.launch(loaded.module.call(*function, *blocks, arguments)?)
            }
            ResolvedCommand::Copy { from, to, bytes } => stream.copy_apart(*from, *to, *bytes),
            ResolvedCommand::Library { call, addresses } => loaded.libraries.run(call, addresses, stream),
        }
    }
}

impl<'a> LaunchContext<'a> {
    /// With memory for the routine.
    pub fn new(
        loaded: &'a Loaded,
        autotune: &'a AutotuneCache,
        sequence: &CommandSequence,
        thunk: &'a Thunk,
        buffers: &'a ExecutionBuffers,
        (stream, random): (&'a CudaStream, &RandomState),
    ) -> Result<LaunchContext<'a>> {
        let memories = sequence.scratch.iter().map(|&bytes| scratch(stream, bytes)).collect::<Result<Vec<_>>>()?;
        let addresses =
            memories.iter().zip(&sequence.scratch).map(|(memory, &bytes)| memory.address_on(stream, 0, bytes));
        let scratch_addresses = addresses.collect::<Result<_>>()?;
        let counter = next_rng_counter(sequence, random);
        Ok(LaunchContext { loaded, autotune, thunk, buffers, stream, scratch: memories, scratch_addresses, counter })
    }

    /// Adds the pieces of steps.
    pub fn resolve(&self, commands: &[Command], resolved: &mut Vec<ResolvedCommand>) -> Result<()> {
        for command in commands {
            match command {
                Command::Library(library) => match self.candidate(library)? {
                    Candidate::Library(algorithm) => {
                        self.call(library, algorithm, &|argument| self.argument(argument), resolved)?
                    }
                    Candidate::Own => self.plain(&library.otherwise, &|argument| self.argument(argument), resolved)?,
                },
                Command::Copy { .. } | Command::Launch { .. } => {
                    self.plain(std::slice::from_ref(command), &|argument| self.argument(argument), resolved)?;
                }
            }
        }
        Ok(())
    }

    /// Adds a library's call with what belongs to it.
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

    /// Adds launches and copies.
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
                Command::Library(_) => return Err(Error::internal("a library's call inside of another one")),
            }
        }
        Ok(())
    }

    /// The value of a parameter.
    pub fn argument(&self, argument: &KernelArgument) -> Result<u64> {
        match *argument {
            KernelArgument::Number(number) => Ok(number as u64),
            KernelArgument::Scratch(number) => self.scratch_addresses.get(number).copied().ok_or_else(no_scratch),
            KernelArgument::Counter(half) => self.counter.get(half).copied().ok_or_else(no_scratch),
            KernelArgument::Array(number) => array_address(self.thunk, number, self.buffers, self.stream),
        }
    }

    /// How a library's call is done, which is found out once: by our kernels if the library is not there or does not
    /// take it; else as was found to be fastest, or as the library likes.
    fn candidate(&self, library: &LibraryCommand) -> Result<Candidate> {
        let known = || self.loaded.candidates.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().get(&library.call).copied();
        let candidate = match found {
            Some(candidate) => candidate,
            None => {
                let candidate = self.find_candidate(library)?;
                // Nothing is measured while notes are taken, so that there may be a better one.
                if !self.stream.is_capturing() {
                    known().insert(library.call.clone(), candidate);
                }
                candidate
            }
        };
        // Another call of the same kind may have had a way that this one lacks.
        Ok(if candidate == Candidate::Own && library.otherwise.is_empty() { Candidate::Library(0) } else { candidate })
    }

    fn find_candidate(&self, library: &LibraryCommand) -> Result<Candidate> {
        let addresses = library.arrays.iter().map(|argument| self.argument(argument)).collect::<Result<Vec<u64>>>()?;
        // The first question to a library that is not installed says so.
        let algorithms = match self.loaded.libraries.algorithms(&library.call, &addresses) {
            Ok(algorithms) => algorithms,
            Err(Error::FailedPrecondition(_) | Error::Unimplemented(_)) if !library.otherwise.is_empty() => {
                return Ok(Candidate::Own);
            }
            Err(error) => return Err(error),
        };
        let has_choice = algorithms > 1 || !library.otherwise.is_empty();
        let candidate =
            if has_choice && self.autotune.is_enabled() { self.decided(library, algorithms)? } else { None };
        Ok(candidate.unwrap_or(Candidate::Library(0)))
    }

    /// The way that is known to be the fastest, or found to be now; none where nothing is known and nothing can be
    /// measured.
    fn decided(&self, library: &LibraryCommand, algorithms: usize) -> Result<Option<Candidate>> {
        let call: &LibraryCall = &library.call;
        let place =
            DeviceKey { gpu: self.stream.queue().context().info().name.clone(), driver: Driver::get()?.version };
        let version = self.loaded.libraries.version(call)?;
        if self.stream.is_capturing() {
            // Nothing can be measured here.
            return Ok(self.autotune.decide(&place, &version, call, None));
        }
        let mut candidates = LibraryTrial::new(self, library, algorithms);
        Ok(self.autotune.decide(&place, &version, call, Some(&mut candidates)))
    }
}

fn array_address(thunk: &Thunk, number: usize, buffers: &ExecutionBuffers, stream: &CudaStream) -> Result<u64> {
    let Slice { allocation, offset, size } = array(thunk, number)?.slice;
    address_on(buffers.memory(allocation)?, stream, offset, size)
}

/// A copy from one array of a thunk to another.
pub(super) fn copy(
    thunk: &Thunk,
    [from, to]: [usize; 2],
    buffers: &ExecutionBuffers,
    stream: &CudaStream,
) -> Result<ResolvedCommand> {
    let bytes = array(thunk, to)?.slice.size;
    let [from, to] = [from, to].map(|number| array_address(thunk, number, buffers, stream));
    Ok(ResolvedCommand::Copy { from: from?, to: to?, bytes })
}
