//! The executor of one GPU: memory from a pool, and streams.

use std::sync::Arc;

use xla_hlo::Result;
use xla_service::{DeviceDescription, DeviceMemory, MemoryStats, Stream, StreamExecutor};

use crate::cuda::context::Context;
use crate::cuda::description::describe;
use crate::cuda::driver;
use crate::cuda::resources::DeviceResources;
use crate::cuda::stream::CudaStream;

/// A GPU.
#[derive(Debug)]
pub(crate) struct CudaExecutor {
    description: DeviceDescription,
    resources: Arc<DeviceResources>,
}

impl CudaExecutor {
    /// Device `ordinal` of the platform named `platform`, of which at most `limit` bytes may be in use; all of its
    /// memory for `None`. Errors are those of [`Driver::get`], or that there is no such device.
    pub fn new(platform: &str, ordinal: usize, limit: Option<usize>) -> Result<CudaExecutor> {
        let context = Context::new(ordinal)?;
        let memory = driver::device_memory(context.device())?;
        let description = describe(platform, &context, memory)?;
        let resources = DeviceResources::new(context, limit.unwrap_or(memory));
        Ok(CudaExecutor { description, resources: Arc::new(resources) })
    }

    /// The context, for code and libraries.
    #[cfg(test)]
    pub fn context(&self) -> &Arc<Context> {
        &self.resources.context
    }

    /// Returns unused memory to the driver.
    #[cfg(test)]
    pub fn trim(&self) {
        self.resources.pool.trim();
    }
}

impl StreamExecutor for CudaExecutor {
    fn description(&self) -> &DeviceDescription {
        &self.description
    }

    fn allocate(&self, bytes: usize) -> Result<DeviceMemory> {
        Ok(DeviceMemory::new(self.resources.allocate(bytes)?))
    }

    fn memory_stats(&self) -> MemoryStats {
        self.resources.pool.stats()
    }

    fn libraries(&self) -> Vec<(String, Result<String>)> {
        self.resources.libraries.describe()
    }

    fn create_stream(&self) -> Result<Box<dyn Stream>> {
        Ok(Box::new(CudaStream::new(&self.resources)?))
    }
}
