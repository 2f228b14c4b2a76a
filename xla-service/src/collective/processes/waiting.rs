//! Waits for messages of other processes.

use std::time::{Duration, Instant};

use xla_hlo::{Error, Result};

use super::exchange::Exchange;
use super::mailbox::Look;
use super::route::Process;
use super::transport::{MessageId, Progress};
use crate::collective::in_process::timeout;

/// Polling interval of the cancellation token, which cannot wake a thread.
const CANCEL_POLL: Duration = Duration::from_millis(20);

/// Number of polls of the transport before the thread sleeps between them. About a millisecond.
const POLLS: usize = 1000;

/// Sleep between two polls of the transport.
const POLL_SLEEP: Duration = Duration::from_micros(200);

/// A wait for messages that other processes send at the same time.
pub(super) struct Waiting<'a> {
    exchange: &'a Exchange<'a>,
    since: Instant,
    is_warned: bool,
}

impl<'a> Waiting<'a> {
    pub fn new(exchange: &'a Exchange<'a>) -> Waiting<'a> {
        Waiting { exchange, since: Instant::now(), is_warned: false }
    }

    /// Waits for a message of a process.
    pub fn receive(&mut self, process: &Process, part: u64) -> Result<Vec<u8>> {
        let (exchange, hub) = (self.exchange, &self.exchange.route.hub);
        let id = exchange.route.id(exchange.number, part);
        let (mut sleep, mut polls) = (None, 0_usize);
        loop {
            match hub.mailbox.take(process.rank, id, exchange.is_stopped, sleep.take()) {
                Look::Found(bytes) => return Ok(bytes),
                // The clique has failed. Its members receive that error.
                Look::Stopped => return Err(Error::cancelled("the collective was aborted")),
                Look::Lost(error) => {
                    return Err(error.context(format_args!("devices {}, are lost", exchange.route.describe(process))));
                }
                Look::Nothing => {}
            }
            match hub.transport.poll() {
                // Messages of other cliques must not defer the time-out.
                Progress::Made => {
                    polls += 1;
                    if !polls.is_multiple_of(64) {
                        continue;
                    }
                }
                Progress::Idle if polls < POLLS => {
                    polls += 1;
                    std::thread::yield_now();
                    if !polls.is_multiple_of(64) {
                        continue;
                    }
                }
                Progress::Idle => sleep = Some(POLL_SLEEP),
                Progress::Own => sleep = Some(Duration::MAX),
            }
            exchange.cancel.check()?;
            let rest = self.check_time(process, id)?;
            sleep = sleep.map(|sleep| match exchange.cancel.can_cancel() {
                true => sleep.min(rest).min(CANCEL_POLL),
                false => sleep.min(rest),
            });
        }
    }

    /// Writes a warning or fails after too long a wait. Returns the time until then.
    fn check_time(&mut self, process: &Process, id: MessageId) -> Result<Duration> {
        let (waited, timeouts) = (self.since.elapsed(), self.exchange.route.hub.timeouts);
        if waited >= timeouts.end {
            self.exchange.route.hub.transport.timed_out();
            return Err(timeout(self.describe(process, id, waited)));
        }
        if waited >= timeouts.warn && !self.is_warned {
            self.is_warned = true;
            tracing::warn!("{}: {}", self.exchange.route.key.instruction(), self.describe(process, id, waited));
        }
        let deadline = if self.is_warned { timeouts.end } else { timeouts.warn.min(timeouts.end) };
        Ok(deadline.saturating_sub(waited))
    }

    /// Describes a wait: the processes whose messages are missing, with their devices.
    fn describe(&self, process: &Process, id: MessageId, waited: Duration) -> String {
        let route = self.exchange.route;
        let is_missing = |other: &&Process| other.rank == process.rank || !route.hub.mailbox.has(other.rank, id);
        // Only headers come from all processes at the same time, and those of lower processes were taken before.
        let missing: Vec<String> = match id.part {
            0 => {
                let others = route.others().skip_while(|other| other.rank != process.rank);
                others.filter(is_missing).map(|other| route.describe(other)).collect()
            }
            _ => vec![route.describe(process)],
        };
        format!("{waited:.1?} have passed without a message of devices {}", missing.join("; devices "))
    }
}
