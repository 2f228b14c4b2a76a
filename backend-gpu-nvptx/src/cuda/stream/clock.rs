//! Time marks in a stream, by the device's clock.
#![expect(unsafe_code, reason = "the driver is a C library")]

use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::sys::{self, CUevent};
use xla_hlo::Result;

use super::queue::Queue;
use crate::cuda::api::driver as api;

/// A point in a queue's work that keeps the time at which the device came there.
pub(crate) struct TimeMark {
    queue: Arc<Queue>,
    event: CUevent,
}

impl TimeMark {
    /// A mark after everything sent so far.
    pub fn new(queue: &Arc<Queue>) -> Result<TimeMark> {
        let mut event = std::ptr::null_mut();
        let flags = sys::CUevent_flags::CU_EVENT_DEFAULT as u32;
        // SAFETY: the pointer is to a live pointer.
        queue.context().call("cuEventCreate", || unsafe { api::cuEventCreate(&mut event, flags) })?;
        // From here on it is destroyed, whatever becomes of it.
        let mark = TimeMark { queue: queue.clone(), event };
        // SAFETY: both handles are alive and of this context.
        queue.send("cuEventRecord", |raw| unsafe { api::cuEventRecord(event, raw) })?;
        Ok(mark)
    }

    /// Time from an earlier mark of the same queue to this one. Both have been reached: the queue was waited for.
    pub fn since(&self, earlier: &TimeMark) -> Result<Duration> {
        let mut milliseconds = 0.0;
        // SAFETY: the pointer is to a live float; the events are alive and keep times.
        self.queue.context().call("cuEventElapsedTime", || unsafe {
            api::cuEventElapsedTime(&mut milliseconds, earlier.event, self.event)
        })?;
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or_default())
    }
}

impl Drop for TimeMark {
    fn drop(&mut self) {
        // SAFETY: the event is alive, and destroyed once.
        let _ = self.queue.context().call("cuEventDestroy", || unsafe { api::cuEventDestroy_v2(self.event) });
    }
}
