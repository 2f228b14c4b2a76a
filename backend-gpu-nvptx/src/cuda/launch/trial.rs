//! Trial of the candidates of a library call: timed on the program's own operands, with discarded results.

use std::time::{Duration, Instant};

use xla_hlo::{Error, Result};

use super::context::{LaunchContext, ResolvedCommand};
use crate::autotune::{Candidate, Trial};
use crate::cuda::memory::CudaMemory;
use crate::program::commands::{KernelArgument, LibraryCommand};

/// The candidates of one call.
pub(crate) struct LibraryTrial<'a> {
    context: &'a LaunchContext<'a>,
    library: &'a LibraryCommand,
    candidates: Vec<Candidate>,
    /// Substitutes for the thunk's results; allocated when the first candidate is run.
    results: Option<Vec<(CudaMemory, u64)>>,
}

impl<'a> LibraryTrial<'a> {
    /// The library's algorithms in its own order, then our kernels.
    pub fn new(context: &'a LaunchContext<'a>, library: &'a LibraryCommand, algorithms: usize) -> LibraryTrial<'a> {
        let own = (!library.otherwise.is_empty()).then_some(Candidate::Own);
        let candidates = (0..algorithms as u32).map(Candidate::Library).chain(own).collect();
        LibraryTrial { context, library, candidates, results: None }
    }

    /// The addresses of memory that candidates write their results to.
    fn results(&mut self) -> Result<Vec<u64>> {
        if self.results.is_none() {
            let (stream, results) = (self.context.stream, &self.context.thunk.results);
            let memory = |bytes| {
                let memory = stream.scratch(bytes)?;
                let address = stream.address_in(&memory, 0, bytes)?;
                Ok((memory, address))
            };
            self.results = Some(results.iter().map(|result| memory(result.slice.size)).collect::<Result<_>>()?);
        }
        Ok(self.results.iter().flatten().map(|(_, address)| *address).collect())
    }

    /// The commands of a candidate.
    fn commands(&mut self, candidate: Candidate) -> Result<Vec<ResolvedCommand>> {
        let results = self.results()?;
        let (context, operands) = (self.context, self.context.thunk.operands.len());
        let argument = |argument: &KernelArgument| match *argument {
            KernelArgument::Array(number) if number >= operands => {
                let address = results.get(number - operands).copied();
                address.ok_or_else(|| Error::internal("the thunk has no such result"))
            }
            KernelArgument::Array(_)
            | KernelArgument::Scratch(_)
            | KernelArgument::Counter(_)
            | KernelArgument::Number(_) => context.argument(argument),
        };
        let mut commands = Vec::new();
        match candidate {
            Candidate::Library(algorithm) => context.call(self.library, algorithm, &argument, &mut commands)?,
            Candidate::Own => context.plain(&self.library.otherwise, &argument, &mut commands)?,
        }
        Ok(commands)
    }
}

impl Trial for LibraryTrial<'_> {
    fn candidates(&self) -> Vec<Candidate> {
        self.candidates.clone()
    }

    fn time(&mut self, candidate: Candidate, runs: u32) -> Result<Duration> {
        let commands = self.commands(candidate)?;
        let stream = self.context.stream;
        stream.queue().synchronize()?;
        let begin = Instant::now();
        for _ in 0..runs {
            commands.iter().try_for_each(|command| command.send(self.context.loaded, stream))?;
        }
        stream.queue().synchronize()?;
        Ok(begin.elapsed())
    }
}
