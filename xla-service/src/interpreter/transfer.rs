//! Literals to and from the device: the host's way.

use std::sync::Arc;

use crate::host::HostTransfer;
use crate::transfer::TransferManager;

pub(super) fn manager() -> Arc<dyn TransferManager> {
    Arc::new(HostTransfer)
}
