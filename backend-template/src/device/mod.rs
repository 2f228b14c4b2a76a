//! The simulated accelerator and its driver. A vendor's driver library takes the place of this module.
//!
//! ```text
//! Device ── allocate ──> Block      memory that only commands can access                       driver.rs, memory.rs
//!    │ └──  queue ─────> Queue      commands in order, executed by the queue's own thread      queue.rs, worker.rs
//!    │                     ├ Command  an upload, copy, launch or loop                          command.rs, locked.rs
//!    │                     └ Event    a point in a queue, reached or failed                    event.rs
//!    │      Kernel::load(Program)   a checked program of tensor instructions                   program.rs, kernel.rs
//!    │        └ core                registers of one tile each; vector, matrix and DMA units   core.rs, tensor.rs
//!    ├── faults                     failures on request, for tests                             fault.rs
//!    └── spec                       constants of the hardware                                  spec.rs
//! ```
//!
//! Each file depends only on earlier files of this list: spec, tensor, program, fault, memory, kernel, event, command,
//! locked, core, worker, queue, driver.
//!
//! Errors propagate with the data. A command that fails leaves *poison* in the memory that it should have written. A
//! command that would read poison does not run and propagates it to its own results. A copy of poisoned memory to the
//! host returns the original error, with the label of the command that failed. Commands that read no poison run
//! normally.
//!
//! The device implements element types and scalar arithmetic. It is independent of modules, HLO instructions, and all
//! layouts except its own tiles.

mod command;
mod core;
mod driver;
mod event;
mod fault;
mod kernel;
mod locked;
mod memory;
mod program;
mod queue;
mod spec;
mod tensor;
mod worker;

pub use command::{Command, Predicate};
pub use driver::Device;
pub use event::Event;
pub use fault::FaultKind;
pub use kernel::Kernel;
pub use memory::{Block, Region, Usage};
pub use program::{Affine, Coordinate, Index, Instruction, Program, Register, VectorOp, View};
pub use queue::Queue;
pub use spec::{ALIGNMENT, LANES, REGISTERS, TILE_COLUMNS, TILE_ROWS};
pub use tensor::{Access, TensorDescriptor};
