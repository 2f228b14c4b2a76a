//! Bisection: finds the pass that breaks a program, and the rewrite in that pass.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use xla_hlo::{Error, Module, Result};

use crate::{PassContext, PassEvent, PassObserver, PassOptions, Pipeline, TargetProfile};

/// Verdict of a test on a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The program works.
    Good,
    /// The program is broken.
    Bad,
    /// The test is inconclusive.
    Skip,
}

/// A module to judge: the program after some number of passes and rewrites.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'m> {
    /// Module after the passes and rewrites.
    pub module: &'m Module,
    /// Value of [`PassOptions::max_passes`] that reproduces the module.
    pub max_passes: usize,
    /// Value of [`PassOptions::max_rewrites`] that reproduces the module.
    pub max_rewrites: Option<u64>,
    /// Estimated number of probes that will follow.
    pub left: usize,
}

/// Result of a bisection.
#[derive(Debug)]
pub enum Bisected {
    /// The program is broken before any pass has run.
    AtStart,
    /// The program is never broken.
    Never,
    /// One pass breaks the program.
    Broken(Box<Culprit>),
}

/// The pass, and possibly the rewrite, that breaks a program.
#[derive(Debug)]
pub struct Culprit {
    /// Stages and pass, such as `standard.simplify.simplify-group.simplify-algebra`. If skipped modules leave several
    /// candidates, this is the last one.
    pub path: String,
    /// Paths of the other candidates.
    pub others: Vec<String>,
    /// The rule (or the pass's name) whose rewrite breaks the program, if the pass requests permission for each rewrite
    /// and a single rewrite is responsible.
    pub rule: Option<&'static str>,
    /// The last module that is good.
    pub before: Module,
    /// The first bad module; `None` if the pass fails.
    pub after: Option<Module>,
    /// Error that the pass or the verifier returned.
    pub error: Option<Error>,
    /// Value of [`PassOptions::max_passes`] that reproduces the bad module.
    pub max_passes: usize,
    /// Value of [`PassOptions::max_rewrites`] that reproduces the bad module; with one rewrite less, the module is
    /// good.
    pub max_rewrites: Option<u64>,
}

