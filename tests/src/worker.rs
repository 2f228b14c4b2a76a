//! Worker process: checks programs for a parent process, which survives a crash of the worker.
//!
//! Requests are lines of JSON on standard input; each is answered by a line on standard output.

use std::io::{BufRead, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use xla::{CompileOptions, Error, PlatformRegistry, Result};

use crate::differential::{Differential, Failure, Modes};
use crate::each_pass;
use crate::generate::{Family, program};
use crate::grid_programs;
use crate::program::Program;

/// Request to the worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Generated program of a family and a seed, checked in some of the modes.
    Seed {
        /// Name of the family.
        family: String,
        /// Seed.
        seed: u64,
    },
    /// Generated program for several devices.
    Devices {
        /// Seed.
        seed: u64,
        /// Number of devices.
        devices: usize,
    },
    /// Program file that [`Program::to_text`] wrote, checked in all modes, on one and two threads.
    File(PathBuf),
}

/// Reply of the worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// All results agree; the number of instructions of the program.
    Agree(usize),
    /// Results differ, or the program failed.
    Differ(Failure),
    /// Invalid program, with the error.
    Invalid(String),
}

/// Checker of programs on one platform, or with each pass in isolation.
pub struct Checker {
    registry: PlatformRegistry,
    platform: String,
    subject: Subject,
    /// Whether every program, instead of only some, is compiled and run a second time.
    twice: bool,
}

/// Subject of a check.
enum Subject {
    /// Platform, with one thread and with two.
    Platform(Box<[Differential; 2]>),
    EachPass,
}

impl Checker {
    /// Creates a checker for a platform of the registry.
    pub fn new(registry: &PlatformRegistry, platform: &str) -> Result<Checker> {
        let differential = |threads| {
            let options = CompileOptions { threads: NonZeroUsize::new(threads), ..CompileOptions::default() };
            Differential::new(registry, platform, options)
        };
        let subject = Subject::Platform(Box::new([differential(1)?, differential(2)?]));
        Ok(Checker { registry: registry.clone(), platform: platform.to_string(), subject, twice: false })
    }

    /// Creates a checker for each pass in isolation.
    pub fn of_passes() -> Checker {
        let registry = PlatformRegistry::new();
        Checker { registry, platform: String::new(), subject: Subject::EachPass, twice: false }
    }

    /// Makes the checker compile and run every program a second time, which must give the same bits.
    #[must_use]
    pub fn compiling_twice(self) -> Checker {
        Checker { twice: true, ..self }
    }

    /// Checks the requested program.
    pub fn answer(&self, request: &Request) -> Reply {
        self.check(request).unwrap_or_else(|error| Reply::Invalid(error.to_string()))
    }

    fn check(&self, request: &Request) -> Result<Reply> {
        match request {
            Request::Seed { family, seed } => {
                let family = Family::from_name(family)
                    .ok_or_else(|| Error::invalid_argument(format!("there is no family {family}")))?;
                let program = program(family, *seed);
                let failure = match &self.subject {
                    Subject::Platform(by_threads) => {
                        let modes = Modes::of_seed(*seed);
                        let modes = Modes { again: modes.again || self.twice, ..modes };
                        by_threads[(seed % 2) as usize].failure_in(&program, modes)?
                    }
                    Subject::EachPass => each_pass::failure(&program)?,
                };
                Ok(reply(&program, failure))
            }
            Request::Devices { seed, devices } => {
                let (failure, count) = grid_programs::check(&self.registry, &self.platform, *seed, *devices)?;
                Ok(failure.map_or(Reply::Agree(count), Reply::Differ))
            }
            Request::File(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| Error::invalid_argument(error.to_string()))?;
                let program = Program::from_text(&text)?;
                let failure = match &self.subject {
                    Subject::Platform(by_threads) => {
                        let [one, two] = by_threads.as_ref();
                        one.failure(&program)?.map_or_else(|| two.failure(&program), |failure| Ok(Some(failure)))?
                    }
                    Subject::EachPass => each_pass::failure(&program)?,
                };
                Ok(reply(&program, failure))
            }
        }
    }

    /// Answers requests until the input ends.
    pub fn serve(&self, requests: impl BufRead, mut replies: impl Write) -> std::io::Result<()> {
        for line in requests.lines() {
            let reply = match serde_json::from_str(&line?) {
                Ok(request) => self.answer(&request),
                Err(error) => Reply::Invalid(error.to_string()),
            };
            writeln!(replies, "{}", serde_json::to_string(&reply)?)?;
            replies.flush()?;
        }
        Ok(())
    }
}

fn reply(program: &Program, failure: Option<Failure>) -> Reply {
    failure.map_or_else(|| Reply::Agree(program.module.instruction_count()), Reply::Differ)
}
