//! Observers of a running pipeline.

use xla_hlo::{Module, Result};

use crate::framework::explain::FusionDecision;

/// Observer of each pass run, used by `--print-after-all`, `--explain` and `--dump-to`.
pub trait PassObserver: Sync {
    /// Called before a pass runs.
    fn before(&self, event: &PassEvent<'_>) -> Result<()> {
        let _ = event;
        Ok(())
    }

    /// Called after a pass ran and, if requested, the module was verified.
    fn after(&self, event: &PassEvent<'_>) -> Result<()>;

    /// Whether [`PassObserver::fusion`] should be called. Computing the reasons takes time.
    fn explains(&self) -> bool {
        false
    }

    /// Called for each fusion decision, between `before` and `after` of the pass.
    fn fusion(&self, decision: FusionDecision) {
        let _ = decision;
    }
}

/// One run of a pass in a pipeline.
#[derive(Clone, Copy)]
pub struct PassEvent<'a> {
    /// Number of the run, counted from 0 over the whole pipeline.
    pub index: usize,
    /// Stages and pass, such as `standard.simplify.dead-code`.
    pub path: &'a str,
    /// Name of the pass.
    pub pass: &'static str,
    /// Current state of the module.
    pub module: &'a Module,
    /// Whether the pass edited the module; false in `before`.
    pub changed: bool,
}
