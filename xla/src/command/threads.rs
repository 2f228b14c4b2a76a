//! CPU affinity of the process.

use xla::hlo::{Error, Result};

/// Pins this thread, and all threads that it starts, to the first `cpus` of its available CPUs.
#[cfg(target_os = "linux")]
pub fn pin(cpus: usize) -> Result<()> {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    let refused = |e| Error::failed_precondition(format!("cannot pin the process to {cpus} CPUs: {e}")).with_source(e);
    let allowed = sched_getaffinity(None).map_err(refused)?;
    let mut chosen = CpuSet::new();
    (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).take(cpus).for_each(|cpu| chosen.set(cpu));
    sched_setaffinity(None, &chosen).map_err(refused)
}

/// Does nothing, because this system cannot pin threads. Only the compile options limit the threads of programs.
#[cfg(not(target_os = "linux"))]
pub fn pin(_cpus: usize) -> Result<()> {
    Ok(())
}
