//! Device memory of a GPU, and the chunks that its pool allocates from the driver.

pub(crate) mod pool;
pub(crate) mod staging;

use std::sync::Arc;

use xla_hlo::{Error, Result};
use xla_service::executor::Allocation;

use super::context::Context;
use super::stream::queue::Queue;
use pool::{ChunkSource, Pool, PoolBlock};

/// Source of chunks of the driver's memory.
pub(crate) struct DriverChunks(Arc<Context>);

impl DriverChunks {
    pub fn new(context: &Arc<Context>) -> DriverChunks {
        DriverChunks(context.clone())
    }
}

impl ChunkSource for DriverChunks {
    type PoolQueue = Arc<Queue>;

    fn take(&self, bytes: usize) -> Result<Option<u64>> {
        self.0.allocate(bytes)
    }

    fn give_back(&self, address: u64) {
        // Errors mean that the device is lost.
        let _ = self.0.free(address);
    }
}

/// Device memory. Recordings hold it, too, until their work is sent.
#[derive(Clone, Debug)]
pub(crate) struct CudaMemory(Arc<PoolBlock<DriverChunks>>);

impl Allocation for CudaMemory {
    fn byte_size(&self) -> usize {
        self.0.size()
    }
}

impl CudaMemory {
    /// Creates memory from a block of a pool.
    pub fn new(block: PoolBlock<DriverChunks>) -> CudaMemory {
        CudaMemory(Arc::new(block))
    }

    /// Returns the address of `size` bytes from `offset` on, for work that is sent to `queue` next. From then on
    /// `queue` uses the memory: after the memory is dropped, its next user waits for that work.
    pub fn enter(&self, queue: &Arc<Queue>, offset: usize, size: usize) -> Result<u64> {
        if offset.checked_add(size).is_none_or(|end| end > self.0.size()) {
            return Err(Error::internal(format!(
                "{size} bytes at offset {offset} are not inside a GPU memory of {} bytes",
                self.0.size()
            )));
        }
        let (address, work) = self.0.enter(queue);
        queue.wait_for_work(&work)?;
        Ok(address + offset as u64)
    }

    /// Whether the memory belongs to `pool`.
    pub fn is_of(&self, pool: &Pool<DriverChunks>) -> bool {
        self.0.is_of(pool)
    }
}
