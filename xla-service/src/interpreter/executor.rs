//! The device: the host.

use std::sync::Arc;

use crate::executor::StreamExecutor;
use crate::host::{HostExecutor, PoolLimits};

pub(super) fn host() -> Arc<dyn StreamExecutor> {
    Arc::new(HostExecutor::new(super::NAME, 0, PoolLimits::default()))
}
