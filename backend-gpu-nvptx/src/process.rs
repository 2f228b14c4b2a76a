//! What all programs of a platform share as long as the process lasts.

use crate::choices::Choices;
use crate::options::GpuOptions;
use crate::ptx::in_process::InProcess;

/// What was found out already, or is on disk.
#[derive(Debug)]
pub(crate) struct Process {
    /// Machine code of what programs load.
    pub machine_code: InProcess,
    /// Which ways are the fastest.
    pub choices: Choices,
}

impl Process {
    /// Nothing is read before it is needed.
    pub fn new(options: &GpuOptions) -> Process {
        Process { machine_code: InProcess::new(options), choices: Choices::new(options) }
    }
}
