//! Cases: an identifier, a level, and the check.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xla::{Client, CompilationCache, Error, Platform, PlatformRegistry, Result};
use xla_hlo::{ElementType, Opcode};
use xla_service::StreamExecutor;

use crate::coverage::Status;

/// Level of a case: the kind of promise that it checks; each level builds on the ones before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Level {
    /// The platform is registered, answers, and compiles.
    Registration,
    /// Memory, copies, streams, events and transfers keep the contracts of their traits.
    Device,
    /// Single operations by element type, with edge values.
    Operations,
    /// Fusions, control flow, aliasing and donation.
    Programs,
    /// The programs of the corpus.
    Corpus,
    /// Generated programs.
    Generated,
    /// Failures are reported as they should be, and the next execution works.
    Resilience,
}

impl Level {
    /// All of them, from 0.
    pub const ALL: [Level; 7] = [
        Level::Registration,
        Level::Device,
        Level::Operations,
        Level::Programs,
        Level::Corpus,
        Level::Generated,
        Level::Resilience,
    ];

    /// Its number, with which the identifiers of its cases begin.
    pub fn number(self) -> usize {
        self as usize
    }

    /// The level of that number.
    pub fn from_number(number: usize) -> Option<Level> {
        Level::ALL.get(number).copied()
    }

    /// Its subject.
    pub fn title(self) -> &'static str {
        match self {
            Level::Registration => "registration",
            Level::Device => "memory, copies, streams, transfers",
            Level::Operations => "operations by element type",
            Level::Programs => "fusions, control flow, aliasing, donation",
            Level::Corpus => "corpus",
            Level::Generated => "generated programs",
            Level::Resilience => "resilience",
        }
    }
}

/// Reason that a case did not pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stop {
    /// A promise was broken.
    Failed(String),
    /// The device was lost, or the process died, so that nothing else could have run there.
    Lost(String),
    /// It did not end.
    Hung(String),
    /// The platform lacks an optional ability that the case is about.
    Skipped(String),
}

impl Stop {
    /// The same, with the attempt in front of a failure.
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

/// The platform that is tried.
pub struct Subject {
    registry: PlatformRegistry,
    platform: Arc<dyn Platform>,
}

impl Subject {
    /// A platform of a registry.
    pub fn new(registry: &PlatformRegistry, name: &str) -> Result<Subject> {
        Ok(Subject { registry: registry.clone(), platform: registry.get(name)? })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.platform.name()
    }

    /// The registry that it is in.
    pub fn registry(&self) -> &PlatformRegistry {
        &self.registry
    }

    /// The platform itself.
    pub fn platform(&self) -> &Arc<dyn Platform> {
        &self.platform
    }

    /// Its first device.
    pub fn executor(&self) -> Result<Arc<dyn StreamExecutor>> {
        self.platform.executor(0)
    }

    /// A client of its first device that compiles everything anew.
    pub fn client(&self) -> Result<Client> {
        Client::for_device(&self.registry, self.name(), 0, Arc::new(CompilationCache::new(0)))
    }
}

/// Observations of a case beside passing: for the coverage matrix and the list of operations to lower next.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// Status of the case's operation with its element type.
    pub status: Option<Status>,
    /// Host fallbacks in the program of the case: for each instruction the operations in it.
    pub fallbacks: Vec<Vec<(Opcode, ElementType)>>,
}

/// Body of a case.
type Work = Box<dyn Fn(&Subject, &mut Notes) -> Check + Send + Sync>;

/// Something to try.
pub struct Case {
    /// `LEVEL/SUBJECT/NAME`: stays the same from version to version.
    pub id: String,
    pub(super) level: Level,
    /// Whether it looks at numbers that other cases at the same time would change.
    pub(super) alone: bool,
    pub(super) operation: Option<(Opcode, ElementType)>,
    pub(super) work: Work,
}

impl Case {
    /// A case of that level; the level's number is put in front of the name.
    pub(super) fn new(
        level: Level,
        name: impl std::fmt::Display,
        work: impl Fn(&Subject) -> Check + Send + Sync + 'static,
    ) -> Case {
        Case::noting(level, name, move |subject, _| work(subject))
    }

    /// A case that learns something.
    pub(super) fn noting(
        level: Level,
        name: impl std::fmt::Display,
        work: impl Fn(&Subject, &mut Notes) -> Check + Send + Sync + 'static,
    ) -> Case {
        let id = format!("{}/{name}", level.number());
        Case { id, level, alone: false, operation: None, work: Box::new(work) }
    }

    /// The same, with no other case at the same time.
    pub(super) fn alone(mut self) -> Case {
        self.alone = true;
        self
    }
}
