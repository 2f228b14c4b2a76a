//! The device: the host, as the service has it.

use std::sync::Arc;

use xla_service::StreamExecutor;
use xla_service::host::{HostExecutor, PoolLimits};

pub(crate) fn host() -> Arc<dyn StreamExecutor> {
    Arc::new(HostExecutor::new(crate::NAME, 0, PoolLimits::default()))
}
