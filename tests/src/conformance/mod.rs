//! Conformance suite for every platform, in levels, run through the registry.
//!
//! | level | content |
//! | --- | --- |
//! | 0 | the platform is registered, responds, and compiles |
//! | 1 | `StreamExecutor`, `Stream`, `Event` and `TransferManager` keep their contracts, also under many threads |
//! | 2 | single operations by element type, with edge values, against the evaluator |
//! | 3 | fusions, control flow, aliasing and donation: `tests/conformance/programs` and `tests/regressions` |
//! | 4 | the programs of the corpus |
//! | 5 | generated programs; idioms of machine learning with sizes around vector lengths: `tests/conformance/idioms` |
//! | 6 | out of memory at every allocation, faults, cancelled runs, thousands of executions |
//! | 7 | programs for 2 and 4 devices: every collective and group mode, donation, failures, overlapping launches |
//!
//! A backend crate, inside or outside of this repository, calls it from one test:
//!
//! ```
//! # let acme = xla_service::interpreter::platform();
//! let mut registry = xla::PlatformRegistry::new();
//! registry.register(acme);
//! // `check(&registry, "acme", include_str!("../expected-failures.txt"))` tries every level; here two of them:
//! use xla_tests::conformance::{Level, Suite};
//! let suite = Suite::new(&registry, "interpreter").levels(&[Level::Registration]).filter("0/");
//! let report = suite.run(&mut ()).unwrap();
//! assert!(report.passed(), "{}", report.text());
//! ```
//!
//! Known failures of a platform are declared in a text file next to it: see [`Expected`]. A declared failure that
//! passes is a failure too. Cases of optional abilities are skipped if the platform lacks the ability.

pub mod case;
mod expected;
mod faulty;
mod judge;
mod launch;
mod levels;
mod one;
mod pseudo;
mod report;
mod run;
mod shard;
mod workers;

use std::io::{BufRead, Write};
use std::time::Duration;

use xla::{PlatformRegistry, Result};

pub use case::{Case, Level};
pub use expected::{Expected, ExpectedFailure};
pub use faulty::FaultyPlatform;
pub(crate) use levels::program_files;
pub use pseudo::{compiled, optimized};
pub use report::{CaseResult, Lowering, Outcome, Report};
pub use shard::Shard;

/// Default number of generated programs of each family: 440 in all.
const GENERATED: u64 = 40;
/// Default number of generated programs of each family in quick runs.
const GENERATED_QUICK: u64 = 4;

/// Default time limit of a case.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// Suite for one platform.
pub struct Suite {
    registry: PlatformRegistry,
    platform: String,
    levels: Vec<Level>,
    filter: String,
    shard: Option<Shard>,
    expected: Expected,
    corpus: Option<Vec<String>>,
    generated: Option<u64>,
    jobs: usize,
    quick: bool,
    patience: Duration,
    /// Command that starts a process for cases; `None` runs them in this process.
    workers: Option<Vec<String>>,
}

/// Observer of the progress of a run.
pub trait Observer {
    /// Called with the number of cases that will run.
    fn begin(&mut self, cases: usize) {
        let _ = cases;
    }

    /// Called after each case.
    fn done(&mut self, result: &CaseResult) {
        let _ = result;
    }
}

impl Observer for () {}

impl Suite {
    /// Creates a suite with all levels for a platform of the registry; `optimized:NAME` is the evaluator after that
    /// platform's passes, `compiled:NAME` the evaluator after its compiler.
    pub fn new(registry: &PlatformRegistry, platform: &str) -> Suite {
        Suite {
            registry: registry.clone(),
            platform: platform.to_string(),
            levels: Level::ALL.to_vec(),
            filter: String::new(),
            shard: None,
            expected: Expected::default(),
            corpus: None,
            generated: None,
            jobs: 1,
            quick: false,
            patience: PATIENCE,
            workers: None,
        }
    }

    /// Selects levels.
    #[must_use]
    pub fn levels(mut self, levels: &[Level]) -> Suite {
        self.levels = levels.to_vec();
        self
    }

