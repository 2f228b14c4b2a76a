//! Report of a run: every case, the coverage matrix, and the operations to lower next.

mod html;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;
use xla_hlo::{ElementType, Opcode};

use super::Suite;
use super::case::{Level, Notes};
use super::expected::ExpectedFailure;
use crate::coverage::{Status, Table};

/// Outcome of a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Outcome {
    /// Success.
    Passed,
    /// Violation of a contract.
    Failed(String),
    /// Loss of the device, or crash of the process; the cases after it ran in a new process.
    Lost(String),
    /// Case that did not end; its process was killed.
    Hung(String),
    /// Declared failure.
    Expected {
        /// Message of the failure.
        message: String,
        /// Declared reason.
        reason: String,
    },
    /// Success of a case that is declared to fail, with the declared reason.
    BeginsToPass(String),
    /// Skipped, since the platform lacks the optional ability.
    Skipped(String),
}

impl Outcome {
    /// Returns the reason why this outcome makes the whole run fail, if it does.
    pub fn failure(&self) -> Option<String> {
        match self {
            Outcome::Failed(message) | Outcome::Lost(message) | Outcome::Hung(message) => Some(message.clone()),
            Outcome::BeginsToPass(reason) => {
                Some(format!("begins to pass: remove its line from the expected failures ({reason})"))
            }
            Outcome::Passed | Outcome::Expected { .. } | Outcome::Skipped(_) => None,
        }
    }
}

/// Case with its outcome.
#[derive(Clone, Debug, Serialize)]
pub struct CaseResult {
    /// Identifier of the case.
    pub id: String,
    /// Level.
    pub level: Level,
    /// Outcome.
    pub outcome: Outcome,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Operation that the host evaluates for the platform in programs of the corpus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lowering {
    /// Operation, with the element type of its result.
    pub operation: String,
    /// Number of programs that need the host for it.
    pub programs: usize,
    /// Number of its instructions in all of them.
    pub instructions: usize,
}

/// Report of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Name of the platform.
    pub platform: String,
    /// Results of all cases, sorted by identifier.
    pub results: Vec<CaseResult>,
    /// Errors other than failing cases: declared failures that match no case.
    pub complaints: Vec<String>,
    /// Operations whose lowering would help most programs of the corpus, the best first; empty if level 4 did not run
    /// or nothing is left to lower.
    pub lowering: Vec<Lowering>,
    /// Duration in seconds.
    pub seconds: f64,
    /// Coverage of operations by element type; blank if level 2 did not run.
    #[serde(skip)]
    pub matrix: Option<Table>,
    /// Operations that the host evaluates, for each program of the corpus.
    #[serde(skip)]
    fallbacks: Vec<Vec<Vec<(Opcode, ElementType)>>>,
    #[serde(skip)]
    cells: Vec<(Opcode, ElementType, Status)>,
}

impl Report {
    pub(super) fn new(platform: &str) -> Report {
        Report {
            platform: platform.to_string(),
            results: Vec::new(),
            complaints: Vec::new(),
            lowering: Vec::new(),
            seconds: 0.0,
            matrix: None,
            fallbacks: Vec::new(),
            cells: Vec::new(),
        }
    }

    /// Whether every case passed, failed as declared, or was skipped.
    pub fn passed(&self) -> bool {
        self.complaints.is_empty() && self.failures().next().is_none()
    }

    /// Returns the cases that make the run fail, with the reason.
    pub fn failures(&self) -> impl Iterator<Item = (&str, String)> {
        self.results.iter().filter_map(|result| Some((result.id.as_str(), result.outcome.failure()?)))
    }

    /// Returns the report as text.
    pub fn text(&self) -> String {
        text::text(self)
    }

    /// Returns the report as a self-contained HTML page.
    pub fn html(&self) -> String {
        html::page(self)
    }

    /// Returns the report as a JSON object.
    pub fn json(&self) -> String {
        // Serialization fails only for maps with keys that are not strings, of which there are none.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    pub(super) fn complain(&mut self, complaint: String) {
        self.complaints.push(complaint);
    }

