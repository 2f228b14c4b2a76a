//! Watching a pipeline run.

use xla_hlo::{Module, Result};

/// Told before and after each pass; the hook behind `--print-after-all` and `--dump-to`.
pub trait PassObserver: Sync {
    /// The pass is about to run.
    fn before(&self, event: &PassEvent<'_>) -> Result<()> {
        let _ = event;
        Ok(())
    }

    /// The pass ran, and the module was verified if that was asked for.
    fn after(&self, event: &PassEvent<'_>) -> Result<()>;
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
