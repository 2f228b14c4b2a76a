//! Entry point of the driver: opens a device, allocates memory, creates queues, injects faults.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use xla_hlo::{Error, Result};

use super::fault::{FaultKind, Faults};
use super::memory::{Block, Ledger, Usage};
use super::queue::{Drain, Queue};

/// One accelerator. Clones are handles to the same device.
#[derive(Clone, Debug)]
pub struct Device(Arc<DeviceState>);

#[derive(Debug)]
struct DeviceState {
    ledger: Arc<Ledger>,
    faults: Arc<Faults>,
    queues: Mutex<Vec<Weak<Drain>>>,
}

impl Device {
    /// Opens a device with `memory_bytes` bytes of memory.
    pub fn new(memory_bytes: usize) -> Device {
        let ledger = Arc::new(Ledger::new(memory_bytes));
        Device(Arc::new(DeviceState { ledger, faults: Arc::default(), queues: Mutex::default() }))
    }

    /// Allocates a block of memory with arbitrary contents. If there is not enough free memory, waits until all queues
    /// are idle, because queued commands may hold the last handles to blocks, and tries again.
    /// [`Error::ResourceExhausted`] if memory still does not suffice.
    pub fn allocate(&self, bytes: usize) -> Result<Arc<Block>> {
        if self.0.faults.strikes(FaultKind::Allocation) {
            return Err(Error::resource_exhausted(format!("injected fault: no device memory for {bytes} bytes")));
        }
        Block::new(&self.0.ledger, bytes).or_else(|_| {
            self.queues().iter().for_each(|queue| queue.drain());
            Block::new(&self.0.ledger, bytes)
        })
    }

    /// Creates a queue with its own thread. [`Error::ResourceExhausted`] if the system cannot start a thread.
    pub fn queue(&self) -> Result<Queue> {
        let queue = Queue::start(self.0.faults.clone())?;
        let mut queues = self.0.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|known| known.strong_count() > 0);
        queues.push(queue.drain_handle());
        Ok(queue)
    }

    /// Returns the memory usage.
    pub fn usage(&self) -> Usage {
        self.0.ledger.usage()
    }

    /// Makes an operation of this kind fail, after `skip` successful ones. First waits until all queues are idle, so
    /// that only operations sent later count.
    pub fn inject_fault(&self, kind: FaultKind, skip: u64) {
        self.queues().iter().for_each(|queue| queue.drain());
        self.0.faults.inject(kind, skip);
    }

    /// Cancels injected faults that have not occurred yet.
    pub fn clear_faults(&self) {
        self.0.faults.clear();
    }

    fn queues(&self) -> Vec<Arc<Drain>> {
        let queues = self.0.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.iter().filter_map(Weak::upgrade).collect()
    }
}
