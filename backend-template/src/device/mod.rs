//! The simulated accelerator and its driver, in the place of a vendor's driver library.
//!
//! ```text
//! Device ── allocate ──> Block      memory that the host cannot touch; only commands reach it  driver.rs, memory.rs
//!    │ └──  queue ─────> Queue      commands in order, executed by the queue's own thread      queue.rs, worker.rs
//!    │                     ├ Command  an upload, copy, launch or loop                          command.rs, locked.rs
//!    │                     └ Event    a point in a queue, reached or failed                    event.rs
//!    │      Kernel::load(Program)   a checked program of tensor instructions                   program.rs, kernel.rs
//!    │        └ core                registers of one tile each; vector, matrix and DMA units   core.rs, tensor.rs
//!    ├── faults                     failures on request, for tests                             fault.rs
//!    └── spec                       the numbers of the hardware                                spec.rs
//! ```
//!
//! A file uses only files in front of it in this order: spec, tensor, program, fault, memory, kernel, event, command,
//! locked, core, worker, queue, driver.
//!
//! Errors flow with the data. A command that fails leaves *poison* in the memory that it should have written; a command
//! that would read poison does not run, and leaves the same poison behind. Reading poison to the host returns the first
//! error, with the label of the command that failed. Work that reads no poison goes on as if nothing had happened.
//!
//! The device knows element types and scalar arithmetic, and nothing of modules, instructions of HLO, or layouts beyond
//! its own tiles.

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
