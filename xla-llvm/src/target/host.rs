//! LLVM's names for this machine.

use std::sync::OnceLock;

use inkwell::targets::TargetMachine;

use crate::own_thread;

/// Names of the host's processor.
pub(super) struct HostNames {
    /// LLVM triple.
    pub triple: String,
    /// Name of the processor in LLVM.
    pub cpu: String,
    /// Features of the processor with a `+` prefix, and missing ones with `-`, separated by commas.
    pub features: String,
}

/// Returns the host's names, which are queried once.
pub(super) fn names() -> &'static HostNames {
    static NAMES: OnceLock<HostNames> = OnceLock::new();
    NAMES.get_or_init(|| {
        // This is often the first LLVM call of a process, and may run out of memory.
        own_thread::install_handlers();
        HostNames {
            triple: TargetMachine::get_default_triple().as_str().to_string_lossy().into_owned(),
            cpu: TargetMachine::get_host_cpu_name().to_string_lossy().into_owned(),
            features: TargetMachine::get_host_cpu_features().to_string_lossy().into_owned(),
        }
    })
}
