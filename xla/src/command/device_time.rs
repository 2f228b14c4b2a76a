//! Device time of runs, and time of queued calls, for `xla bench --device-time`.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use xla::service::ExecuteOptions;
use xla::{Buffer, LoadedExecutable};

use super::failure::Outcome;
use super::inputs;
use super::measure::{Times, micros, timed};

/// Limits on the alternating argument lists, and on the launches of a round; recorded launches take memory and time.
const MOST_SETS: usize = 512;
const MOST_LAUNCHES: usize = 8192;
/// Divisor of the device's memory that limits the memory of argument lists.
const SHARE_OF_MEMORY: usize = 4;
/// Minimum and maximum number of rounds, unless a number is given.
const ROUNDS: (usize, usize) = (3, 100);

/// Results of the measurement. Times ending in `_us` are microseconds of one run.
#[derive(Debug, Serialize)]
pub struct DeviceTime {
    /// Median of the rounds, by the device's clock.
    device_us: f64,
    device_p10_us: f64,
    device_p90_us: f64,
    device_min_us: f64,
    /// Time from the first of many calls to the end of the last one, divided by the number of calls.
    queued_us: f64,
    queued_calls: usize,
    rounds: usize,
    /// Number of runs in a round, each with separate data.
    runs: usize,
    /// Bytes that a round accesses.
    bytes: usize,
    /// Whether each round was submitted to the device as a whole; otherwise, `reason` states the cause.
    recorded: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Limits of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Number of rounds; 0 = derived from the time.
    pub rounds: usize,
    /// Approximate time of all rounds.
    pub seconds: f64,
    /// Time of one run.
    pub each: Duration,
    /// Seed of the inputs.
    pub seed: u64,
}

/// Measures a program on inputs generated for the file `path`.
pub fn measure(program: &LoadedExecutable, path: Option<&Path>, effort: Effort) -> Outcome<DeviceTime> {
    let device = program.client().first_device();
    let bytes = bytes_of_run(program);
    let memory = device.description().memory_bytes.unwrap_or(usize::MAX);
    let count = sets(device.cache_bytes()?, bytes, memory, program.thunks().map_or(1, |thunks| thunks.walk().count()));
    let fitting = |unit: f64| (effort.seconds / (effort.each.as_secs_f64() * unit).max(1e-7)) as usize;
    let count = count.min(fitting(1.0).max(2));
    let (least, most) = ROUNDS;
    let rounds = if effort.rounds > 0 { effort.rounds } else { fitting(count as f64).clamp(least, most) };

    let sets = arguments(program, path, effort.seed, count)?;
    let lists: Vec<Vec<&Buffer>> = sets.iter().map(|set| set.iter().collect()).collect();
    let measured = program.device_time(&lists, rounds)?;
    let (calls, queued) = queued(program, &lists, fitting(1.0).clamp(least, 10 * most))?;
    let times = Times::new(measured.rounds);
    let of_run = |time: Duration| micros(time) / count as f64;
    Ok(DeviceTime {
        device_us: of_run(times.median()),
        device_p10_us: of_run(times.quantile(0.1)),
        device_p90_us: of_run(times.quantile(0.9)),
        device_min_us: of_run(times.quantile(0.0)),
        queued_us: micros(queued) / calls as f64,
        queued_calls: calls,
        rounds: times.count(),
        runs: count,
        bytes: bytes.saturating_mul(count),
        recorded: measured.recorded.is_ok(),
        reason: measured.recorded.err(),
    })
}

/// Returns the number of bytes that a run reads and writes, temporaries included.
fn bytes_of_run(program: &LoadedExecutable) -> usize {
    let memory = program.memory_analysis();
    (memory.argument_bytes + memory.output_bytes + memory.temporary_bytes).saturating_sub(memory.alias_bytes)
}

/// Returns the number of argument lists that is needed for cold caches, subject to the limits.
fn sets(cache: usize, bytes: usize, memory: usize, launches: usize) -> usize {
    let bytes = bytes.max(1);
    let enough = cache.saturating_mul(2).div_ceil(bytes) + 1;
    let room = memory / SHARE_OF_MEMORY / bytes;
    enough.min(MOST_SETS).min(MOST_LAUNCHES / launches.max(1)).min(room).max(1)
}

/// Creates `count` argument lists with equal values in separate memory.
fn arguments(program: &LoadedExecutable, path: Option<&Path>, seed: u64, count: usize) -> Outcome<Vec<Vec<Buffer>>> {
    let leaves = program.signature().arguments();
    let mut inputs = inputs::made(path, leaves, seed)?;
    let mut sets: Vec<Vec<Buffer>> = (0..count).map(|_| Vec::new()).collect();
    for number in 0..leaves.len() {
        let literal = inputs.literal(leaves, number)?;
        for set in &mut sets {
            set.push(program.argument_buffer(number, &literal)?);
        }
    }
    sets.iter().flatten().try_for_each(Buffer::wait)?;
    Ok(sets)
}

/// Sends calls without waiting, with one wait at the end; returns their number and time. If the program requires
/// donated arguments, there is one call per list.
fn queued(program: &LoadedExecutable, lists: &[Vec<&Buffer>], calls: usize) -> xla::Result<(usize, Duration)> {
    let donate: Vec<usize> = program.signature().required_donations().collect();
    let calls = if donate.is_empty() { calls } else { lists.len() };
    let options = ExecuteOptions { donate: donate.into(), ..ExecuteOptions::default() };
    let (done, time) = timed(|| {
        let mut last = Vec::new();
        for number in 0..calls {
            last = program.launch(&lists[number % lists.len()..][..1], &options)?;
        }
        last.iter().try_for_each(|results| results.completion().wait())
    });
    done.map(|()| (calls, time))
}

impl fmt::Display for DeviceTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, low, high) = (self.device_min_us, self.device_p10_us, self.device_p90_us);
        let (rounds, runs) = (self.rounds, self.runs);
        let megabytes = self.bytes as f64 / f64::from(1 << 20);
        let how = match &self.reason {
            None => format!("{rounds} graphs of {runs} runs"),
            Some(_) => format!("{rounds} rounds of {runs} runs sent separately"),
        };
        writeln!(
            f,
            "  device   {:>12.3} us    median of {how}, 10% {low:.3}, 90% {high:.3}, least {least:.3}; {megabytes:.1} MiB in turn",
            self.device_us
        )?;
        if let Some(reason) = &self.reason {
            writeln!(f, "                             no graph: {reason}")?;
        }
        writeln!(f, "  queued   {:>12.3} us    a call, of {} sent before one wait", self.queued_us, self.queued_calls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_goes_past_the_cache_as_far_as_there_is_room() {
        let (mib, gib) = (1 << 20, 1 << 30);
        assert_eq!(sets(50 * mib, 10 * mib, 80 * gib, 1), 11);
        assert_eq!(sets(50 * mib, 400 * mib, 80 * gib, 1), 2);
        assert_eq!(sets(50 * mib, 1000, 80 * gib, 1), MOST_SETS);
        assert_eq!(sets(50 * mib, 1000, 80 * gib, 1000), 8);
        assert_eq!(sets(50 * mib, 30 * gib, 80 * gib, 1), 1);
        assert_eq!(sets(0, 0, 0, 0), 1);
    }
}
