//! Resolution of a command sequence to launches, copies and library calls, each with its addresses and its candidate.

use std::sync::PoisonError;

use xla_hlo::{Error, Result};

use super::context::{LaunchContext, ResolvedCommand};
use super::trial::LibraryTrial;
use crate::autotune::Candidate;
use crate::autotune::cache::DeviceKey;
use crate::cuda::driver::Driver;
use crate::cuda::library::{tell_of_epilogue, tell_of_kernels};
use crate::program::commands::{Command, LibraryCommand};
use crate::program::library_call::LibraryCall;

impl LaunchContext<'_> {
    /// Adds commands with their addresses.
    pub fn resolve(&self, commands: &[Command], resolved: &mut Vec<ResolvedCommand>) -> Result<()> {
        for command in commands {
            match command {
                Command::Library(library) => match self.candidate(library)? {
                    Candidate::Library(algorithm) => {
                        self.call(library, algorithm, &|argument| self.argument(argument), resolved)?
                    }
                    Candidate::Own => self.resolve(&library.otherwise, resolved)?,
                },
                Command::Copy { .. } | Command::Launch { .. } => {
                    self.plain(std::slice::from_ref(command), &|argument| self.argument(argument), resolved)?;
                }
            }
        }
        Ok(())
    }

    /// The candidate for a library call, chosen once: our kernels if the library is absent or does not take the call;
    /// else the fastest that was measured, or the library's preference.
    fn candidate(&self, library: &LibraryCommand) -> Result<Candidate> {
        let known = || self.loaded.candidates.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().get(&library.call).copied();
        let candidate = match found {
            Some(candidate) => candidate,
            None => {
                let candidate = self.find_candidate(library)?;
                known().insert(library.call.clone(), candidate);
                candidate
            }
        };
        // Another call of the same kind may have had a candidate that this one lacks.
        Ok(if candidate == Candidate::Own && library.otherwise.is_empty() { Candidate::Library(0) } else { candidate })
    }

    fn find_candidate(&self, library: &LibraryCommand) -> Result<Candidate> {
        let addresses = library.arrays.iter().map(|argument| self.argument(argument)).collect::<Result<Vec<u64>>>()?;
        // The first question to a library that is not installed says so.
        let algorithms = match self.loaded.libraries.algorithms(&library.call, &addresses) {
            Ok(algorithms) => algorithms,
            Err(error @ (Error::FailedPrecondition(_) | Error::Unimplemented(_))) if !library.otherwise.is_empty() => {
                let is_called_apart = matches!(library.otherwise[..], [Command::Library(_)]);
                if !(is_called_apart && matches!(error, Error::Unimplemented(_))) {
                    tell_of_kernels(&library.call, &error);
                } else {
                    tell_of_epilogue(&error);
                }
                return Ok(Candidate::Own);
            }
            Err(error) => return Err(error),
        };
        let has_choice = algorithms > 1 || !library.otherwise.is_empty();
        let candidate =
            if has_choice && self.autotune.is_enabled() { self.decided(library, algorithms)? } else { None };
        Ok(candidate.unwrap_or(Candidate::Library(0)))
    }

    /// The candidate that is known to be the fastest, or found to be now, also while a loop is recorded; none where
    /// nothing is known and nothing can be measured.
    fn decided(&self, library: &LibraryCommand, algorithms: usize) -> Result<Option<Candidate>> {
        let call: &LibraryCall = &library.call;
        let place =
            DeviceKey { gpu: self.stream.queue().context().info().name.clone(), driver: Driver::get()?.version };
        let version = self.loaded.libraries.version(call)?;
        let mut candidates = LibraryTrial::new(self, library, algorithms)?;
        Ok(self.autotune.decide(&place, &version, call, Some(&mut candidates)))
    }
}
