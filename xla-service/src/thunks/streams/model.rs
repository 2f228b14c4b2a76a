//! Timing model: a host that sends work, streams that execute in order, and a device that they share.

use super::StreamProfile;

/// Demand of a node on host and device. Times are in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Demand {
    /// Host time until the first part of its work is sent.
    pub lead: f64,
    /// Host time until all of its work is sent.
    pub issue: f64,
    /// Duration on the device if nothing else runs.
    pub seconds: f64,
    /// Share of the device that it keeps busy.
    pub share: f64,
    /// Whether the host waits until it is done.
    pub blocks: bool,
}

/// Times at which a node runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Times {
    pub start: f64,
    pub finish: f64,
    /// Time at which the host continues.
    host: f64,
}

/// State of host and device while a sequence is sent.
#[derive(Debug)]
pub(super) struct Machine<'p> {
    profile: &'p StreamProfile,
    /// Time at which the host can send the next node.
    host: f64,
    /// Time at which each stream has finished its work.
    free: Vec<f64>,
    usage: Usage,
    /// Times of each node.
    times: Vec<Times>,
}

impl<'p> Machine<'p> {
    /// Creates the state of a sequence that starts at time 0; its start is node 0.
    pub fn new(profile: &'p StreamProfile, streams: usize) -> Machine<'p> {
        let times = vec![Times::default()];
        Machine { profile, host: 0.0, free: vec![0.0; streams], usage: Usage::default(), times }
    }

    /// Returns the times of a next node on `stream` that waits for these nodes.
    pub fn plan(&self, demand: &Demand, stream: usize, waits: &[usize]) -> Times {
        let host = self.host + waits.len() as f64 * self.profile.event_seconds;
        let waited = waits.iter().map(|&node| self.times[node].finish + self.profile.event_seconds);
        let start = waited.fold(self.free[stream].max(host + demand.lead), f64::max);
        let finish = self.usage.finish(start, demand);
        Times { start, finish, host: if demand.blocks { finish } else { host + demand.issue } }
    }

    /// Sends the next node at the times that [`Machine::plan`] returned.
    pub fn send(&mut self, demand: &Demand, stream: usize, times: Times) {
        self.host = times.host;
        self.free[stream] = times.finish;
        self.usage.occupy(times.start, demand);
        self.usage.forget(self.host);
        self.times.push(times);
    }

    /// Returns the time at which host and device are done, after home has waited for `joins`, and the time at which the
    /// host is done.
    pub fn end(&self, joins: &[usize]) -> (f64, f64) {
        let nothing = Demand::default();
        let end = self.plan(&nothing, 0, joins);
        (end.finish.max(end.host), end.host)
    }

    /// Returns the times of all nodes, starting with node 0.
    pub fn into_times(self) -> Vec<Times> {
        self.times
    }
}

/// Busy share of the device over time, as a step function; the last step has no end.
#[derive(Debug)]
struct Usage {
    /// Start and busy share of each step.
    steps: Vec<(f64, f64)>,
    /// Number of steps that are entirely in the past.
    first: usize,
}

impl Default for Usage {
    fn default() -> Self {
        Usage { steps: vec![(0.0, 0.0)], first: 0 }
    }
}

/// Number of past steps that are kept before they are discarded.
const KEPT: usize = 1024;

/// Rates below this are rounding errors.
const ROUNDING: f64 = 1e-9;

impl Usage {
    /// Returns the end of work that starts at `start` and uses the share of the device that other work leaves free.
    fn finish(&self, start: f64, demand: &Demand) -> f64 {
        self.walk(start, demand, |_, _, _| {})
    }

    /// Records that the work is done.
    fn occupy(&mut self, start: f64, demand: &Demand) {
        if demand.share <= 0.0 || demand.seconds <= 0.0 {
            return;
        }
        let mut parts = Vec::new();
        self.walk(start, demand, |from, to, rate| parts.push((from, to, rate * demand.share)));
        for (from, to, busy) in parts {
            let begin = self.border(from);
            let end = self.border(to);
            self.steps[begin..end].iter_mut().for_each(|(_, used)| *used = (*used + busy).min(1.0));
        }
    }

