//! Devices of a grid and their ids.

use crate::{Error, Module, Result};

/// Numbers of replicas and partitions of a program. The id of a device is `replica * partitions + partition`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Number of replicas, at least 1.
    pub replicas: usize,
    /// Number of partitions of each replica, at least 1.
    pub partitions: usize,
}

impl Grid {
    /// Returns the grid that the module's header declares.
    pub fn of(module: &Module) -> Result<Grid> {
        let count = |count: u64| usize::try_from(count.max(1)).ok();
        let grid = count(module.attributes().replica_count).zip(count(module.attributes().num_partitions));
        let grid = grid.filter(|(replicas, partitions)| replicas.checked_mul(*partitions).is_some());
        let (replicas, partitions) =
            grid.ok_or_else(|| Error::invalid_argument(format!("module {} has too many devices", module.name())))?;
        Ok(Grid { replicas, partitions })
    }

    /// Returns the number of devices.
    pub fn device_count(self) -> usize {
        self.replicas * self.partitions
    }

    /// Returns a device and its coordinates for error messages.
    pub fn describe(self, device: usize) -> String {
        format!("device {device} (replica {}, partition {})", device / self.partitions, device % self.partitions)
    }
}
