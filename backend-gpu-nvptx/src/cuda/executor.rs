//! One GPU as the service sees it: memory from a pool, streams, and what it is.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use xla_hlo::{Error, Result};
use xla_service::executor::Allocation;
use xla_service::{DeviceDescription, DeviceMemory, MemoryStats, Stream, StreamExecutor};

use super::code::CudaModule;
use super::context::Context;
use super::driver::{self, Driver, dotted};
use super::graph::condition_image;
use super::pool::{ALIGNMENT, ChunkSource, Pool, PoolBlock};
use super::queue::Queue;
use super::staging::Staging;
use super::stream::CudaStream;

/// A GPU.
#[derive(Debug)]
pub(crate) struct CudaExecutor {
    description: DeviceDescription,
    resources: Arc<DeviceResources>,
}

/// What an executor and its streams share.
pub(super) struct DeviceResources {
    pub context: Arc<Context>,
    pub pool: Pool<DriverChunks>,
    pub staging: Staging,
    queues: Mutex<Queues>,
    /// What graphs look at a loop's predicate with; loaded when a loop first wants it.
    condition: OnceLock<Result<CudaModule>>,
}

/// Streams of the driver. Those that are no longer used are kept: making one takes long, and memory may remember work
/// of it.
#[derive(Default)]
struct Queues {
    made: u32,
    idle: Vec<Arc<Queue>>,
}

impl CudaExecutor {
    /// Device `ordinal` of the platform named `platform`, of which at most `limit` bytes may be in use; all of its
    /// memory for `None`. Errors are those of [`Driver::get`], or that there is no such device.
    pub fn new(platform: &str, ordinal: usize, limit: Option<usize>) -> Result<CudaExecutor> {
        let context = Context::new(ordinal)?;
        let memory = driver::device_memory(context.device())?;
        let description = describe(platform, &context, memory)?;
        let pool = Pool::new(DriverChunks(context.clone()), limit.unwrap_or(memory));
        let staging = Staging::new(&context);
        let resources =
            DeviceResources { context, pool, staging, queues: Mutex::default(), condition: OnceLock::new() };
        Ok(CudaExecutor { description, resources: Arc::new(resources) })
    }

    /// The context, for code and libraries.
    #[cfg(test)]
    pub fn context(&self) -> &Arc<Context> {
        &self.resources.context
    }

    /// Gives memory back to the driver that nothing is in.
    #[cfg(test)]
    pub fn trim(&self) {
        self.resources.pool.trim();
    }
}

fn describe(platform: &str, context: &Context, memory: usize) -> Result<DeviceDescription> {
    let attribute = |attribute| context.attribute(attribute);
    let kilohertz = |value: i32| format!("{} MHz", value / 1000);
    let kibibytes = |value: i32| format!("{} KiB", value / 1024);
    let (major, minor) = context.info().capability;
    let attributes = [
        ("compute capability", format!("{major}.{minor}")),
        ("driver", format!("CUDA {}", dotted(Driver::get()?.version))),
        ("clock", kilohertz(attribute(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?)),
        ("memory clock", kilohertz(attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?)),
        ("memory bus", format!("{} bits", attribute(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?)),
        ("L2 cache", kibibytes(attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?)),
        (
            "shared memory of a block",
            kibibytes(attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?),
        ),
    ];
    Ok(DeviceDescription {
        platform: platform.to_string(),
        ordinal: context.ordinal(),
        model: context.info().name.clone(),
        cores: usize::try_from(attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?).unwrap_or(0),
        memory_bytes: Some(memory),
        memory_alignment: ALIGNMENT,
        attributes: attributes.map(|(name, value)| (name.to_string(), value)).into(),
    })
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

    fn create_stream(&self) -> Result<Box<dyn Stream>> {
        Ok(Box::new(CudaStream::new(&self.resources)?))
    }
}

impl DeviceResources {
    /// Memory of the pool.
    pub fn allocate(&self, bytes: usize) -> Result<CudaMemory> {
        self.pool.allocate(bytes).map(|block| CudaMemory(Arc::new(block)))
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

/// Chunks of the driver's memory.
pub(super) struct DriverChunks(Arc<Context>);

impl ChunkSource for DriverChunks {
    type PoolQueue = Arc<Queue>;

    fn take(&self, bytes: usize) -> Result<Option<u64>> {
        self.0.allocate(bytes)
    }

    fn give_back(&self, address: u64) {
        // Errors say that the device is lost.
        let _ = self.0.synchronize().and_then(|()| self.0.free(address));
    }
}

/// Memory of a GPU. Recordings hold it too, until their work is sent.
#[derive(Clone, Debug)]
pub(crate) struct CudaMemory(Arc<PoolBlock<DriverChunks>>);

impl Allocation for CudaMemory {
    fn byte_size(&self) -> usize {
        self.0.size()
    }
}

/// Memory for a routine's own use, free again in stream order when dropped.
pub(crate) fn scratch(stream: &CudaStream, bytes: usize) -> Result<CudaMemory> {
    stream.resources().allocate(bytes)
}

impl CudaMemory {
    /// The address of `size` bytes from `offset` on, for work that is sent to `stream` next. The memory is then used by
    /// that stream: when it is dropped, whoever gets it next comes after that work.
    pub fn address_on(&self, stream: &CudaStream, offset: usize, size: usize) -> Result<u64> {
        if offset.checked_add(size).is_none_or(|end| end > self.0.size()) {
            return Err(Error::internal(format!(
                "{size} bytes from byte {offset} on are not inside of {} bytes of GPU memory",
                self.0.size()
            )));
        }
        let (address, work) = self.0.enter(stream.queue());
        stream.queue().wait_for_work(&work)?;
        stream.keep(self);
        Ok(address + offset as u64)
    }
}

/// [`CudaMemory::address_on`] for memory of the service; an error for memory of another device.
pub(crate) fn address_on(memory: &DeviceMemory, stream: &CudaStream, offset: usize, size: usize) -> Result<u64> {
    let memory = memory.downcast::<CudaMemory>()?;
    if !memory.0.is_of(&stream.resources().pool) {
        return Err(Error::invalid_argument(format!("memory of another GPU was given to {stream:?}")));
    }
    memory.address_on(stream, offset, size)
}
