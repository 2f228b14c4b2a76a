//! Memory and threads of this process, as the system reports them.

use std::fs;

/// Facts from `/proc/self/status`, zero where the system has no such file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Status {
    /// Resident memory now, KiB.
    pub resident_kib: u64,
    /// The most there was since the last [`reset_peak`], KiB.
    pub peak_kib: u64,
    /// Threads.
    pub threads: u64,
}

/// Asks the system.
pub fn status() -> Status {
    fs::read_to_string("/proc/self/status").map_or_else(|_| Status::default(), |text| parse(&text))
}

/// Resets the peak to the current resident size; where that cannot be done the old peak stays.
pub fn reset_peak() {
    // A measurement that cannot be made is reported as it is: the peak of the whole process.
    let _ = fs::write("/proc/self/clear_refs", "5");
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
