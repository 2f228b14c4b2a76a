//! Executor of one GPU: allocates memory from a pool and creates streams.

use std::sync::Arc;
use std::time::Duration;

use xla_hlo::Result;
use xla_service::{DeviceDescription, DeviceMemory, MemoryStats, Stream, StreamExecutor, Timing};

use crate::cuda::context::Context;
use crate::cuda::description::{cache_bytes, describe};
use crate::cuda::driver;
use crate::cuda::graph;
use crate::cuda::nvtx::Profiler;
use crate::cuda::resources::DeviceResources;
use crate::cuda::stream::CudaStream;
use crate::cuda::stream::clock::TimeMark;

/// Executor of one GPU.
#[derive(Debug)]
pub(crate) struct CudaExecutor {
    description: DeviceDescription,
    cache_bytes: usize,
    resources: Arc<DeviceResources>,
}

impl CudaExecutor {
    /// Opens device `ordinal` for the platform named `platform`. At most `limit` bytes of its memory may be in use;
    /// `None` allows all of it. Runs are reported to `profiler` as ranges. Returns the errors of
    /// [`driver::Driver::get`], or an error if there is no such device.
    pub fn new(
        platform: &str,
        ordinal: usize,
        limit: Option<usize>,
        profiler: Option<Profiler>,
    ) -> Result<CudaExecutor> {
        let context = Context::new(ordinal)?;
        let memory = driver::device_memory(context.device())?;
        let description = describe(platform, &context, memory)?;
        let cache_bytes = cache_bytes(&context)?;
        let resources = DeviceResources::new(context, limit.unwrap_or(memory), profiler);
        Ok(CudaExecutor { description, cache_bytes, resources: Arc::new(resources) })
    }

    /// Returns the context, for loading code and libraries.
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

    fn timing(&self) -> Option<&dyn Timing> {
        Some(self)
    }
}

impl Timing for CudaExecutor {
    fn cache_bytes(&self) -> usize {
        self.cache_bytes
    }

    fn time(&self, stream: &dyn Stream, send: &mut dyn FnMut() -> Result<()>) -> Result<Duration> {
        let queue = stream.downcast::<CudaStream>()?.queue();
        let begin = TimeMark::new(queue)?;
        send()?;
        let end = TimeMark::new(queue)?;
        queue.synchronize()?;
        end.since(&begin)
    }

    fn record(&self, stream: &dyn Stream) -> Result<Option<Box<dyn Stream>>> {
        Ok(Some(Box::new(stream.downcast::<CudaStream>()?.capture())))
    }

    fn time_recorded(&self, recorded: Box<dyn Stream>, stream: &dyn Stream, rounds: usize) -> Result<Vec<Duration>> {
        let recording = recorded.downcast::<CudaStream>()?.end_capture();
        graph::time(recording, &self.resources.libraries, stream.downcast()?, rounds)
    }
}
