//! The simulated accelerator and its driver: everything in this folder is what a vendor's driver library would be.
//!
//! ```text
//! Device ── allocate ──> Block      memory that the host cannot touch; only commands reach it   memory.rs
//!    │ └──  queue ─────> Queue      commands in order, executed by the queue's own thread      queue.rs, worker.rs
//!    │                     └ Event  a point in a queue, reached or failed                       event.rs
//!    │      Kernel::load(Program)   a checked program of tensor instructions                    program.rs, check.rs
//!    │        └ core                registers of one tile each; vector, matrix and DMA units    core.rs, tensor.rs
//!    └── faults                     failures on request, for tests                              fault.rs
//! ```
//!
//! Errors flow with the data. A command that fails leaves *poison* in the memory that it should have written; a command
//! that would read poison does not run, and leaves the same poison behind. Reading poison to the host gives the first
//! error, with the label of the command that failed. Work that reads no poison goes on as if nothing had happened.
//!
//! The device knows element types and scalar arithmetic, and nothing of modules, instructions of HLO, or layouts beyond
//! its own tiles.

mod check;
mod core;
mod event;
mod fault;
mod memory;
mod program;
mod queue;
mod tensor;
mod worker;

use std::sync::{Arc, Mutex, PoisonError, Weak};

use xla_hlo::{Error, Result};

pub use check::Kernel;
pub use event::Event;
pub use fault::FaultKind;
pub use memory::{Block, Region, Usage};
pub use program::{Affine, Coordinate, Index, Instruction, Program, Register, VectorOp, View};
pub use queue::{Command, Predicate, Queue};
pub use tensor::{Access, TensorDescriptor};

use fault::Faults;
use memory::Ledger;
use queue::Drain;

/// Rows of a tile; also the depth of one step of the matrix unit.
pub const TILE_ROWS: usize = 4;
/// Columns of a tile.
pub const TILE_COLUMNS: usize = 8;
/// Elements of a tile: what one register holds and one instruction works on.
pub const LANES: usize = TILE_ROWS * TILE_COLUMNS;
/// Registers of the core; together they are its scratchpad.
pub const REGISTERS: usize = 64;
/// Every block starts at a multiple of so many bytes, and takes a multiple of them.
pub const ALIGNMENT: usize = 128;

/// One accelerator. Cloning gives another handle.
#[derive(Clone, Debug)]
pub struct Device(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    ledger: Arc<Ledger>,
    faults: Arc<Faults>,
    queues: Mutex<Vec<Weak<Drain>>>,
}

impl Device {
    /// A device with so many bytes of memory.
    pub fn new(memory_bytes: usize) -> Device {
        let ledger = Arc::new(Ledger::new(memory_bytes));
        Device(Arc::new(Shared { ledger, faults: Arc::default(), queues: Mutex::default() }))
    }

    /// A block of memory, of arbitrary contents. Where too little is free, waits for queued work to give back what it
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

    /// How much memory is used.
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