    /// Records a case's observations.
    pub(super) fn learn(&mut self, result: &CaseResult, operation: Option<(Opcode, ElementType)>, notes: Notes) {
        if let Some((opcode, ty)) = operation {
            let status = match &result.outcome {
                Outcome::Passed | Outcome::BeginsToPass(_) => notes.status.unwrap_or(Status::Native),
                Outcome::Expected { reason, .. } => Status::Expected(reason.clone()),
                Outcome::Skipped(why) => Status::Refused(why.clone()),
                Outcome::Failed(message) | Outcome::Lost(message) | Outcome::Hung(message) => match notes.status {
                    Some(status @ (Status::Refused(_) | Status::Missing)) => status,
                    _ => Status::Wrong(message.clone()),
                },
            };
            self.cells.push((opcode, ty, status));
        }
        if result.level == Level::Corpus {
            self.fallbacks.push(notes.fallbacks);
        }
    }

    /// Completes the report after all cases have run.
    pub(super) fn finish(&mut self, suite: &Suite, listed: &[String], time: Duration) {
        self.seconds = time.as_secs_f64();
        self.results.sort_by(|a, b| a.id.cmp(&b.id));
        for line in suite.expected.lines() {
            self.complaints.extend(self.stale(suite, line, listed));
        }
        if !self.cells.is_empty() {
            let mut table = Table::blank(&self.platform);
            self.cells.drain(..).for_each(|(opcode, ty, status)| table.set(opcode, ty, status));
            self.matrix = Some(table);
        }
        self.lowering = self.next_to_lower();
    }

    /// Returns the error of a line of the expected failures, if it is stale.
    fn stale(&self, suite: &Suite, line: &ExpectedFailure, listed: &[String]) -> Option<String> {
        let ExpectedFailure { number, pattern, .. } = line;
        let level = pattern.split('/').next().and_then(|number| Level::from_number(number.parse().ok()?));
        let is_judged = match level {
            Some(level) => suite.levels.contains(&level) && suite.is_whole(level),
            None => Level::ALL.iter().all(|level| suite.levels.contains(level) && suite.is_whole(*level)),
        };
        let fitting = listed.iter().filter(|id| line.fits(id)).count();
        if fitting == 0 && is_judged {
            return Some(format!("line {number} of the expected failures, {pattern}, fits no case: remove it"));
        }
        line.prefix()?;
        let ran: Vec<&CaseResult> = self.results.iter().filter(|result| line.fits(&result.id)).collect();
        let passed = ran.iter().filter(|result| result.outcome == Outcome::Passed).count();
        (fitting > 0 && passed == fitting).then(|| {
            format!(
                "line {number} of the expected failures, {pattern}: all {passed} cases begin to pass: remove the line"
            )
        })
    }

    /// Returns the operations that the host evaluates, by the number of programs that would gain.
    fn next_to_lower(&self) -> Vec<Lowering> {
        let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for program in &self.fallbacks {
            let names = program.iter().flat_map(|instruction| self.culprits(instruction));
            let names: Vec<String> = names.collect();
            for name in names.iter().collect::<BTreeSet<_>>() {
                counts.entry(name.clone()).or_default().0 += 1;
            }
            for name in names {
                counts.entry(name).or_default().1 += 1;
            }
        }
        let lowering = |(operation, (programs, instructions))| Lowering { operation, programs, instructions };
        let mut list: Vec<Lowering> = counts.into_iter().map(lowering).collect();
        list.sort_by_key(|lowering| std::cmp::Reverse((lowering.programs, lowering.instructions)));
        list
    }

    /// Returns the operations that make an instruction not native, according to the matrix.
    fn culprits(&self, operations: &[(Opcode, ElementType)]) -> BTreeSet<String> {
        let is_native = |opcode, ty| {
            self.matrix.as_ref().is_some_and(|table| matches!(table.get(opcode, ty), Some(Status::Native)))
        };
        let name = |&(opcode, ty): &(Opcode, ElementType)| format!("{opcode} {ty}");
        let guilty: BTreeSet<String> =
            operations.iter().filter(|(opcode, ty)| !is_native(*opcode, *ty)).map(name).collect();
        if guilty.is_empty() { operations.last().map(name).into_iter().collect() } else { guilty }
    }
}
