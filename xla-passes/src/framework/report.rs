//! Report of a pipeline run as data: time and edits of each pass.

use std::fmt;
use std::time::Duration;

use crate::framework::statistics::{PassStatistics, PipelineStatistics, RewriteCounts};

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
    /// Path of the step at which an option (`until`, `max_passes`) stopped the pipeline.
    pub cut_at: Option<String>,
    /// Paths of fixpoint groups that still changed the module when they reached their iteration limit.
    pub unfinished: Vec<String>,
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

    /// Returns the statistics of each pass.
    pub fn statistics(&self) -> PipelineStatistics {
        let mut passes: Vec<PassStatistics> = Vec::new();
        for run in &self.runs {
            let place = passes.iter().position(|known| known.pass == run.pass).unwrap_or_else(|| {
                passes.push(PassStatistics { pass: run.pass, ..PassStatistics::default() });
                passes.len() - 1
            });
            let statistics = &mut passes[place];
            statistics.runs += 1;
            statistics.changes += usize::from(run.changed);
            statistics.time += run.time;
            for (rule, count) in &run.rewrites {
                *statistics.rewrites.entry(rule).or_default() += count;
            }
        }
        PipelineStatistics { passes }
    }

    /// Returns the rewrites of all runs.
    pub fn rewrites(&self) -> RewriteCounts {
        let mut all = RewriteCounts::new();
        for (rule, count) in self.runs.iter().flat_map(|run| &run.rewrites) {
            *all.entry(rule).or_default() += count;
        }
        all
    }
}

/// Prints a table: one line per pass in order of decreasing time, then the applied rules.
impl fmt::Display for PipelineReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<28} {:>5} {:>8} {:>10}", "pass", "runs", "changes", "ms")?;
        let mut totals = self.statistics().passes;
        totals.sort_by_key(|total| std::cmp::Reverse(total.time));
        for PassStatistics { pass, runs, changes, time, .. } in totals {
            let ms = time.as_secs_f64() * 1e3;
            writeln!(f, "{pass:<28} {runs:>5} {changes:>8} {ms:>10.3}")?;
        }
        for (rule, count) in self.rewrites() {
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
