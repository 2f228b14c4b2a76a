//! Waiting for the collectives of a run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use xla_hlo::{Error, Result};
use xla_service::CancelToken;
use xla_service::collective::CollectiveRun;

use super::cliques::Collectives;
use super::pending::Pending;

/// Period in which a waiting thread polls without sleeping.
const EAGER: Duration = Duration::from_millis(1);

/// Time between polls after that.
const PAUSE: Duration = Duration::from_micros(100);

/// Time until work is aborted after the run has failed. Work that does not wait for a lost device ends before.
const GRACE: Duration = Duration::from_millis(300);

impl Collectives {
    /// Waits until the collectives of a run on a device are complete. Polls for errors of NCCL in the meantime. If
    /// there is one, and if the run is cancelled or fails, work that does not end is aborted. `error` is the error of
    /// the device, if it has failed.
    pub fn finish(
        &self,
        run: &CollectiveRun,
        ordinal: usize,
        cancel: &CancelToken,
        error: Option<&Error>,
    ) -> Result<()> {
        let mut pending = self.take_pending(run.key(), ordinal);
        // The collectives of a device are executed in order.
        let Some(end) = pending.last().map(|last| last.end.clone()) else { return Ok(()) };
        // One entry for each clique is enough.
        pending.sort_by_key(|pending| Arc::as_ptr(&pending.clique).addr());
        pending.dedup_by(|next, first| Arc::ptr_eq(&next.clique, &first.clique));
        let begin = Instant::now();
        let mut failed = error.map(|error| (begin, error.again()));
        while !end.is_reached()? {
            if let Some(error) = pending.iter().find_map(|pending| pending.check().err()) {
                return Err(self.abort_all(&pending, error));
            }
            if failed.is_none() {
                failed = run.failure().or_else(|| cancel.check().err()).map(|error| (Instant::now(), error));
            }
            match failed.take_if(|(since, _)| since.elapsed() > GRACE) {
                Some((_, error)) => return Err(self.abort_all(&pending, error)),
                None if begin.elapsed() < EAGER => std::thread::yield_now(),
                None => std::thread::sleep(PAUSE),
            }
        }
        // Aborted work ends early.
        pending.iter().try_for_each(Pending::check)
    }

    /// Ends the work of all cliques with an error, and returns it.
    fn abort_all(&self, pending: &[Pending], error: Error) -> Error {
        pending.iter().for_each(|pending| self.abort(&pending.clique, &error));
        error
    }
}

impl Pending {
    /// Returns an error, which names the instruction, if the work was aborted or NCCL has detected an error.
    fn check(&self) -> Result<()> {
        let checked = self.clique.failure().map_or_else(|| self.clique.check_work(), Err);
        checked.map_err(|error| error.context(&*self.instruction))
    }
}
