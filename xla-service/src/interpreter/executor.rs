//! Device of the interpreter: the host.

use std::sync::Arc;

use crate::host::{HostExecutor, PoolLimits};

pub(super) fn host(platform: &str) -> Arc<HostExecutor> {
    Arc::new(HostExecutor::new(platform, 0, PoolLimits::default()))
}
