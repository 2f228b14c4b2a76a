//! Test cases: an identifier, a level, and the check.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xla::{Client, CompilationCache, Error, Platform, PlatformRegistry, Result};
use xla_hlo::{ElementType, Opcode};
use xla_service::StreamExecutor;

use crate::coverage::Status;

/// Level of a case: the kind of contract that it checks. Each level builds on the previous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Level {
    /// The platform is registered, responds, and compiles.
    Registration,
    /// Memory, copies, streams, events and transfers satisfy the contracts of their traits.
    Device,
    /// Single operations by element type, with edge values.
    Operations,
    /// Fusions, control flow, aliasing and donation.
    Programs,
    /// Programs of the corpus.
    Corpus,
    /// Generated programs.
    Generated,
    /// Failures are reported with their cause, and the next execution works.
    Resilience,
    /// Programs for several devices.
    Devices,
}

impl Level {
    /// All levels, from 0.
    pub const ALL: [Level; 8] = [
        Level::Registration,
        Level::Device,
        Level::Operations,
        Level::Programs,
        Level::Corpus,
        Level::Generated,
        Level::Resilience,
        Level::Devices,
    ];

    /// Returns the number of the level, which is the prefix of its cases' identifiers.
    pub fn number(self) -> usize {
        self as usize
    }

    /// Returns the level with a number.
    pub fn from_number(number: usize) -> Option<Level> {
        Level::ALL.get(number).copied()
    }

    /// Returns the subject of the level.
    pub fn title(self) -> &'static str {
        match self {
            Level::Registration => "registration",
            Level::Device => "memory, copies, streams, transfers",
            Level::Operations => "operations by element type",
            Level::Programs => "fusions, control flow, aliasing, donation",
            Level::Corpus => "corpus",
            Level::Generated => "generated programs",
            Level::Resilience => "resilience",
            Level::Devices => "several devices",
        }
    }
}

/// Reason that a case did not pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stop {
    /// A contract was violated.
    Failed(String),
    /// The device was lost, or the process died, so that no other case could run there.
    Lost(String),
    /// The case did not end.
    Hung(String),
    /// The platform lacks the optional ability that the case tests.
    Skipped(String),
}

impl Stop {
    /// Adds the attempted operation to the message of a failure.
    pub fn when(self, what: impl std::fmt::Display) -> Stop {
        match self {
            Stop::Failed(message) => Stop::Failed(format!("{what}: {message}")),
            Stop::Lost(message) => Stop::Lost(format!("{what}: {message}")),
            Stop::Hung(message) => Stop::Hung(format!("{what}: {message}")),
            Stop::Skipped(why) => Stop::Skipped(why),
        }
    }
}

/// Outcome of a case.
pub type Check = std::result::Result<(), Stop>;

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error.to_string())
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Stop {
        Stop::Failed(error.to_string())
    }
}

/// Fails with a message unless a condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::conformance::case::Stop::Failed(format!($($message)+)));
        }
    };
}
pub(super) use ensure;

/// Platform under test.
pub struct Subject {
    registry: PlatformRegistry,
    platform: Arc<dyn Platform>,
}

impl Subject {
    /// Creates the subject from a platform of a registry.
    pub fn new(registry: &PlatformRegistry, name: &str) -> Result<Subject> {
        Ok(Subject { registry: registry.clone(), platform: registry.get(name)? })
    }

    /// Returns the name of the platform.
    pub fn name(&self) -> &str {
        self.platform.name()
    }

    /// Returns the registry that contains the platform.
    pub fn registry(&self) -> &PlatformRegistry {
        &self.registry
    }

    /// Returns the platform.
    pub fn platform(&self) -> &Arc<dyn Platform> {
        &self.platform
    }

    /// Returns the first device.
    pub fn executor(&self) -> Result<Arc<dyn StreamExecutor>> {
        self.platform.executor(0)
    }

    /// Returns a client of the first device, without a compilation cache.
    pub fn client(&self) -> Result<Client> {
        Client::for_device(&self.registry, self.name(), 0, Arc::new(CompilationCache::new(0)))
    }
}

/// Observations of a case in addition to its outcome, for the coverage matrix and the list of operations to lower next.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// Status of the case's operation with its element type.
    pub status: Option<Status>,
    /// Host fallbacks in the program of the case: for each instruction, its operations.
    pub fallbacks: Vec<Vec<(Opcode, ElementType)>>,
}

/// Body of a case.
type Work = Box<dyn Fn(&Subject, &mut Notes) -> Check + Send + Sync>;

/// Test case.
pub struct Case {
    /// Identifier `LEVEL/SUBJECT/NAME`, which stays stable across versions.
    pub id: String,
    pub(super) level: Level,
    /// Whether the case reads counters that concurrent cases would change.
    pub(super) alone: bool,
    pub(super) operation: Option<(Opcode, ElementType)>,
    pub(super) work: Work,
}

impl Case {
    /// Creates a case of a level; the level's number is prepended to the name.
    pub(super) fn new(
        level: Level,
        name: impl std::fmt::Display,
        work: impl Fn(&Subject) -> Check + Send + Sync + 'static,
    ) -> Case {
        Case::noting(level, name, move |subject, _| work(subject))
    }

    /// Creates a case that makes observations.
    pub(super) fn noting(
        level: Level,
        name: impl std::fmt::Display,
        work: impl Fn(&Subject, &mut Notes) -> Check + Send + Sync + 'static,
    ) -> Case {
        let id = format!("{}/{name}", level.number());
        Case { id, level, alone: false, operation: None, work: Box::new(work) }
    }

    /// Excludes other cases from running concurrently.
    pub(super) fn alone(mut self) -> Case {
        self.alone = true;
        self
    }
}
