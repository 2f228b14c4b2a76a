//! Platform: creates the compiler, executors and transfer manager, and lists the devices.

use std::sync::Arc;

use xla_hlo::Result;
use xla_service::platform::no_such_device;
use xla_service::{Compiler, Platform, StreamExecutor, TransferManager};

use crate::capabilities::NAME;
use crate::compiler::TemplateCompiler;
use crate::executor::TemplateExecutor;
use crate::transfer::TemplateTransfer;

// VENDOR(devices): delete the options that only a simulation has.
/// Options of the simulated hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceOptions {
    /// Number of devices.
    pub devices: usize,
    /// Memory of each device, in bytes.
    pub memory_bytes: usize,
    /// Number of streams that one program may use.
    pub streams: u32,
}

impl Default for DeviceOptions {
    fn default() -> Self {
        DeviceOptions { devices: 4, memory_bytes: 1 << 30, streams: 1 }
    }
}

/// Returns the platform with the default devices.
pub fn platform() -> Arc<dyn Platform> {
    platform_with(DeviceOptions::default())
}

// VENDOR(devices): ask the driver for the number of devices in `TemplatePlatform::check`, not here.
// Creating a platform must be cheap and must not touch a device.
/// Returns the platform with the given simulated devices.
pub fn platform_with(options: DeviceOptions) -> Arc<dyn Platform> {
    let executors = (0..options.devices).map(|ordinal| Arc::new(TemplateExecutor::new(ordinal, options.memory_bytes)));
    Arc::new(TemplatePlatform { executors: executors.collect(), streams: options.streams })
}

#[derive(Debug)]
struct TemplatePlatform {
    executors: Vec<Arc<TemplateExecutor>>,
    streams: u32,
}

impl Platform for TemplatePlatform {
    fn name(&self) -> &str {
        NAME
    }

    // VENDOR(devices): load the driver and search for devices.
    // The error names the missing component and how to install it.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn device_count(&self) -> usize {
        self.executors.len()
    }

    fn executor(&self, ordinal: usize) -> Result<Arc<dyn StreamExecutor>> {
        self.check()?;
        let executor = self.executors.get(ordinal).ok_or_else(|| no_such_device(NAME, ordinal, self.device_count()))?;
        Ok(executor.clone())
    }

    fn compiler(&self) -> Arc<dyn Compiler> {
        Arc::new(TemplateCompiler { streams: self.streams })
    }

    fn transfer_manager(&self) -> Arc<dyn TransferManager> {
        Arc::new(TemplateTransfer)
    }
}
