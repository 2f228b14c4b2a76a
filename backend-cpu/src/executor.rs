//! Device of the platform: the host, as `xla-service` implements it.

use std::sync::Arc;

use xla_service::host::{HostExecutor, PoolLimits};

use crate::options::NAME;

pub(crate) fn host(dirty: bool) -> Arc<HostExecutor> {
    let host = HostExecutor::new(NAME, 0, PoolLimits::default());
    Arc::new(if dirty { host.with_dirty_memory(PoolLimits::default()) } else { host })
}