    /// Selects the cases whose identifier contains a text.
    #[must_use]
    pub fn filter(mut self, filter: impl Into<String>) -> Suite {
        self.filter = filter.into();
        self
    }

    /// Selects one of several parts of the cases.
    #[must_use]
    pub fn shard(mut self, shard: Shard) -> Suite {
        self.shard = Some(shard);
        self
    }

    /// Sets the expected failures.
    #[must_use]
    pub fn expected(mut self, expected: Expected) -> Suite {
        self.expected = expected;
        self
    }

    /// Selects suites of the corpus.
    #[must_use]
    pub fn corpus(mut self, suites: &[&str]) -> Suite {
        self.corpus = Some(suites.iter().map(ToString::to_string).collect());
        self
    }

    /// Sets the number of generated programs of each family.
    #[must_use]
    pub fn generated(mut self, programs: u64) -> Suite {
        self.generated = Some(programs);
        self
    }

    /// Sets the number of concurrent cases.
    #[must_use]
    pub fn jobs(mut self, jobs: usize) -> Suite {
        self.jobs = jobs.max(1);
        self
    }

    /// Selects smaller sizes and fewer programs, for tests that run at every change.
    #[must_use]
    pub fn quick(mut self) -> Suite {
        self.quick = true;
        self
    }

    /// Sets the time limit of a case; a case that exceeds it fails.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Suite {
        self.patience = patience;
        self
    }

    /// Runs cases in processes that a command starts, one process for each job: a case that loses the device, dies or
    /// hangs does not affect others. The command must call [`Suite::serve`] of an equal suite.
    #[must_use]
    pub fn workers(mut self, command: Vec<String>) -> Suite {
        self.workers = Some(command);
        self
    }

    /// Runs the cases that another process requests, line by line, until the requests end.
    pub fn serve(&self, requests: impl BufRead, replies: impl Write) -> Result<()> {
        workers::serve(self, requests, replies)
    }

    /// Returns the cases that would run.
    pub fn cases(&self) -> Vec<Case> {
        let mut cases = self.listed();
        cases.retain(|case| self.selects(&case.id));
        cases
    }

    /// Returns whether the filter and the shard select a case.
    fn selects(&self, id: &str) -> bool {
        id.contains(&self.filter) && self.shard.is_none_or(|shard| shard.has(id))
    }

    /// Runs the suite. Returns an error if the platform does not exist, or if the filter leaves no case; everything
    /// else is in the report.
    pub fn run(&self, observer: &mut dyn Observer) -> Result<Report> {
        run::run(self, observer)
    }

    /// Returns the cases of the selected levels, regardless of filter and shard.
    fn listed(&self) -> Vec<Case> {
        let sizes = levels::Sizes {
            corpus: self.corpus.clone(),
            generated: self.generated.unwrap_or(if self.quick { GENERATED_QUICK } else { GENERATED }),
            quick: self.quick,
        };
        self.levels.iter().flat_map(|&level| levels::cases(level, &sizes)).collect()
    }

    /// Whether all cases of a level are listed, so that a declared failure without a matching case is stale.
    fn is_whole(&self, level: Level) -> bool {
        match level {
            Level::Corpus => self.corpus.is_none(),
            Level::Generated => self.generated.is_none() && !self.quick,
            Level::Resilience | Level::Devices => !self.quick,
            Level::Registration | Level::Device | Level::Operations | Level::Programs => true,
        }
    }
}

/// Runs the whole suite as one test: panics with a report unless the platform passes, except for the expected failures.
/// Builds without optimization use smaller sizes and fewer programs.
pub fn check(registry: &PlatformRegistry, platform: &str, expected_failures: &str) {
    let report = Expected::parse(expected_failures).and_then(|expected| {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let suite = Suite::new(registry, platform).expected(expected).jobs(jobs);
        if cfg!(debug_assertions) { suite.quick() } else { suite }.run(&mut ())
    });
    match report {
        Ok(report) if report.passed() => {}
        Ok(report) => panic!("{}", report.text()),
        Err(error) => panic!("{error}"),
    }
}
