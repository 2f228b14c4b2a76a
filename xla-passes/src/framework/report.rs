//! Report of a pipeline run as data: time and edits of each pass.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Number of applications of each rule. A pass without rules counts its rewrites under its own name.
pub type RewriteCounts = BTreeMap<&'static str, u64>;

/// One run of one pass.
#[derive(Clone, Debug)]
pub struct PassRun {
    /// Number of the run, counted from 0 over the whole pipeline.
    pub index: usize,
    /// Stages and pass, such as `standard.simplify.dead-code`.
    pub path: String,
    /// Name of the pass.
    pub pass: &'static str,
    /// Whether it edited the module.
    pub changed: bool,
    /// Time spent in the pass.
    pub time: Duration,
    /// Time spent in the verifier afterwards; zero if it did not run.
    pub verify_time: Duration,
    /// Number of instructions in the module afterwards.
    pub instructions: usize,
    /// Rewrites of this run.
    pub rewrites: RewriteCounts,
}

/// All runs of a pipeline, in order.
#[derive(Clone, Debug, Default)]
pub struct PipelineReport {
    /// All runs of all passes.
    pub runs: Vec<PassRun>,
    /// Rewrites of all runs.
    pub rewrites: RewriteCounts,
    /// Path of the step at which an option (`until`, `max_passes`) stopped the pipeline.
    pub cut_at: Option<String>,
    /// Paths of fixpoint groups that still changed the module when they reached their iteration limit.
    pub unfinished: Vec<String>,
}

/// Totals over all runs of one pass.
#[derive(Clone, Debug, Default)]
pub struct PassTotal {
    /// Number of runs.
    pub runs: usize,
    /// Number of runs that edited the module.
    pub changes: usize,
    /// Time spent in the pass, without the verifier.
    pub time: Duration,
}

impl PipelineReport {
    /// Whether any pass edited the module.
    pub fn is_changed(&self) -> bool {
        self.runs.iter().any(|run| run.changed)
    }

    /// Returns the time spent in passes, without the verifier.
    pub fn time(&self) -> Duration {
        self.runs.iter().map(|run| run.time).sum()
    }

    /// Returns runs, changes and time by pass name.
    pub fn by_pass(&self) -> BTreeMap<&'static str, PassTotal> {
        let mut totals = BTreeMap::<_, PassTotal>::new();
        for run in &self.runs {
            let total = totals.entry(run.pass).or_default();
            total.runs += 1;
            total.changes += usize::from(run.changed);
            total.time += run.time;
        }
        totals
    }
}

/// Prints a table: one line per pass in order of decreasing time, then the applied rules.
impl fmt::Display for PipelineReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<28} {:>5} {:>8} {:>10}", "pass", "runs", "changes", "ms")?;
        let mut totals: Vec<_> = self.by_pass().into_iter().collect();
        totals.sort_by_key(|(_, total)| std::cmp::Reverse(total.time));
        for (pass, total) in totals {
            let ms = total.time.as_secs_f64() * 1e3;
            writeln!(f, "{pass:<28} {:>5} {:>8} {ms:>10.3}", total.runs, total.changes)?;
        }
        for (rule, count) in &self.rewrites {
            writeln!(f, "rule {rule}: {count}")?;
        }
        for group in &self.unfinished {
            writeln!(f, "group {group} reached its limit while still changing")?;
        }
        if let Some(path) = &self.cut_at {
            writeln!(f, "cut short at {path}")?;
        }
        Ok(())
    }
}