    /// Visits the steps from `start` on until the work is done, each with start, end and rate from 0 to 1. Returns the
    /// end of the work.
    fn walk(&self, start: f64, demand: &Demand, mut visit: impl FnMut(f64, f64, f64)) -> f64 {
        let (mut now, mut left) = (start, demand.seconds);
        let mut step = self.steps.partition_point(|(from, _)| *from <= start).saturating_sub(1);
        while left > 0.0 {
            let free = 1.0 - self.steps[step].1;
            let rate = if demand.share <= 0.0 { 1.0 } else { (free / demand.share).clamp(0.0, 1.0) };
            let rate = if rate < ROUNDING { 0.0 } else { rate };
            let until = self.steps.get(step + 1).map_or(f64::INFINITY, |(from, _)| *from);
            let end = if rate > 0.0 { until.min(now + left / rate) } else { until };
            if end == f64::INFINITY {
                // The last step is always free, so the time itself overflows to infinity.
                return end;
            }
            if end > now && rate > 0.0 {
                visit(now, end, rate);
            }
            left = if end < until { 0.0 } else { left - (end - now) * rate };
            (now, step) = (end, step + 1);
            if step == self.steps.len() {
                break;
            }
        }
        now
    }

    /// Returns the step that starts at this time; splits a step if necessary.
    fn border(&mut self, at: f64) -> usize {
        let next = self.steps.partition_point(|(from, _)| *from <= at);
        match next.checked_sub(1) {
            Some(step) if self.steps[step].0 == at => step,
            Some(step) => {
                self.steps.insert(next, (at, self.steps[step].1));
                next
            }
            None => 0,
        }
    }

    /// Marks steps before this time as past; no work will start there.
    fn forget(&mut self, before: f64) {
        while self.steps.get(self.first + 1).is_some_and(|(from, _)| *from <= before) {
            self.first += 1;
        }
        if self.first > KEPT {
            self.steps.drain(..self.first);
            self.first = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> StreamProfile {
        StreamProfile { compute_streams: 2, launch_seconds: 1.0, event_seconds: 2.0, ..StreamProfile::default() }
    }

    fn kernel(seconds: f64, share: f64) -> Demand {
        Demand { lead: 1.0, issue: 1.0, seconds, share, blocks: false }
    }

    fn send(machine: &mut Machine<'_>, demand: &Demand, stream: usize, waits: &[usize]) -> (f64, f64) {
        let times = machine.plan(demand, stream, waits);
        machine.send(demand, stream, times);
        (times.start, times.finish)
    }

    #[test]
    fn streams_run_in_order_and_beside_each_other() {
        let profile = profile();
        let mut machine = Machine::new(&profile, 2);
        assert_eq!(send(&mut machine, &kernel(10.0, 0.5), 0, &[]), (1.0, 11.0));
        assert_eq!(send(&mut machine, &kernel(10.0, 0.5), 0, &[]), (11.0, 21.0));
        // Two launches, an event and a launch.
        assert_eq!(send(&mut machine, &kernel(10.0, 0.5), 1, &[0]), (5.0, 15.0));
        assert_eq!(machine.end(&[3]), (21.0, 7.0));
    }

    #[test]
    fn what_needs_the_whole_device_gains_nothing() {
        let profile = profile();
        let mut machine = Machine::new(&profile, 2);
        send(&mut machine, &kernel(10.0, 1.0), 0, &[]);
        assert_eq!(send(&mut machine, &kernel(10.0, 1.0), 1, &[]), (2.0, 21.0));
        // Work uses the free share of the device: half the speed from 2 to 11, then the full speed.
        let mut machine = Machine::new(&profile, 2);
        send(&mut machine, &kernel(10.0, 0.5), 0, &[]);
        assert_eq!(send(&mut machine, &kernel(9.0, 1.0), 1, &[]), (2.0, 15.5));
    }

    #[test]
    fn the_host_may_be_slower_than_the_device() {
        let profile = profile();
        let mut machine = Machine::new(&profile, 2);
        for i in 0..5 {
            let now = f64::from(i);
            assert_eq!(send(&mut machine, &kernel(0.5, 1.0), 0, &[]), (now + 1.0, now + 1.5));
        }
        let host = Demand { seconds: 3.0, blocks: true, ..Demand::default() };
        assert_eq!(send(&mut machine, &host, 0, &[]), (5.5, 8.5));
        assert_eq!(machine.end(&[]), (8.5, 8.5));
    }
}
