//! Transfer manager of the platform: that of the host.

use std::sync::Arc;

use xla_service::TransferManager;
use xla_service::host::HostTransfer;

pub(crate) fn manager() -> Arc<dyn TransferManager> {
    Arc::new(HostTransfer)
}
