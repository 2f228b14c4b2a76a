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
/// - **Cheap to create.** Creating and registering a platform touches no device and loads no library; that happens in
///   [`Platform::executor`] or [`Platform::check`].
/// - **Threads.** Every method may be called from any thread at any time, and returns the same objects every time.
/// - **Compiling works without the device**: [`Platform::compiler`] and [`Platform::transfer_manager`] never fail.
pub trait Platform: Send + Sync + fmt::Debug {
    /// Returns the platform's name, which users pass to select it: lower case, such as `cpu`.
    fn name(&self) -> &str;

    /// Checks that this machine can run programs on the platform. Otherwise [`xla_hlo::Error::FailedPrecondition`]
    /// states the reason and the packages to install.
    fn check(&self) -> Result<()>;

    /// Returns the number of devices of this machine; 0 if [`Platform::check`] fails.
    fn device_count(&self) -> usize;

    /// Returns device number `ordinal`. The error is that of [`Platform::check`], or [`xla_hlo::Error::NotFound`] with
    /// the number of devices.
    fn executor(&self, ordinal: usize) -> Result<Arc<dyn StreamExecutor>>;

    /// Returns the first `count` devices, or all of them. The error is that of [`Platform::executor`].
    ///
    /// A host platform creates any requested number of virtual devices, which share one memory pool.
    fn executors(&self, count: Option<usize>) -> Result<Vec<Arc<dyn StreamExecutor>>> {
        (0..count.unwrap_or_else(|| self.device_count().max(1))).map(|ordinal| self.executor(ordinal)).collect()
    }

    /// Returns the compiler.
    fn compiler(&self) -> Arc<dyn Compiler>;

    /// Returns the transfer manager.
    fn transfer_manager(&self) -> Arc<dyn TransferManager>;
}

/// Returns the [`Error::NotFound`](xla_hlo::Error::NotFound) for a device that does not exist.
pub fn no_such_device(platform: &str, ordinal: usize, count: usize) -> xla_hlo::Error {
    let plural = if count == 1 { "device" } else { "devices" };
    xla_hlo::Error::not_found(format!("platform {platform} has {count} {plural}, but no device {ordinal}"))
}
