//! Processor and memory of this machine, as reported by the operating system.

use std::fs;
use std::sync::OnceLock;

/// Properties of the machine, cached at the first query: reading them takes longer than compiling a small program.
pub(super) struct Machine {
    /// Name of the processor, or its architecture if the system does not report a name.
    pub processor: String,
    /// Number of processors that this process may use.
    pub cores: usize,
    /// Memory in bytes that this process may use: the machine's memory, or the limit of its cgroup if that is lower.
    pub memory_bytes: Option<usize>,
}

/// Returns the properties of this machine.
pub(super) fn machine() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    MACHINE.get_or_init(|| Machine {
        processor: processor(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_bytes: memory_bytes(),
    })
}

fn memory_bytes() -> Option<usize> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| meminfo_total(&text));
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    match (machine, group) {
        (Some(machine), Some(group)) => Some(machine.min(group)),
        (machine, group) => machine.or(group),
    }
}

fn processor() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    processor_name(&cpuinfo).unwrap_or(std::env::consts::ARCH).to_string()
}

/// Parses `MemTotal:       24689904 kB`.
fn meminfo_total(text: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Parses `model name : Some Processor @ 2.00GHz`.
fn processor_name(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_linux_writes() {
        assert_eq!(meminfo_total("MemTotal:       24689904 kB\nMemFree: 1 kB\n"), Some(24689904 * 1024));
        assert_eq!(meminfo_total("garbage"), None);
        assert_eq!(processor_name("processor\t: 0\nmodel name\t: Some CPU: v2\n"), Some("Some CPU: v2"));
        assert_eq!(processor_name(""), None);
    }
}
