//! Retries after the driver refused to build a graph.

use xla_hlo::Error;

/// Back-off after a refused graph: some runs do without, since the reason may be temporary, such as a lack of memory.
#[derive(Debug, Default)]
pub(super) struct Refusal {
    /// Runs that are sent one by one before the next attempt.
    runs_left: u32,
    /// Number of consecutive refusals.
    count: u32,
}

impl Refusal {
    /// Number of runs without an attempt: after the first refusal, and the maximum.
    const RUNS: [u32; 2] = [16, 1 << 12];

    /// Whether this run is sent without an attempt to build a graph.
    pub fn is_waiting(&mut self) -> bool {
        let waits = self.runs_left > 0;
        self.runs_left = self.runs_left.saturating_sub(1);
        waits
    }

    /// Records that the driver refused a graph.
    pub fn add(&mut self, error: &Error) {
        let [first, most] = Refusal::RUNS;
        self.runs_left = first.saturating_mul(1 << self.count.min(16)).min(most);
        if self.count == 0 {
            tracing::warn!(%error, "the driver cannot build a graph of a part of the program; its operations are launched individually");
        }
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_made_no_graph_is_asked_again_after_ever_more_runs() {
        let mut refusal = Refusal::default();
        let mut runs = || {
            refusal.add(&Error::resource_exhausted("no memory"));
            (0..).take_while(|_| refusal.is_waiting()).count()
        };
        assert_eq!([runs(), runs(), runs()], [16, 32, 64]);
        assert_eq!((0..40).map(|_| runs()).max(), Some(1 << 12));
    }
}
