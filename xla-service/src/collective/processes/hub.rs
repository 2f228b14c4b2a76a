//! State that an engine shares with its cliques.

use std::collections::HashMap;
use std::sync::Arc;

use xla_hlo::Error;

use super::mailbox::{ABORT, Mailbox};
use super::transport::{Message, MessageId, Transport};
use super::wire_error;
use crate::collective::in_process::Locations;
use crate::collective::{RunKey, Timeouts};

/// State that an engine shares with its cliques.
#[derive(Debug)]
pub(super) struct Hub {
    pub transport: Arc<dyn Transport>,
    pub mailbox: Arc<Mailbox>,
    /// Process of each device, by global id.
    pub processes: HashMap<usize, usize>,
    pub timeouts: Timeouts,
}

impl Hub {
    /// Ends the collectives of a run in all processes, unless it has failed before.
    pub fn abort(&self, run: RunKey, error: &Error) {
        if !self.mailbox.fail(run, error, false) {
            return;
        }
        let id = MessageId { run: run.0, clique: 0, collective: 0, part: ABORT };
        let message = Message { id, bytes: Arc::new(wire_error::to_bytes(error)) };
        for process in (0..self.transport.size()).filter(|&process| process != self.transport.rank()) {
            // A lost process has no members that wait.
            let _ = self.transport.send(process, message.clone());
        }
    }

    /// Returns a process with its location, for messages.
    pub fn process(&self, rank: usize) -> String {
        format!("process {rank}, {}", self.transport.location(rank))
    }
}

impl Locations for Hub {
    fn location(&self, device: usize) -> String {
        self.processes.get(&device).map_or_else(|| "an unknown process".to_string(), |&rank| self.process(rank))
    }
}
