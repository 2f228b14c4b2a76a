//! Transfer manager of the interpreter: that of the host.

use std::sync::Arc;

use crate::host::HostTransfer;
use crate::transfer::TransferManager;

pub(super) fn manager() -> Arc<dyn TransferManager> {
    Arc::new(HostTransfer)
}
