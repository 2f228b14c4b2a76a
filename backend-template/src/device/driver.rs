//! The driver's entry: opens a device, takes memory, creates queues, injects faults.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use xla_hlo::{Error, Result};

use super::fault::{FaultKind, Faults};
use super::memory::{Block, Ledger, Usage};
use super::queue::{Drain, Queue};

/// One accelerator. A clone is another handle.
#[derive(Clone, Debug)]
pub struct Device(Arc<DeviceState>);

#[derive(Debug)]
struct DeviceState {
    ledger: Arc<Ledger>,
    faults: Arc<Faults>,
    queues: Mutex<Vec<Weak<Drain>>>,
}

impl Device {
    /// A device with `memory_bytes` bytes of memory.
    pub fn new(memory_bytes: usize) -> Device {
        let ledger = Arc::new(Ledger::new(memory_bytes));
        Device(Arc::new(DeviceState { ledger, faults: Arc::default(), queues: Mutex::default() }))
    }

    /// A block of memory, of arbitrary contents. If too little is free, waits for queued work to release memory that it
    /// is the last to hold; [`Error::ResourceExhausted`] if that does not suffice.
    pub fn allocate(&self, bytes: usize) -> Result<Arc<Block>> {
        if self.0.faults.strikes(FaultKind::Allocation) {
            return Err(Error::resource_exhausted(format!("injected fault: no device memory for {bytes} bytes")));
        }
        Block::new(&self.0.ledger, bytes).or_else(|_| {
            self.queues().iter().for_each(|queue| queue.drain());
            Block::new(&self.0.ledger, bytes)
        })
    }

    /// A new queue with a thread of its own. [`Error::ResourceExhausted`] where the system has no thread left.
    pub fn queue(&self) -> Result<Queue> {
        let queue = Queue::start(self.0.faults.clone())?;
        let mut queues = self.0.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|known| known.strong_count() > 0);
        queues.push(queue.drain_handle());
        Ok(queue)
    }

    /// Memory in use.
    pub fn usage(&self) -> Usage {
        self.0.ledger.usage()
    }

    /// Lets the operation of that kind fail that comes after `skip` others which go well. Waits until all queues are
    /// idle, so that it is one of those sent from now on.
    pub fn inject_fault(&self, kind: FaultKind, skip: u64) {
        self.queues().iter().for_each(|queue| queue.drain());
        self.0.faults.inject(kind, skip);
    }

    /// Takes faults back that have not happened.
    pub fn clear_faults(&self) {
        self.0.faults.clear();
    }

    fn queues(&self) -> Vec<Arc<Drain>> {
        let queues = self.0.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.iter().filter_map(Weak::upgrade).collect()
    }
}
