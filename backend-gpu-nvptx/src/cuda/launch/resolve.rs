//! Resolution of a command sequence to launches, copies and library calls, each with its addresses and its candidate.

use std::sync::PoisonError;

use xla_hlo::{Error, Result};

use super::context::{LaunchContext, ResolvedCommand};
use super::measure::WorkTrial;
use crate::autotune::cache::DeviceKey;
use crate::autotune::{Candidate, Work};
use crate::cuda::driver::Driver;
use crate::cuda::library::{tell_of_epilogue, tell_of_kernels};
use crate::program::commands::{Choice, Command, LibraryCommand, way, ways};

impl LaunchContext<'_> {
    /// Resolves commands and adds them to `resolved`.
    pub fn resolve(&self, commands: &[Command], resolved: &mut Vec<ResolvedCommand>) -> Result<()> {
        for command in commands {
            match command {
                Command::Library(library) => match self.library_candidate(library)? {
                    Some(Candidate::Library(algorithm)) => {
                        self.call(library, algorithm, &|argument| self.argument(argument), resolved)?
                    }
                    Some(Candidate::Own(number)) => {
                        self.resolve(way(&library.otherwise, number as usize), resolved)?;
                    }
                    None => self.resolve(&library.otherwise, resolved)?,
                },
                Command::Choice(choice) => self.resolve(choice.way(self.own_way(command, choice)?), resolved)?,
                Command::Copy { .. } | Command::Launch { .. } => {
                    self.plain(std::slice::from_ref(command), &|argument| self.argument(argument), resolved)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the candidate for some work, which `find` determines once.
    fn candidate(
        &self,
        work: Work,
        find: impl FnOnce(&Work) -> Result<Option<Candidate>>,
    ) -> Result<Option<Candidate>> {
        let known = || self.loaded.candidates.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().get(&work).copied();
        match found {
            Some(candidate) => Ok(candidate),
            None => {
                let candidate = find(&work)?;
                known().insert(work, candidate);
                Ok(candidate)
            }
        }
    }

    /// Returns the candidate for a library call: the fastest one measured, or the library's first choice. `None` if the
    /// library is absent or does not take the call.
    fn library_candidate(&self, library: &LibraryCommand) -> Result<Option<Candidate>> {
        let own = Choice::of(&library.otherwise).map(|choice| choice.name.clone());
        let work = Work { call: Some(library.call.clone()), own };
        let candidate = self.candidate(work, |work| self.find_library_candidate(library, work))?;
        // Another call of the same kind may have chosen a fallback that this one lacks.
        let is_missing = !matches!(candidate, Some(Candidate::Library(_))) && library.otherwise.is_empty();
        Ok(if is_missing { Some(Candidate::Library(0)) } else { candidate })
    }

    fn find_library_candidate(&self, library: &LibraryCommand, work: &Work) -> Result<Option<Candidate>> {
        let addresses = library.arrays.iter().map(|argument| self.argument(argument)).collect::<Result<Vec<u64>>>()?;
        // The first query of a library that is not installed returns the error.
        let algorithms = match self.loaded.libraries.algorithms(&library.call, &addresses) {
            Ok(algorithms) => algorithms,
            Err(error @ (Error::FailedPrecondition(_) | Error::Unimplemented(_))) if !library.otherwise.is_empty() => {
                let is_called_apart = matches!(library.otherwise[..], [Command::Library(_)]);
                if !(is_called_apart && matches!(error, Error::Unimplemented(_))) {
                    tell_of_kernels(&library.call, &error);
                } else {
                    tell_of_epilogue(&error);
                }
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let has_choice = algorithms > 1 || !library.otherwise.is_empty();
        let mut candidate = None;
        if has_choice && self.autotune.is_enabled() {
            let version = self.loaded.libraries.version(&library.call)?;
            let trial = WorkTrial::of_call(self, library, algorithms)?;
            candidate = self.decided(&version, (work, ways(&library.otherwise)), trial)?;
        }
        Ok(Some(candidate.unwrap_or(Candidate::Library(0))))
    }

    /// Returns the index of an alternative of a choice: the fastest one measured, or the default.
    fn own_way(&self, command: &Command, choice: &Choice) -> Result<usize> {
        if !self.autotune.is_enabled() {
            return Ok(0);
        }
        let work = Work { call: None, own: Some(choice.name.clone()) };
        let candidate = self.candidate(work, |work| {
            let trial = WorkTrial::of_choice(self, command, choice)?;
            self.decided("", (work, choice.ways.len()), trial)
        })?;
        Ok(match candidate {
            Some(Candidate::Own(number)) => number as usize,
            Some(Candidate::Library(_)) | None => 0,
        })
    }

    /// Returns the candidate that is known or now measured to be the fastest, also while a loop is recorded. `None` if
    /// nothing is known and nothing can be measured. `library` is the name and version of the library, or empty.
    fn decided(&self, library: &str, work: (&Work, usize), mut trial: WorkTrial<'_>) -> Result<Option<Candidate>> {
        let place =
            DeviceKey { gpu: self.stream.queue().context().info().name.clone(), driver: Driver::get()?.version };
        Ok(self.autotune.decide(&place, library, work, Some(&mut trial)))
    }
}
