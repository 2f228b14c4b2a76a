//! Platform trait: one kind of device with its compiler, executors and transfer manager.

use std::fmt;
use std::sync::Arc;

use xla_hlo::Result;

use crate::compiler::Compiler;
use crate::executor::StreamExecutor;
use crate::transfer::TransferManager;

/// One kind of device, registered by a backend crate.
///
/// # Contract
///
/// - **Cheap to make.** Creating and registering a platform touches no device and loads no library; that happens in
///   [`Platform::executor`] or [`Platform::check`].
/// - **Threads.** Every method may be called from any thread at any time; the same parts come out every time.
/// - **Compiling works without the device**: [`Platform::compiler`] and [`Platform::transfer_manager`] never fail.
pub trait Platform: Send + Sync + fmt::Debug {
    /// The name users choose it by: lower case, such as `cpu`.
    fn name(&self) -> &str;

    /// Whether this machine can run programs here. If not, [`xla_hlo::Error::FailedPrecondition`] says why, and names
    /// the packages to install.
    fn check(&self) -> Result<()>;

    /// Number of devices of this machine; 0 where [`Platform::check`] fails.
    fn device_count(&self) -> usize;

    /// Device number `ordinal`. The error is that of [`Platform::check`], or [`xla_hlo::Error::NotFound`] with the
    /// number of devices.
    fn executor(&self, ordinal: usize) -> Result<Arc<dyn StreamExecutor>>;

    /// The first `count` devices, or all of them. The error is that of [`Platform::executor`].
    ///
    /// A platform whose devices are parts of the host has as many as it is asked for, which share their memory pool.
    fn executors(&self, count: Option<usize>) -> Result<Vec<Arc<dyn StreamExecutor>>> {
        (0..count.unwrap_or_else(|| self.device_count().max(1))).map(|ordinal| self.executor(ordinal)).collect()
    }

    /// The compiler.
    fn compiler(&self) -> Arc<dyn Compiler>;

    /// The transfer manager.
    fn transfer_manager(&self) -> Arc<dyn TransferManager>;
}

/// The [`Error::NotFound`](xla_hlo::Error::NotFound) for a device that is not there.
pub fn no_such_device(platform: &str, ordinal: usize, count: usize) -> xla_hlo::Error {
    let plural = if count == 1 { "device" } else { "devices" };
    xla_hlo::Error::not_found(format!("platform {platform} has {count} {plural}, there is no device {ordinal}"))
}
