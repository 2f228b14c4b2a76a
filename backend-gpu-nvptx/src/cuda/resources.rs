//! Resources of one device that its executor and its streams share: memory pool, staging buffers, driver streams.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use xla_hlo::{Error, Result};

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
    /// One handle and one set of plans for all programs.
    pub libraries: Arc<Libraries>,
    /// The profiler that ranges are shown to.
    pub profiler: Option<Profiler>,
    queues: Mutex<Queues>,
    /// The kernel that reads a loop's predicate in graphs; loaded when a loop first wants it.
    condition: OnceLock<Result<CudaModule>>,
}

/// Streams of the driver. Those that are no longer used are kept: making one takes long, and memory may remember work
/// of it.
#[derive(Default)]
struct Queues {
    made: u32,
    idle: Vec<Arc<Queue>>,
}

impl DeviceResources {
    /// Those of a context's device, of whose memory at most `limit` bytes may be in use.
    pub fn new(context: Arc<Context>, limit: usize, profiler: Option<Profiler>) -> DeviceResources {
        let pool = Pool::new(DriverChunks::new(&context), limit);
        let (staging, libraries) = (Staging::new(&context), Arc::new(Libraries::new(&context)));
        let (queues, condition) = (Mutex::default(), OnceLock::new());
        DeviceResources { context, pool, staging, libraries, profiler, queues, condition }
    }

    /// Memory of the pool.
    pub fn allocate(&self, bytes: usize) -> Result<CudaMemory> {
        self.pool.allocate(bytes).map(CudaMemory::new)
    }

    /// The kernel that tells a graph whether a loop goes on.
    pub fn condition(&self) -> Result<&CudaModule> {
        let load = || CudaModule::load(&self.context, &condition_image());
        self.condition.get_or_init(load).as_ref().map_err(Error::again)
    }

    /// A queue that nobody else uses.
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

    /// Takes a queue back. Work may be left in it, which whoever gets it next then follows.
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
