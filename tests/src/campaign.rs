//! Fuzzing campaigns: random programs in worker processes; failures are shrunk and kept as files.

use std::collections::BTreeMap;
use std::io::{Error, Result};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::differential::{Failure, FailureKind};
use crate::generate::{Family, program};
use crate::isolated::Isolated;
use crate::program::Program;
use crate::shrink::shrink;
use crate::worker::{Reply, Request};

/// Programs and limits of a campaign.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Families of programs, tried in rotation.
    pub families: Vec<Family>,
    /// First seed of each family.
    pub first_seed: u64,
    /// Maximum number of programs of each family.
    pub programs: Option<u64>,
    /// Time after which no new program is started.
    pub time: Option<Duration>,
    /// Number of concurrent workers.
    pub jobs: usize,
    /// Command that starts a worker.
    pub worker: Vec<String>,
    /// Folder for failing programs.
    pub keep: PathBuf,
    /// Number of failures at which the campaign ends.
    pub most_failures: usize,
    /// Time limit of one program.
    pub patience: Duration,
}

/// Failing program.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Family.
    pub family: Family,
    /// Seed.
    pub seed: u64,
    /// Kind of the failure.
    pub failure: Failure,
    /// Text of the shrunk program that fails in the same manner, or of the original one if its text form does not fail.
    pub text: String,
    /// File with the text.
    pub path: PathBuf,
    /// Number of instructions of the shrunk program.
    pub instructions: usize,
}

/// Summary of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Number of programs tried, by family.
    pub programs: BTreeMap<String, u64>,
    /// Total number of instructions.
    pub instructions: usize,
    /// Failures.
    pub findings: Vec<Finding>,
}

impl Summary {
    /// Returns the number of programs tried.
    pub fn total(&self) -> u64 {
        self.programs.values().sum()
    }
}

/// State shared by the threads.
struct Progress {
    next: u64,
    summary: Summary,
}

impl Campaign {
    /// Runs the campaign. Calls `watch` after each program, and after each failure is shrunk. Returns an error if no
    /// worker can be started or a file cannot be written.
    pub fn run(&self, watch: &(dyn Fn(&Summary) + Sync)) -> Result<Summary> {
        std::fs::create_dir_all(&self.keep)?;
        let progress = Mutex::new(Progress { next: 0, summary: Summary::default() });
        let end = self.time.map(|time| Instant::now() + time);
        let worker = || Isolated::new(self.worker.clone(), self.patience);
        let programs = std::iter::from_fn(|| self.take(&progress, end)).par_bridge();
        let tried =
            programs.map_init(worker, |isolated, (family, seed)| self.one(isolated, family, seed, &progress, watch));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.jobs.max(1)).build().map_err(Error::other)?;
        pool.install(|| tried.collect::<Result<()>>())?;
        let mut summary = progress.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).summary;
        summary.findings.sort_by_key(|finding| (finding.family.name(), finding.seed));
        Ok(summary)
    }

    /// Returns the next program, unless the campaign has reached a limit.
    fn take(&self, progress: &Mutex<Progress>, end: Option<Instant>) -> Option<(Family, u64)> {
        let mut progress = progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let number = progress.next;
        let seed = number / self.families.len() as u64;
        let done = self.programs.is_some_and(|programs| seed >= programs)
            || end.is_some_and(|end| Instant::now() >= end)
            || progress.summary.findings.len() >= self.most_failures;
        if done {
            return None;
        }
        progress.next += 1;
        Some((self.families[number as usize % self.families.len()], self.first_seed + seed))
    }

    fn one(
        &self,
        isolated: &mut Isolated,
        family: Family,
        seed: u64,
        progress: &Mutex<Progress>,
        watch: &(dyn Fn(&Summary) + Sync),
    ) -> Result<()> {
        let reply = isolated.ask(&Request::Seed { family: family.name(), seed })?;
        let (instructions, failure) = match reply {
            Reply::Agree(instructions) => (instructions, None),
            Reply::Differ(failure) => (0, Some(failure)),
            Reply::Invalid(message) => (0, Some(Failure { kind: FailureKind::Generator, message })),
        };
        let finding = failure.map(|failure| self.finding(isolated, family, seed, failure)).transpose()?;
        let mut progress = progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *progress.summary.programs.entry(family.name()).or_default() += 1;
        progress.summary.instructions += instructions;
        progress.summary.findings.extend(finding);
        watch(&progress.summary);
        Ok(())
    }

    /// Writes the failing program immediately, then its shrunk form.
    fn finding(&self, isolated: &mut Isolated, family: Family, seed: u64, failure: Failure) -> Result<Finding> {
        let whole = program(family, seed);
        let path = self.keep.join(format!("{}_{seed}.hlo", family.name()));
        std::fs::write(&path, whole.to_text())?;
        let shrunk = self.shrunk(isolated, &whole, failure.kind)?;
        let (small, failure) = shrunk.unwrap_or((whole, failure));
        let text = small.to_text();
        std::fs::write(&path, &text)?;
        let instructions = small.module.instruction_count();
        Ok(Finding { family, seed, failure, text, path, instructions })
    }

    /// Shrinks a program; `None` if it does not fail in its text form.
    fn shrunk(
        &self,
        isolated: &mut Isolated,
        whole: &Program,
        kind: FailureKind,
    ) -> Result<Option<(Program, Failure)>> {
        if isolated.failure(whole, &self.keep)?.is_none_or(|failure| failure.kind != kind) {
            return Ok(None);
        }
        let shared = Mutex::new(isolated);
        let ask = |candidate: &Program| {
            let mut isolated = shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            isolated.failure(candidate, &self.keep)
        };
        let small = shrink(whole, &|candidate| matches!(ask(candidate), Ok(Some(failure)) if failure.kind == kind));
        Ok(ask(&small)?.map(|failure| (small, failure)))
    }
}
