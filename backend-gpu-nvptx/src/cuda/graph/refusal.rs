//! When a driver that made no graph is asked again.

use xla_hlo::Error;

/// Runs for which a driver that made no graph is left alone: the reason may pass, as a lack of memory does.
#[derive(Debug, Default)]
pub(super) struct Refusal {
    /// Runs that are sent one by one before it is asked again.
    runs_left: u32,
    /// Its refusals so far, without one that was taken back.
    count: u32,
}

impl Refusal {
    /// Runs after a first refusal, and at most after any.
    const RUNS: [u32; 2] = [16, 1 << 12];

    /// Whether the driver is left alone in this run.
    pub fn is_waiting(&mut self) -> bool {
        let waits = self.runs_left > 0;
        self.runs_left = self.runs_left.saturating_sub(1);
        waits
    }

    /// The driver made no graph.
    pub fn add(&mut self, error: &Error) {
        let [first, most] = Refusal::RUNS;
        self.runs_left = first.saturating_mul(1 << self.count.min(16)).min(most);
        if self.count == 0 {
            tracing::warn!(%error, "the driver makes no graph of a part of the program; its work is sent one by one");
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
