//! Report of a pipeline's run, as data: time and edits of each pass.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// One run of one pass.
#[derive(Clone, Debug)]
pub struct PassRun {
    /// Counts runs from 0 over the whole pipeline.
    pub index: usize,
    /// Stages and pass, such as `standard.simplify.dead-code`.
    pub path: String,
    /// The pass's name.
    pub pass: &'static str,
    /// Whether it edited the module.
    pub changed: bool,
    /// Time in the pass.
    pub time: Duration,
    /// Time in the verifier afterwards; zero when it did not run.
    pub verify_time: Duration,
    /// Instructions of the module afterwards.
    pub instructions: usize,
}

/// All runs of a pipeline in order.
#[derive(Clone, Debug, Default)]
pub struct PipelineReport {
    /// Each run of each pass.
    pub runs: Vec<PassRun>,
    /// Counts of applications of each simplifier rule; a pass without rules counts its rewrites under its own name.
    pub rewrites: BTreeMap<&'static str, u64>,
    /// Path of the step at which an option (`until`, `max_passes`) cut the pipeline short.
    pub cut_at: Option<String>,
    /// Fixed-point groups that were still changing the module when their limit was reached.
    pub unfinished: Vec<String>,
}

/// The runs of one pass put together.
#[derive(Clone, Debug, Default)]
pub struct PassTotal {
    /// Number of runs.
    pub runs: usize,
    /// Number of runs that edited the module.
    pub changes: usize,
    /// Time in the pass, the verifier aside.
    pub time: Duration,
}

impl PipelineReport {
    /// Whether any pass edited the module.
    pub fn is_changed(&self) -> bool {
        self.runs.iter().any(|run| run.changed)
    }

    /// Time in passes, the verifier aside.
    pub fn time(&self) -> Duration {
        self.runs.iter().map(|run| run.time).sum()
    }

    /// Runs, changes and time by pass name.
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

/// A table: a line for each pass, most time first, then the rules that were applied.
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
