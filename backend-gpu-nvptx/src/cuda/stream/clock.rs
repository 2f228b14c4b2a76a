//! Time marks in a stream: CUDA events with device timestamps.
#![expect(unsafe_code, reason = "the driver is a C library")]

use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::sys::{self, CUevent};
use xla_hlo::Result;

use super::queue::Queue;
use crate::cuda::api::driver as api;

/// Point in a queue's work that records the time at which the device reaches it.
pub(crate) struct TimeMark {
    queue: Arc<Queue>,
    event: CUevent,
}

impl TimeMark {
    /// `cuEventRecord`: marks the end of all work sent so far.
    pub fn new(queue: &Arc<Queue>) -> Result<TimeMark> {
        let mut event = std::ptr::null_mut();
        let flags = sys::CUevent_flags::CU_EVENT_DEFAULT as u32;
        // SAFETY: the pointer is to a live pointer.
        queue.context().call("cuEventCreate", || unsafe { api::cuEventCreate(&mut event, flags) })?;
        // From here on, the event is destroyed in all cases.
        let mark = TimeMark { queue: queue.clone(), event };
        // SAFETY: both handles are alive and of this context.
        queue.send("cuEventRecord", |raw| unsafe { api::cuEventRecord(event, raw) })?;
        Ok(mark)
    }

    /// `cuEventElapsedTime`: returns the time from an earlier mark of the same queue to this one. The queue must have
    /// been synchronised, so that both are reached.
    pub fn since(&self, earlier: &TimeMark) -> Result<Duration> {
        let mut milliseconds = 0.0;
        // SAFETY: the pointer is to a live float; the events are alive and record times.
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
