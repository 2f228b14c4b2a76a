//! Mailbox: receives the transport's messages, and wakes the threads that wait for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use xla_hlo::Error;

use super::run_table::RunTable;
use super::transport::{Inbox, MessageId};
use super::wire_error;
use crate::collective::RunKey;

/// [`MessageId::part`] of the message that aborts a run. Its bytes are the error.
pub(super) const ABORT: u64 = u64::MAX;

/// Receiver of messages.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    table: Mutex<RunTable>,
    /// Signalled after each change.
    changed: Condvar,
}

/// Result of a look for a message.
pub(super) enum Look {
    Found(Vec<u8>),
    /// The wait was stopped.
    Stopped,
    /// The sender is lost.
    Lost(Error),
    /// There is no message yet.
    Nothing,
}

impl Mailbox {
    pub fn table(&self) -> MutexGuard<'_, RunTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all threads that wait, after a change of their stop flags.
    pub fn wake(&self) {
        drop(self.table());
        self.changed.notify_all();
    }

    /// Records the failure of a run, and ends its collectives. Returns whether it is the first failure.
    pub fn fail(&self, run: RunKey, error: &Error, is_foreign: bool) -> bool {
        let cliques = self.table().fail(run, error, is_foreign);
        self.changed.notify_all();
        // Without the lock: an aborted clique wakes the threads that wait here.
        cliques.iter().flatten().for_each(|clique| clique.abort_local(error));
        cliques.is_some()
    }

    /// Takes a message. If there is none, sleeps up to `sleep`, until a change.
    pub fn take(&self, from: usize, id: MessageId, is_stopped: &AtomicBool, sleep: Option<Duration>) -> Look {
        let look = |table: &mut RunTable| {
            if is_stopped.load(Ordering::Relaxed) {
                return Look::Stopped;
            }
            let message = table.get(RunKey(id.run)).and_then(|run| run.messages.remove(&(from, id)));
            match (message, table.lost.get(&from)) {
                (Some(bytes), _) => Look::Found(bytes),
                (None, Some(error)) => Look::Lost(error.again()),
                (None, None) => Look::Nothing,
            }
        };
        let mut table = self.table();
        match (look(&mut table), sleep) {
            (Look::Nothing, Some(sleep)) => {
                let waited = self.changed.wait_timeout(table, sleep);
                look(&mut waited.unwrap_or_else(PoisonError::into_inner).0)
            }
            (look, _) => look,
        }
    }

    /// Whether a message has arrived and was not taken yet.
    pub fn has(&self, from: usize, id: MessageId) -> bool {
        self.table().get(RunKey(id.run)).is_some_and(|run| run.messages.contains_key(&(from, id)))
    }
}

impl Inbox for Mailbox {
    fn receive(&self, from: usize, id: MessageId, bytes: Vec<u8>) {
        if id.part == ABORT {
            self.fail(RunKey(id.run), &wire_error::from_bytes(&bytes), true);
            return;
        }
        self.table().keep(from, id, bytes);
        self.changed.notify_all();
    }

    fn lost(&self, rank: usize, error: Error) {
        self.table().lost.entry(rank).or_insert(error);
        self.changed.notify_all();
    }
}
