//! A member's wait: spinning, sleeping, warning, time-out, cancellation.

use std::num::NonZero;
use std::sync::OnceLock;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use xla_hlo::Error;

use super::group::Group;
use super::report::{describe, timeout};
use crate::cancel::CancelToken;
use crate::collective::Timeouts;

/// Number of polls before a thread sleeps, about ten microseconds: a sleeping thread takes about as long to wake up.
const POLLS: usize = 300;

/// Time between two looks at the cancellation token, which cannot wake a thread.
const CANCEL_POLL: Duration = Duration::from_millis(20);

/// State of a member that waits for the others.
pub(super) struct Waiting<'a> {
    group: &'a Group,
    timeouts: Timeouts,
    cancel: &'a CancelToken,
    since: Instant,
}

/// Phase of the collective that a thread waits for.
#[derive(Clone, Copy)]
pub(super) enum Phase {
    /// Members are missing. Only in this phase waits are limited in time.
    Gathering {
        /// Whether a warning was written.
        is_warned: bool,
    },
    /// Other threads execute tasks.
    Working,
    /// The collective has failed, and other threads finish their current tasks.
    Ending,
}

/// Next step of a thread that waits.
pub(super) enum Wait {
    /// Sleep for this time.
    For(Duration),
    /// Write this warning.
    Warn(String),
    /// The wait has failed.
    Failed(Error),
}

impl<'a> Waiting<'a> {
    pub fn new(group: &'a Group, timeouts: Timeouts, cancel: &'a CancelToken) -> Waiting<'a> {
        Waiting { group, timeouts, cancel, since: Instant::now() }
    }

    /// Polls `is_over` for a short time if each member can have a core of its own.
    pub fn spin(&self, is_over: impl Fn() -> bool) {
        static CORES: OnceLock<usize> = OnceLock::new();
        let cores = *CORES.get_or_init(|| available_parallelism().map_or(1, NonZero::get));
        if self.group.key.members() > cores {
            return;
        }
        for _ in 0..POLLS {
            if is_over() {
                return;
            }
            std::hint::spin_loop();
        }
    }

    /// Returns the token that ends the wait.
    pub fn cancel(&self) -> &'a CancelToken {
        self.cancel
    }

    /// Returns the next step of the wait.
    pub fn next(&self, phase: Phase, has_arrived: impl Fn(usize) -> bool) -> Wait {
        let pause = if self.cancel.can_cancel() { CANCEL_POLL } else { self.timeouts.end };
        if let (Phase::Working | Phase::Gathering { .. }, Err(error)) = (phase, self.cancel.check()) {
            return Wait::Failed(error.context(self.group.key.instruction()));
        }
        let is_warned = match phase {
            Phase::Ending | Phase::Working => return Wait::For(pause),
            Phase::Gathering { is_warned } => is_warned,
        };
        let waited = self.since.elapsed();
        if waited >= self.timeouts.end {
            return Wait::Failed(timeout(describe(self.group, waited, has_arrived)));
        }
        if waited >= self.timeouts.warn && !is_warned {
            return Wait::Warn(describe(self.group, waited, has_arrived));
        }
        let deadline = if is_warned { self.timeouts.end } else { self.timeouts.warn.min(self.timeouts.end) };
        Wait::For(pause.min(deadline - waited))
    }
}
