//! This process: memory and threads as reported by the system, and termination with its parent.

use std::fs;

use xla::hlo::{Error, Result};

/// Values from `/proc/self/status`; zero on systems without this file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Status {
    /// Current resident memory in KiB.
    pub resident_kib: u64,
    /// Peak of resident memory since the last [`reset_peak`], in KiB.
    pub peak_kib: u64,
    /// Number of threads.
    pub threads: u64,
}

/// Reads the current values.
pub fn status() -> Status {
    fs::read_to_string("/proc/self/status").map_or_else(|_| Status::default(), |text| parse(&text))
}

/// Resets the peak to the current resident size, if the system supports it.
pub fn reset_peak() {
    // On failure, the report contains the peak of the whole process.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Requests that the system kill this process when the thread that started it ends, even if that process is killed by a
/// signal. [`Error::FailedPrecondition`] if `parent`, the process that started this one, has already ended.
#[cfg(target_os = "linux")]
pub fn end_with_parent(parent: u32) -> Result<()> {
    use rustix::process::{Signal, set_parent_process_death_signal};

    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Error::internal(format!("cannot make this process end with its parent: {error}")))?;
    if is_child_of(parent) { Ok(()) } else { Err(orphaned()) }
}

/// Starts a thread that ends this process soon after its parent. [`Error::FailedPrecondition`] if `parent`, the process
/// that started this one, has already ended.
#[cfg(all(unix, not(target_os = "linux")))]
pub fn end_with_parent(parent: u32) -> Result<()> {
    let watch = move || {
        while is_child_of(parent) {
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        std::process::exit(1);
    };
    if !is_child_of(parent) {
        return Err(orphaned());
    }
    let thread = std::thread::Builder::new().name("parent".to_string()).spawn(watch);
    thread.map(drop).map_err(|error| Error::resource_exhausted(format!("cannot start a thread: {error}")))
}

/// Does nothing, because the system does not report the parent.
#[cfg(not(unix))]
pub fn end_with_parent(_: u32) -> Result<()> {
    Ok(())
}

#[cfg(unix)]
fn is_child_of(parent: u32) -> bool {
    std::os::unix::process::parent_id() == parent
}

#[cfg(unix)]
fn orphaned() -> Error {
    Error::failed_precondition("the process that started this one has ended")
}

fn parse(text: &str) -> Status {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or_default()
    };
    Status { resident_kib: field("VmRSS"), peak_kib: field("VmHWM"), threads: field("Threads") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found() {
        let text = "Name:\txla\nVmHWM:\t    5120 kB\nVmRSS:\t    4096 kB\nThreads:\t3\n";
        assert_eq!(parse(text), Status { resident_kib: 4096, peak_kib: 5120, threads: 3 });
        assert_eq!(parse(""), Status::default());
    }
}
