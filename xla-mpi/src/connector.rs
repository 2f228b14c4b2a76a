//! MPI as the connection of a client's processes.

use std::sync::Arc;

use xla_hlo::Result;
use xla_service::collective::processes::Transport;
use xla_service::{Connector, ProcessOptions};

use crate::transport::Mpi;

/// Connects the processes of a client by MPI. The ranks of MPI must be the numbers of the processes, and all processes
/// create clients of several platforms in the same order.
#[derive(Clone, Copy, Debug, Default)]
pub struct MpiConnector;

impl Connector for MpiConnector {
    fn connect(&self, platform: &str, options: &ProcessOptions) -> Result<Arc<dyn Transport>> {
        Ok(Mpi::new(platform, options.processes, options.timeout)?)
    }
}
