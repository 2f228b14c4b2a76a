//! SASS reader and roofline model: estimates how long a kernel takes, from its machine code alone. No GPU is needed.
//!
//! ```text
//! kernel     report of the compiler on a kernel       cubin      machine code of the kernels of a cubin
//! sass       disassembly -> instructions              class      functional unit of each instruction
//! loops      basic blocks and loops                   thread     trip counts, by following one thread
//! rates      throughput of each architecture          model      -> time and bound of a kernel
//! rows       resource usage of the kernels of programs
//! table      the table of estimates in the repository
//! ```
//!
//! `cargo xtask ptxas --roofline` assembles the benchmark programs and compares them with the table.

mod class;
pub mod cubin;
pub mod kernel;
mod loops;
pub mod model;
pub mod rates;
pub mod rows;
pub mod sass;
pub mod table;
mod thread;
