//! Run on one device of a launch over several devices, and the failure that they share.

use xla_hlo::{Result, ResultExt};

use crate::cancel::CancelToken;
use crate::logical_device::LogicalDevice;

/// Run on one device of a launch over several.
pub(super) struct Member {
    /// Platform, device, replica and partition, for error messages.
    place: String,
    device: LogicalDevice,
    /// Token of all runs of the launch.
    cancel: CancelToken,
}

impl Member {
    /// Creates the run on a device. `place` describes it for error messages; all runs of the launch share `cancel`.
    pub fn new(place: String, device: LogicalDevice, cancel: CancelToken) -> Member {
        Member { place, device, cancel }
    }

    /// Describes the device for error messages.
    pub fn describe(&self) -> &str {
        &self.place
    }

    pub fn logical_device(&self) -> &LogicalDevice {
        &self.device
    }

    /// Ends the run. If it failed, the runs of all other devices end with its error, which names the device. If another
    /// run failed before, this one fails with that error.
    pub fn end<T>(&self, outcome: Result<T>) -> Result<T> {
        let run = self.device.run();
        let outcome = outcome.context(|| &self.place);
        if let Err(error) = &outcome {
            run.abort(error.again());
            self.cancel.cancel();
        }
        run.failure().map_or(outcome, Err)
    }
}
