//! Trial of the candidates for a library call or a matmul kernel of our own: uses random operands and a separate
//! stream, and measures device time.
//!
//! A trial does not use the program's memory, so it may run at any time, even while a loop that contains the work is
//! recorded.

use std::time::Duration;

use xla_hlo::{Error, Result};
use xla_service::thunks::ArraySlice;

use super::context::{LaunchContext, ResolvedCommand};
use crate::autotune::agreement::{Results, Rounding};
use crate::autotune::random::random;
use crate::autotune::{Candidate, Trial};
use crate::cuda::collective;
use crate::cuda::memory::CudaMemory;
use crate::cuda::stream::CudaStream;
use crate::cuda::stream::clock::TimeMark;
use crate::program::commands::{Choice, Command, KernelArgument, LibraryCommand, way, ways};

/// Candidates for some work.
pub(crate) struct WorkTrial<'a> {
    context: &'a LaunchContext<'a>,
    library: Option<&'a LibraryCommand>,
    /// Commands without the library; empty if there are none.
    own: &'a [Command],
    /// Name for log messages.
    name: String,
    rounding: Rounding,
    candidates: Vec<Candidate>,
    /// Sends work directly, even while the program's stream captures.
    stream: CudaStream,
    /// Allocated for the first candidate.
    memory: Option<TrialMemory>,
}

/// Memory that replaces the program's.
struct TrialMemory {
    arrays: Vec<Block>,
    scratch: Vec<Block>,
}

struct Block {
    /// Keeps the address valid.
    _memory: CudaMemory,
    address: u64,
}

impl<'a> WorkTrial<'a> {
    /// Creates a trial of the library's algorithms in its order of preference, then of our kernels.
    pub fn of_call(
        context: &'a LaunchContext<'a>,
        library: &'a LibraryCommand,
        algorithms: usize,
    ) -> Result<WorkTrial<'a>> {
        let (own, name, rounding) =
            (&library.otherwise[..], library.call.to_string(), Rounding::of_call(&library.call));
        let candidates = (0..algorithms as u32).map(Candidate::Library).chain(own_candidates(own)).collect();
        let library = Some(library);
        Ok(WorkTrial {
            context,
            library,
            own,
            name,
            rounding,
            candidates,
            stream: context.stream.aside()?,
            memory: None,
        })
    }

    /// Creates a trial of our kernels, with all alternatives of a choice.
    pub fn of_choice(context: &'a LaunchContext<'a>, command: &'a Command, choice: &Choice) -> Result<WorkTrial<'a>> {
        let (own, name, rounding) = (std::slice::from_ref(command), choice.name.clone(), Rounding::of_choice(choice));
        let candidates = own_candidates(own).collect();
        let stream = context.stream.aside()?;
        Ok(WorkTrial { context, library: None, own, name, rounding, candidates, stream, memory: None })
    }

    /// Returns the arrays of the thunk: operands, then results.
    fn arrays(&self) -> impl Iterator<Item = &'a ArraySlice> {
        let thunk = self.context.thunk;
        thunk.operands.iter().chain(&thunk.results)
    }

    /// Returns the memory. The first call allocates it and fills the operands.
    fn memory(&mut self) -> Result<&TrialMemory> {
        let made = match self.memory.take() {
            Some(memory) => memory,
            None => {
                let arrays = self.arrays().map(|array| self.block(array.slice.size)).collect::<Result<Vec<_>>>()?;
                let operands = self.context.thunk.operands.len();
                self.arrays().zip(&arrays).take(operands).try_for_each(|(array, block)| self.fill(array, block))?;
                let scratch = self.context.sequence.scratch.iter().map(|&bytes| self.block(bytes));
                TrialMemory { arrays, scratch: scratch.collect::<Result<_>>()? }
            }
        };
        Ok(self.memory.insert(made))
    }

    fn block(&self, bytes: usize) -> Result<Block> {
        let memory = self.stream.scratch(bytes)?;
        let address = self.stream.address_in(&memory, 0, bytes)?;
        Ok(Block { _memory: memory, address })
    }

    /// Fills an array with random numbers of its type.
    fn fill(&self, array: &ArraySlice, block: &Block) -> Result<()> {
        let size = array.slice.size;
        let bytes = random(array.shape.element_type(), array.shape.element_count())?;
        // Repeat the random bytes by copies of increasing size. Without any, the array keeps its content.
        let mut filled = bytes.len().min(size);
        self.stream.upload(&bytes[..filled], block.address)?;
        while filled > 0 && filled < size {
            let more = filled.min(size - filled);
            self.stream.copy_apart(block.address, block.address + filled as u64, more)?;
            filled += more;
        }
        Ok(())
    }

    /// Returns the commands of a candidate, with the addresses of the trial's memory.
    fn commands(&mut self, candidate: Candidate) -> Result<Vec<ResolvedCommand>> {
        self.memory()?;
        let (context, memory) = (self.context, self.memory.as_ref());
        let argument = |argument: &KernelArgument| {
            let block = match (*argument, memory) {
                (KernelArgument::Array(number), Some(memory)) => memory.arrays.get(number),
                (KernelArgument::Scratch(number), Some(memory)) => memory.scratch.get(number),
                (KernelArgument::Counter(_) | KernelArgument::Number(_), _) | (_, None) => {
                    return context.argument(argument);
                }
            };
            block
                .map(|block| block.address)
                .ok_or_else(|| Error::internal(format!("no memory was allocated for the kernel argument {argument:?}")))
        };
        let mut commands = Vec::new();
        match candidate {
            Candidate::Library(algorithm) => {
                let library = self.library.ok_or_else(|| {
                    Error::internal(format!(
                        "a candidate is library algorithm {algorithm}, but there is no library call"
                    ))
                })?;
                context.call(library, algorithm, &argument, &mut commands)?;
            }
            Candidate::Own(number) => context.plain(way(self.own, number as usize), &argument, &mut commands)?,
        }
        Ok(commands)
    }

    fn send(&self, commands: &[ResolvedCommand]) -> Result<()> {
        commands.iter().try_for_each(|command| command.send(self.context.loaded, &self.stream))
    }
}