/// Finds the first pass, and the first rewrite in it, after which `judge` reports the program as bad.
///
/// The initial program should be good, the program after the whole pipeline bad, and a bad program should stay bad.
/// Each module is judged once. A pass that fails or produces a module that the verifier rejects is bad without a call
/// of `judge`. Returns an error if `judge` does, or if it skips the first or the last module.
pub fn bisect(
    pipeline: &Pipeline,
    module: &Module,
    profile: &TargetProfile,
    options: &PassOptions,
    judge: &mut dyn FnMut(Probe<'_>) -> Result<Verdict>,
) -> Result<Bisected> {
    let mut search = Search { pipeline, module, profile, options, judge };
    let steps = search.steps();
    let unknown =
        |end: &str| Error::failed_precondition(format!("the program {end} passes cannot be judged good or bad"));
    match search.judge(0, None, steps.len())? {
        Verdict::Good => {}
        Verdict::Bad => return Ok(Bisected::AtStart),
        Verdict::Skip => return Err(unknown("before all")),
    }
    let Some(last) = steps.last() else { return Ok(Bisected::Never) };
    match search.judge(last.max_passes, None, steps.len())? {
        Verdict::Good => return Ok(Bisected::Never),
        Verdict::Bad => {}
        Verdict::Skip => return Err(unknown("after all")),
    }
    // Position 0 is the initial program, position n the program after n passes that changed it.
    let passes = |place: usize| if place == 0 { 0 } else { steps[place - 1].max_passes };
    let (good, bad) = between(steps.len(), &mut |place, left| search.judge(passes(place), None, left))?;
    let others = steps[good..bad - 1].iter().map(|step| step.path.clone()).collect();
    Ok(Bisected::Broken(Box::new(search.culprit(passes(good), passes(bad), &steps[bad - 1].path, others)?)))
}

/// Returns the closest good and bad positions in `0..=last`, where the first is good and the last is bad. Their
/// distance exceeds 1 if all positions in between are skipped.
fn between(last: usize, judge: &mut dyn FnMut(usize, usize) -> Result<Verdict>) -> Result<(usize, usize)> {
    let (mut good, mut bad) = (0, last);
    let mut skipped = BTreeSet::new();
    loop {
        let middle = good + (bad - good) / 2;
        let candidates = (good + 1..bad).filter(|place| !skipped.contains(place));
        let Some(next) = candidates.min_by_key(|place| place.abs_diff(middle)) else { return Ok((good, bad)) };
        match judge(next, bad - good)? {
            Verdict::Good => good = next,
            Verdict::Bad => bad = next,
            Verdict::Skip => {
                skipped.insert(next);
            }
        }
    }
}

/// A run of a pass that changed the program or failed.
struct BisectStep {
    /// Number of pass runs up to and including this one.
    max_passes: usize,
    path: String,
}

/// Observer that records the runs of passes that change the program. For a run that fails, only `before` is called.
#[derive(Default)]
struct StepRecorder(Mutex<Vec<BisectStep>>);

impl PassObserver for StepRecorder {
    fn before(&self, event: &PassEvent<'_>) -> Result<()> {
        let step = BisectStep { max_passes: event.index + 1, path: event.path.to_string() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(step);
        Ok(())
    }

    fn after(&self, event: &PassEvent<'_>) -> Result<()> {
        if !event.changed {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        }
        Ok(())
    }
}

struct Search<'a, 'j> {
    pipeline: &'a Pipeline,
    module: &'a Module,
    profile: &'a TargetProfile,
    options: &'a PassOptions,
    judge: &'j mut dyn FnMut(Probe<'_>) -> Result<Verdict>,
}

/// The module after some passes and the number of applications of each rule, or the error of a pass.
type Made = Result<(Module, BTreeMap<&'static str, u64>)>;

impl Search<'_, '_> {
    fn steps(&self) -> Vec<BisectStep> {
        let watch = StepRecorder::default();
        let cx = PassContext::new(self.profile).with_options(self.options.clone()).with_observer(&watch);
        // A failing pass is the last step, so that the error is ignored here.
        let _ = self.pipeline.run(&mut self.module.clone(), &cx);
        watch.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(&self, max_passes: usize, max_rewrites: Option<u64>) -> Made {
        let mut module = self.module.clone();
        let max_passes = Some(self.options.max_passes.map_or(max_passes, |limit| limit.min(max_passes)));
        let max_rewrites = max_rewrites.or(self.options.max_rewrites);
        let options = PassOptions { max_passes, max_rewrites, ..self.options.clone() };
        let report = self.pipeline.run(&mut module, &PassContext::new(self.profile).with_options(options))?;
        Ok((module, report.rewrites()))
    }

    /// Judges a module while `span` positions remain.
    fn judge(&mut self, max_passes: usize, max_rewrites: Option<u64>, span: usize) -> Result<Verdict> {
        match self.make(max_passes, max_rewrites) {
            Ok((module, _)) => {
                let left = span.next_power_of_two().ilog2() as usize;
                (self.judge)(Probe { module: &module, max_passes, max_rewrites, left })
            }
            Err(_) => Ok(Verdict::Bad),
        }
    }

    /// Returns the culprit between a good and a bad number of passes. Searches for the rewrite if a single pass is
    /// left.
    fn culprit(&mut self, good: usize, bad: usize, path: &str, others: Vec<String>) -> Result<Culprit> {
        let (before, counts) = self.make(good, None)?;
        let made = self.make(bad, None);
        let mut culprit = Culprit {
            path: path.to_string(),
            others,
            rule: None,
            before,
            after: None,
            error: None,
            max_passes: bad,
            max_rewrites: None,
        };
        match made {
            Err(error) => culprit.error = Some(error),
            Ok((after, all)) => {
                culprit.after = Some(after);
                let (first, last) = (counts.values().sum::<u64>(), all.values().sum::<u64>());
                if culprit.others.is_empty() && first < last {
                    self.find_rewrite(&mut culprit, first, last)?;
                }
            }
        }
        Ok(culprit)
    }

    /// Narrows a guilty pass down to one of its rewrites with numbers in `first + 1 ..= last`.
    fn find_rewrite(&mut self, culprit: &mut Culprit, first: u64, last: u64) -> Result<()> {
        let passes = culprit.max_passes;
        let place = |place: usize| Some(first + place as u64);
        let span = usize::try_from(last - first).unwrap_or(usize::MAX);
        // Edits that the pass makes without permission may be the cause.
        if self.judge(passes, place(0), span)? != Verdict::Good {
            return Ok(());
        }
        let (good, bad) = between(span, &mut |n, left| self.judge(passes, place(n), left))?;
        if bad - good > 1 {
            return Ok(());
        }
        let ((before, fewer), (after, more)) = (self.make(passes, place(good))?, self.make(passes, place(bad))?);
        culprit.rule = more.iter().find(|(rule, n)| fewer.get(*rule) != Some(*n)).map(|(rule, _)| *rule);
        (culprit.before, culprit.after, culprit.max_rewrites) = (before, Some(after), place(bad));
        Ok(())
    }
}
