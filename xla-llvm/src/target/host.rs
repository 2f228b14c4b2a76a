//! LLVM's names for this machine.

use std::sync::OnceLock;

use inkwell::targets::TargetMachine;

use crate::own_thread;

/// Names of this machine's processor.
pub(super) struct HostNames {
    /// LLVM triple.
    pub triple: String,
    /// Processor, by LLVM's name.
    pub cpu: String,
    /// Its features, each after `+`, and those that it lacks after `-`, separated by commas.
    pub features: String,
}

/// Returns the names, which are read once.
pub(super) fn names() -> &'static HostNames {
    static NAMES: OnceLock<HostNames> = OnceLock::new();
    NAMES.get_or_init(|| {
        // Often the first call of LLVM in a process, and memory may run out in it.
        own_thread::install_handlers();
        HostNames {
            triple: TargetMachine::get_default_triple().as_str().to_string_lossy().into_owned(),
            cpu: TargetMachine::get_host_cpu_name().to_string_lossy().into_owned(),
            features: TargetMachine::get_host_cpu_features().to_string_lossy().into_owned(),
        }
    })
}
