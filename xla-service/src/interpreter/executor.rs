//! The device: the host.

use std::sync::Arc;

use crate::executor::StreamExecutor;
use crate::host::{HostExecutor, PoolLimits};

pub(super) fn host(platform: &str) -> Arc<dyn StreamExecutor> {
    Arc::new(HostExecutor::new(platform, 0, PoolLimits::default()))
}
