//! Processes of a clique.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use xla_hlo::{Error, Result};

use super::hub::Hub;
use super::transport::MessageId;
use crate::collective::CliqueKey;
use crate::collective::key::first_u64;

/// Process with members of a clique.
#[derive(Debug)]
pub(super) struct Process {
    /// Rank of the process.
    pub rank: usize,
    /// Ranks of its members in the clique, ascending.
    pub members: Vec<usize>,
}

/// Processes of a clique, and the identity of its messages.
#[derive(Debug)]
pub(super) struct Route {
    pub hub: Arc<Hub>,
    pub key: CliqueKey,
    /// By rank.
    pub processes: Vec<Process>,
    /// Index of this process.
    pub own: usize,
    /// Hash of the clique.
    hash: u64,
}

impl Route {
    /// Locates the members of a clique. Fails if a device is unknown, or if this process has no member.
    pub fn new(hub: &Arc<Hub>, key: &CliqueKey) -> Result<Route> {
        let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (rank, device) in key.devices().iter().enumerate() {
            let process = hub.processes.get(device).ok_or_else(|| {
                let instruction = key.instruction();
                Error::invalid_argument(format!("{instruction} names device {device}, which no process has"))
            })?;
            members.entry(*process).or_default().push(rank);
        }
        let processes: Vec<Process> = members.into_iter().map(|(rank, members)| Process { rank, members }).collect();
        let own = processes.iter().position(|process| process.rank == hub.transport.rank()).ok_or_else(|| {
            Error::internal(format!("no device of {} is in {}", key.instruction(), hub.process(hub.transport.rank())))
        })?;
        Ok(Route { hub: hub.clone(), key: key.clone(), processes, own, hash: hash(key) })
    }

    /// Returns the ranks of the local members.
    pub fn local(&self) -> &[usize] {
        &self.processes[self.own].members
    }

    /// Returns the other processes.
    pub fn others(&self) -> impl Iterator<Item = &Process> {
        self.processes.iter().enumerate().filter(|(i, _)| *i != self.own).map(|(_, process)| process)
    }

    /// Returns the identity of a message.
    pub fn id(&self, collective: u64, part: u64) -> MessageId {
        MessageId { run: self.key.run().0, clique: self.hash, collective, part }
    }

    /// Returns the devices of a process with its location, for messages.
    pub fn describe(&self, process: &Process) -> String {
        let devices: Vec<String> =
            process.members.iter().map(|&rank| format!("{} (rank {rank})", self.key.devices()[rank])).collect();
        format!("{} of {}", devices.join(", "), self.hub.process(process.rank))
    }
}

fn hash(key: &CliqueKey) -> u64 {
    let mut hash = Sha256::new();
    let instruction = key.instruction();
    hash.update((instruction.name.len() as u64).to_le_bytes());
    hash.update(&instruction.name);
    hash.update([u8::from(instruction.channel.is_some())]);
    hash.update(instruction.channel.unwrap_or_default().to_le_bytes());
    key.devices().iter().for_each(|&device| hash.update((device as u64).to_le_bytes()));
    first_u64(&hash.finalize())
}
