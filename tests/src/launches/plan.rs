//! Numbers and limits of a campaign.

use std::time::Duration;

/// Number and kinds of the launches, and limits.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Number of devices of the client.
    pub devices: usize,
    /// Number of threads that launch.
    pub threads: usize,
    /// Number of launches that succeed.
    pub launches: u64,
    /// Number of launches that fail because one device does.
    pub failures: u64,
    /// Number of generated programs for each number of devices.
    pub programs: u64,
    /// Seed of the programs, of the sets of devices and of the faults.
    pub seed: u64,
    /// Maximum time from the failure of a device to the end of its launch on all devices.
    pub prompt: Duration,
    /// Maximum time without the end of a launch.
    pub patience: Duration,
}

impl Campaign {
    /// Whether a device fails in the launch of a number. Failures are spread evenly over all launches.
    pub(super) fn is_failing(&self, number: u64) -> bool {
        let before = |number: u64| u128::from(number) * u128::from(self.failures);
        let all = u128::from(self.launches + self.failures);
        before(number + 1) / all > before(number) / all
    }
}
