//! Assignment of a program's logical devices to devices of a client.

use std::sync::Arc;

use xla_hlo::{Error, Result};

use super::device::Client;

/// Devices of a program. Logical id `replica * partitions + partition` is the index in `ids`.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    /// Global ids, by logical id.
    pub ids: Arc<[usize]>,
    /// Indices of the local devices among the client's local devices.
    pub local: Vec<usize>,
    /// Logical ids of the local devices.
    pub logical: Vec<usize>,
}

impl Assignment {
    /// Creates an assignment to devices with these global ids. [`Error::InvalidArgument`] for an empty list or a
    /// repeated device; [`Error::NotFound`] for a device that does not exist.
    pub fn new(client: &Client, ids: &[usize]) -> Result<Assignment> {
        let (mut local, mut logical) = (Vec::new(), Vec::new());
        for (i, &id) in ids.iter().enumerate() {
            let index = client.0.topology.local_index(id)?;
            if ids[..i].contains(&id) {
                return Err(Error::invalid_argument(format!("a program cannot run on device {id} twice at a time")));
            }
            if let Some(index) = index {
                local.push(index);
                logical.push(i);
            }
        }
        if ids.is_empty() {
            return Err(Error::invalid_argument("a program must run on some device"));
        }
        Ok(Assignment { ids: ids.into(), local, logical })
    }

    /// Creates the default assignment of a program for `count` devices.
    pub fn default(client: &Client, count: usize) -> Result<Assignment> {
        Assignment::new(client, &client.0.topology.default_assignment(count))
    }

    /// Whether some devices belong to other processes.
    pub fn has_remote(&self) -> bool {
        self.local.len() < self.ids.len()
    }

    /// Returns an error if some devices belong to other processes; `reason` is the property of program or platform that
    /// requires one process.
    pub fn check_local(&self, client: &Client, name: &str, reason: &str) -> Result<()> {
        let is_remote = |logical: &&usize| !matches!(client.0.topology.local_index(**logical), Ok(Some(_)));
        let Some(&id) = self.ids.iter().find(is_remote) else { return Ok(()) };
        let process = client.0.topology.devices()[id].process;
        Err(Error::unimplemented(format!(
            "{name} must run on devices of one process, because one device does the work of all, but device {id} \
             belongs to process {process} ({reason})"
        )))
    }
}
