//! Waiting for the collectives of a run.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use xla_hlo::{Error, Result};
use xla_service::collective::CollectiveRun;
use xla_service::{CancelToken, ExecutionContext, LogicalDevice};

use super::cliques::{Collectives, PendingKey};
use super::work::{Pending, Work};
use crate::cuda::stream::CudaStream;

/// Period in which a waiting thread polls without sleeping.
const EAGER: Duration = Duration::from_millis(1);

/// Time between polls after that.
const PAUSE: Duration = Duration::from_micros(100);

/// Time until work that all members have begun is aborted after the run has failed. Work that does not wait for a lost
/// device ends before.
const GRACE: Duration = Duration::from_secs(3);

/// Wait of a device for its work, piece by piece.
struct Watch<'a> {
    run: &'a CollectiveRun,
    cancel: &'a CancelToken,
    /// Failure of the run, and its time.
    failed: Option<(Instant, Error)>,
    /// Begin of the wait for the current work.
    since: Instant,
    /// Time at which all members had begun the current work.
    begun: Option<Instant>,
    is_warned: bool,
}

/// Waits until the collectives that a run has sent to the context's device are complete: before the host waits for a
/// stream of the device.
pub(crate) fn wait(context: &ExecutionContext<'_>, device: &LogicalDevice) -> Result<()> {
    let (collectives, key) = pending_of(context, device)?;
    let pending = collectives.take_pending(key);
    if pending.is_empty() {
        return Ok(());
    }
    let mut failed = Vec::new();
    let waited = Watch::new(device.run(), context.cancel, None).wait(pending, &mut failed);
    // The run fails at its end also if the caller ignores the error.
    collectives.restore_pending(key, failed);
    waited
}

/// Waits until the collectives of a run on the context's device are complete or aborted, at the end of the run. `error`
/// is the error of the device, if it has failed.
pub(crate) fn finish(context: &ExecutionContext<'_>, device: &LogicalDevice, error: Option<&Error>) -> Result<()> {
    let (collectives, key) = pending_of(context, device)?;
    Watch::new(device.run(), context.cancel, error).wait(collectives.take_pending(key), &mut Vec::new())
}

fn pending_of<'a>(context: &'a ExecutionContext<'_>, device: &LogicalDevice) -> Result<(&'a Collectives, PendingKey)> {
    let stream: &CudaStream = context.stream.downcast()?;
    Ok((&stream.resources().collectives, (device.run().key(), stream.queue().context().ordinal())))
}

impl<'a> Watch<'a> {
    fn new(run: &'a CollectiveRun, cancel: &'a CancelToken, error: Option<&Error>) -> Watch<'a> {
        let since = Instant::now();
        let failed = error.map(|error| (since, error.again()));
        Watch { run, cancel, failed, since, begun: None, is_warned: false }
    }

    /// Waits until all work is complete or aborted. Work is aborted if NCCL or the driver reports an error, if it takes
    /// longer than the run's time-out, and if the run is cancelled or has failed and the work does not end.
    fn wait(&mut self, mut pending: VecDeque<Pending>, failed: &mut Vec<Pending>) -> Result<()> {
        let mut outcome = Ok(());
        // The collectives of a device are executed in order.
        while let Some(first) = pending.pop_front() {
            self.next();
            if let Err(error) = self.wait_for(&first) {
                // Returns after the abort, also if another thread aborts the clique.
                first.work.clique.abort(&error);
                self.fail(&error);
                failed.push(first);
                outcome = outcome.and(Err(error));
            }
        }
        outcome
    }

    fn wait_for(&mut self, pending: &Pending) -> Result<()> {
        while !pending.is_over()? {
            self.check(&pending.work)?;
            self.pause();
        }
        Ok(())
    }

    /// Begins to wait for the next work.
    fn next(&mut self) {
        (self.since, self.begun, self.is_warned) = (Instant::now(), None, false);
    }

    fn fail(&mut self, error: &Error) {
        self.failed.get_or_insert_with(|| (Instant::now(), error.again()));
    }

    /// Returns an error if work that is not complete must be aborted.
    fn check(&mut self, work: &Work) -> Result<()> {
        work.clique.check_work().map_err(|error| error.context(&*work.instruction))?;
        if let Some(error) = self.run.failure().or_else(|| self.cancel.check().err()) {
            self.fail(&error);
        }
        if self.begun.is_none() && work.progress.has_begun()? {
            self.begun = Some(Instant::now());
        }
        let Some(begun) = self.begun else { return Ok(()) };
        match &self.failed {
            Some((since, error)) if begun.max(*since).elapsed() > GRACE => return Err(error.again()),
            Some(_) | None => {}
        }
        let (waited, timeouts) = (begun.elapsed(), self.run.timeouts());
        if waited >= timeouts.end {
            return Err(Error::failed_precondition(describe(work, waited)).note("a device is stuck or slow"));
        }
        if waited >= timeouts.warn && !self.is_warned {
            self.is_warned = true;
            tracing::warn!("{}", describe(work, waited));
        }
        Ok(())
    }

    fn pause(&self) {
        if self.since.elapsed() < EAGER {
            std::thread::yield_now();
        } else {
            std::thread::sleep(PAUSE);
        }
    }
}

fn describe(work: &Work, waited: Duration) -> String {
    let Work { instruction, ordinals, .. } = work;
    let seconds = waited.as_secs_f32();
    format!("{instruction}: NCCL has not completed the collective of GPUs {ordinals:?} {seconds:.1} s after its begin")
}
