//! Resources that the executor and the streams of one device share: memory pool, staging buffers, driver streams.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use xla_hlo::{Error, Result};

use super::collective::Collectives;
use super::context::Context;
use super::graph::condition::condition_image;
use super::library::Libraries;
use super::memory::pool::Pool;
use super::memory::staging::Staging;
use super::memory::{CudaMemory, DriverChunks};
use super::module::CudaModule;
use super::nvtx::Profiler;
use super::stream::queue::Queue;

/// Resources that an executor and its streams share.
pub(crate) struct DeviceResources {
    pub context: Arc<Context>,
    pub pool: Pool<DriverChunks>,
    pub staging: Staging,
    /// Library handles and plans, shared by all programs.
    pub libraries: Arc<Libraries>,
    /// Cliques of the process's devices.
    pub collectives: Arc<Collectives>,
    /// Profiler that receives ranges.
    pub profiler: Option<Profiler>,
    queues: Mutex<Queues>,
    /// Kernels that set the conditions of graphs; loaded on first use.
    condition: OnceLock<Result<CudaModule>>,
}

/// Driver streams: the number created, and the idle ones. Idle streams are kept, because creation is slow and memory
/// may still refer to their work.
#[derive(Default)]
struct Queues {
    made: u32,
    idle: Vec<Arc<Queue>>,
}

impl DeviceResources {
    /// Creates the resources of a context's device. At most `limit` bytes of its memory may be in use.
    pub fn new(context: Arc<Context>, limit: usize, profiler: Option<Profiler>) -> DeviceResources {
        let pool = Pool::new(DriverChunks::new(&context), limit);
        let (staging, libraries) = (Staging::new(&context), Arc::new(Libraries::new(&context)));
        let (collectives, queues, condition) = (Collectives::shared(), Mutex::default(), OnceLock::new());
        DeviceResources { context, pool, staging, libraries, collectives, profiler, queues, condition }
    }

    /// Allocates memory from the pool.
    pub fn allocate(&self, bytes: usize) -> Result<CudaMemory> {
        self.pool.allocate(bytes).map(CudaMemory::new)
    }

    /// Returns the kernels that set the conditions of loops and conditionals in graphs.
    pub fn condition(&self) -> Result<&CudaModule> {
        let load = || CudaModule::load(&self.context, &condition_image());
        self.condition.get_or_init(load).as_ref().map_err(Error::again)
    }

    /// Returns a queue that is not in use, either an idle or a new one.
    pub fn queue(&self) -> Result<Arc<Queue>> {
        let id = {
            let mut queues = self.queues();
            if let Some(queue) = queues.idle.pop() {
                return Ok(queue);
            }
            queues.made += 1;
            queues.made
        };
        Ok(Arc::new(Queue::new(&self.context, id)?))
    }

    /// Makes a queue idle. Its pending work precedes the work of the next user.
    pub fn give_back(&self, queue: &Arc<Queue>) {
        self.queues().idle.push(queue.clone());
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        // Nothing panics while the lock is held.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for DeviceResources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.context.fmt(f)
    }
}
