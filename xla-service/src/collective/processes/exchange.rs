//! A collective in execution, as its parts see it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use xla_hlo::Result;

use super::route::{Process, Route};
use super::transport::Message;
use crate::cancel::CancelToken;
use crate::collective::in_process::{MemberMemory, Memory};
use crate::collective::{CollectiveSpec, MemberArguments};

/// Largest number of bytes of operands in a header.
pub(super) const INLINE_BYTES: usize = 8 << 10;

/// A collective in execution: the local members and the other processes.
pub(super) struct Exchange<'a> {
    pub route: &'a Route,
    pub spec: &'a CollectiveSpec,
    /// Arguments of the local members, in the order of their ranks.
    pub arguments: &'a [MemberArguments],
    pub memory: &'a [MemberMemory],
    /// Number of the collective in the clique.
    pub number: u64,
    pub is_stopped: &'a AtomicBool,
    pub cancel: &'a CancelToken,
}

impl Exchange<'_> {
    /// Returns the memory of all members. `remote` returns the operands of a member of another process.
    pub fn all_memory(&self, remote: impl Fn(usize) -> MemberMemory) -> Memory {
        let local = self.route.local();
        let member = |rank| match local.binary_search(&rank) {
            Ok(slot) => self.memory[slot].clone(),
            Err(_) => remote(rank),
        };
        Memory::new((0..self.spec.members()).map(member).collect())
    }

    /// Sends a message of this collective.
    pub fn send(&self, process: &Process, part: u64, bytes: Arc<Vec<u8>>) -> Result<()> {
        let id = self.route.id(self.number, part);
        self.route.hub.transport.send(process.rank, Message { id, bytes })
    }
}
