//! Members of a clique that meet in this process.

use std::fmt;
use std::sync::Arc;

use crate::collective::CliqueKey;

/// A clique, and which of its members meet in this process.
#[derive(Clone, Debug)]
pub(in crate::collective) struct Group {
    /// Key of the clique.
    pub key: CliqueKey,
    /// Ranks of the members that meet here, ascending.
    pub ranks: Vec<usize>,
    /// Locations of the devices, if the clique has members in other processes.
    pub locations: Option<Arc<dyn Locations>>,
}

/// Locations of devices, for messages.
pub(in crate::collective) trait Locations: fmt::Debug + Send + Sync {
    /// Returns the process of a device: `process 1, pid 4242 on node07`.
    fn location(&self, device: usize) -> String;
}

impl Group {
    /// Returns the group of a clique whose members all meet in this process.
    pub fn of(key: CliqueKey) -> Group {
        let ranks = (0..key.members()).collect();
        Group { key, ranks, locations: None }
    }

    /// Returns the position of a rank among the local ones.
    pub fn slot(&self, rank: usize) -> Option<usize> {
        self.ranks.binary_search(&rank).ok()
    }

    /// Returns the device of a rank with its rank and location.
    pub fn describe(&self, rank: usize) -> String {
        let device = self.key.devices()[rank];
        match &self.locations {
            None => format!("{device} (rank {rank})"),
            Some(locations) => format!("{device} (rank {rank}, {})", locations.location(device)),
        }
    }
}