/// Returns the alternatives of our own for some commands.
fn own_candidates(commands: &[Command]) -> impl Iterator<Item = Candidate> {
    (0..ways(commands) as u32).map(Candidate::Own)
}

impl Trial for WorkTrial<'_> {
    fn candidates(&self) -> Vec<Candidate> {
        self.candidates.clone()
    }

    fn call(&self) -> String {
        self.name.clone()
    }

    fn results(&mut self, candidate: Candidate) -> Result<Results> {
        let commands = self.commands(candidate)?;
        let operands = self.context.thunk.operands.len();
        let results = || self.arrays().zip(self.memory.iter().flat_map(|memory| &memory.arrays)).skip(operands);
        // A candidate that writes nothing must not agree with the one before it, so overwrite its results.
        results().try_for_each(|(array, block)| self.fill(array, block))?;
        self.send(&commands)?;
        let mut found = Results::default();
        for (array, block) in results() {
            let mut bytes = vec![0; array.slice.size];
            self.stream.download(block.address, &mut bytes)?;
            found.add(self.rounding, array.shape.element_type(), bytes)?;
        }
        Ok(found)
    }

    fn time(&mut self, candidate: Candidate, runs: u32) -> Result<Duration> {
        let commands = self.commands(candidate)?;
        // The program's own work would take a share of the device.
        let run = self.context.run;
        run.logical_device.map_or(Ok(()), |device| collective::wait(run, device))?;
        self.context.stream.queue().synchronize()?;
        let begin = TimeMark::new(self.stream.queue())?;
        (0..runs).try_for_each(|_| self.send(&commands))?;
        let end = TimeMark::new(self.stream.queue())?;
        self.stream.queue().synchronize()?;
        end.since(&begin)
    }
}
