//! The pass trait and its context.

use std::collections::BTreeSet;
use std::sync::Mutex;

use xla_hlo::{Module, Result};

use crate::TargetProfile;
use crate::framework::explain::FusionDecision;
use crate::framework::observer::PassObserver;
use crate::framework::statistics::RewriteCounts;

/// A rewrite of a module that preserves its meaning.
///
/// A pass implements [`Pass::rewrite`]; callers use [`Pass::run`], which compares [`Module::revision`] to detect edits.
/// [`Changed`] has no public constructor, so that no pass can misreport it.
pub trait Pass: Send + Sync {
    /// Returns the name in pipelines, reports, dumps and options: lower case with dashes, such as `dead-code`.
    fn name(&self) -> &'static str;

    /// Rewrites the module in place. A pass that changes nothing must not edit the module; otherwise fixpoint groups do
    /// not terminate.
    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()>;

    /// Runs the pass and returns whether it edited the module.
    fn run(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<Changed> {
        let before = module.revision();
        self.rewrite(module, cx)?;
        Ok(Changed(module.revision() != before))
    }
}

/// Whether a pass edited the module. Only [`Pass::run`] creates it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Changed(bool);

impl Changed {
    /// Returns true if the pass edited the module.
    pub fn is_changed(self) -> bool {
        self.0
    }
}

/// Options of a pipeline run, shared by all passes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PassOptions {
    /// Whether the module is verified after each pass that changed it. On by default in debug builds.
    pub verify: bool,
    /// Names of passes to skip.
    pub disabled: BTreeSet<String>,
    /// Stops after the first run of the pass or stage with this name.
    pub until: Option<String>,
    /// Stops after this number of pass runs; for bisection.
    pub max_passes: Option<usize>,
    /// Applies at most this number of rewrites in total; for bisection. Passes that rewrite everything at once are not
    /// counted.
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

/// Context of a pass in addition to the module: the target, the options and an observer.
pub struct PassContext<'a> {
    profile: &'a TargetProfile,
    options: PassOptions,
    observer: Option<&'a dyn PassObserver>,
    rewrites: Mutex<Rewrites>,
}

#[derive(Default)]
struct Rewrites {
    total: u64,
    by_rule: RewriteCounts,
}

impl<'a> PassContext<'a> {
    /// Creates a context with default options and without an observer.
    pub fn new(profile: &'a TargetProfile) -> PassContext<'a> {
        PassContext { profile, options: PassOptions::default(), observer: None, rewrites: Mutex::default() }
    }

    /// Sets the options.
    #[must_use]
    pub fn with_options(mut self, options: PassOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the observer, which is called before and after each pass.
    #[must_use]
    pub fn with_observer(mut self, observer: &'a dyn PassObserver) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Returns the target profile.
    pub fn profile(&self) -> &'a TargetProfile {
        self.profile
    }

    /// Returns the options of the run.
    pub fn options(&self) -> &PassOptions {
        &self.options
    }

    /// Returns the observer, if any.
    pub fn observer(&self) -> Option<&'a dyn PassObserver> {
        self.observer
    }

    /// Returns the observer if it requests the reasons of decisions.
    pub fn explainer(&self) -> Option<&'a dyn PassObserver> {
        self.observer.filter(|observer| observer.explains())
    }

    /// Reports a decision. `decision` is only called if an observer requests reasons.
    pub fn explain(&self, decision: impl FnOnce() -> FusionDecision) {
        if let Some(explainer) = self.explainer() {
            explainer.fusion(decision());
        }
    }

    /// Requests permission for one more rewrite of a rule (or of a pass, by its name) and counts it. Returns false if
    /// the limit is reached.
    pub fn allow_rewrite(&self, rule: &'static str) -> bool {
        let mut rewrites = self.rewrites.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if self.options.max_rewrites.is_some_and(|limit| rewrites.total >= limit) {
            return false;
        }
        rewrites.total += 1;
        *rewrites.by_rule.entry(rule).or_default() += 1;
        true
    }

    /// Returns the number of applications of each rule since the last call, and forgets them; the limit still counts
    /// them. A pass without rules is counted under its own name. A pipeline calls this after each pass, for its report.
    pub(crate) fn take_rewrite_counts(&self) -> RewriteCounts {
        std::mem::take(&mut self.rewrites.lock().unwrap_or_else(std::sync::PoisonError::into_inner).by_rule)
    }
}
