//! Observers of a running pipeline.

use xla_hlo::{Module, Result};

use crate::framework::explain::FusionDecision;

/// Told before and after each pass; the hook of `--print-after-all`, `--explain` and `--dump-to`.
pub trait PassObserver: Sync {
    /// The pass is about to run.
    fn before(&self, event: &PassEvent<'_>) -> Result<()> {
        let _ = event;
        Ok(())
    }

    /// The pass ran, and the module was verified if that was asked for.
    fn after(&self, event: &PassEvent<'_>) -> Result<()>;

    /// Whether [`PassObserver::fusion`] is to be called; finding the reasons takes time.
    fn explains(&self) -> bool {
        false
    }

    /// A value is computed in the kernel that reads it, or not, and why. Between `before` and `after` of the pass.
    fn fusion(&self, decision: FusionDecision) {
        let _ = decision;
    }
}

/// One run of a pass in a pipeline.
#[derive(Clone, Copy)]
pub struct PassEvent<'a> {
    /// Counts runs of passes from 0 over the whole pipeline.
    pub index: usize,
    /// Stages and pass, such as `standard.simplify.dead-code`.
    pub path: &'a str,
    /// The pass's name.
    pub pass: &'static str,
    /// The module as it is now.
    pub module: &'a Module,
    /// Whether the pass edited the module; false before it ran.
    pub changed: bool,
}
