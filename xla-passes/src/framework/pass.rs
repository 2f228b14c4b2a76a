//! The pass trait and its context.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use xla_hlo::{Module, Result};

use crate::TargetProfile;
use crate::framework::explain::FusionDecision;
use crate::framework::observer::PassObserver;

/// A rewrite of a module that keeps its meaning.
///
/// A pass writes [`Pass::rewrite`]; everybody else calls [`Pass::run`], which finds out from [`Module::revision`]
/// whether anything was edited. [`Changed`] has no public constructor, so no pass can misreport it.
pub trait Pass: Send + Sync {
    /// The name in pipelines, reports, dumps and options: lower case with dashes, such as `dead-code`.
    fn name(&self) -> &'static str;

    /// Rewrites the module in place. An unchanged module must stay unedited, or fixed-point groups never end.
    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()>;

    /// Runs the pass and tells whether it edited the module.
    fn run(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<Changed> {
        let before = module.revision();
        self.rewrite(module, cx)?;
        Ok(Changed(module.revision() != before))
    }
}

/// Whether a pass edited the module; made by [`Pass::run`] alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Changed(bool);

impl Changed {
    /// Whether there was an edit.
    pub fn is_changed(self) -> bool {
        self.0
    }
}

/// Options of a pipeline's run, the same for every pass.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PassOptions {
    /// Whether the module is verified after each pass that changed it. On in debug builds unless said otherwise.
    pub verify: bool,
    /// Names of passes that are skipped wherever they occur.
    pub disabled: BTreeSet<String>,
    /// Stop after the first run of the pass, or the stage, of that name.
    pub until: Option<String>,
    /// Stop after that many runs of passes; for bisecting.
    pub max_passes: Option<usize>,
    /// Apply at most that many rewrites in all; for bisecting. Passes that rewrite everything in one go do not
    /// count.
    pub max_rewrites: Option<u64>,
}

impl Default for PassOptions {
    fn default() -> Self {
        PassOptions {
            verify: cfg!(debug_assertions),
            disabled: BTreeSet::new(),
            until: None,
            max_passes: None,
            max_rewrites: None,
        }
    }
}

/// Context of a pass, besides the module: the target, the options, and somebody who watches.
pub struct PassContext<'a> {
    profile: &'a TargetProfile,
    options: PassOptions,
    observer: Option<&'a dyn PassObserver>,
    rewrites: Mutex<Rewrites>,
}

#[derive(Default)]
struct Rewrites {
    total: u64,
    by_rule: BTreeMap<&'static str, u64>,
}

impl<'a> PassContext<'a> {
    /// A context with default options and nobody watching.
    pub fn new(profile: &'a TargetProfile) -> PassContext<'a> {
        PassContext { profile, options: PassOptions::default(), observer: None, rewrites: Mutex::default() }
    }

    /// The same context with those options.
    #[must_use]
    pub fn with_options(mut self, options: PassOptions) -> Self {
        self.options = options;
        self
    }

    /// The same context with somebody told before and after each pass.
    #[must_use]
    pub fn with_observer(mut self, observer: &'a dyn PassObserver) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The target.
    pub fn profile(&self) -> &'a TargetProfile {
        self.profile
    }

    /// The options of the run.
    pub fn options(&self) -> &PassOptions {
        &self.options
    }

    /// The observer.
    pub fn observer(&self) -> Option<&'a dyn PassObserver> {
        self.observer
    }

    /// The observer that asks for reasons of decisions, if any.
    pub fn explainer(&self) -> Option<&'a dyn PassObserver> {
        self.observer.filter(|observer| observer.explains())
    }

    /// Tells of a decision, which is made only if somebody wants to know.
    pub fn explain(&self, decision: impl FnOnce() -> FusionDecision) {
        if let Some(explainer) = self.explainer() {
            explainer.fusion(decision());
        }
    }

    /// Asks to apply one more rewrite of that rule (or of the pass of that name), and counts it; false when the limit
    /// is reached.
    pub fn allow_rewrite(&self, rule: &'static str) -> bool {
        let mut rewrites = self.rewrites.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if self.options.max_rewrites.is_some_and(|limit| rewrites.total >= limit) {
            return false;
        }
        rewrites.total += 1;
        *rewrites.by_rule.entry(rule).or_default() += 1;
        true
    }

    /// Counts of applications of each rule so far; a pass without rules counts under its own name.
    pub fn rewrite_counts(&self) -> BTreeMap<&'static str, u64> {
        self.rewrites.lock().unwrap_or_else(std::sync::PoisonError::into_inner).by_rule.clone()
    }
}
