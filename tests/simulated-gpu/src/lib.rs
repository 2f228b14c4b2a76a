//! CUDA driver for tests: a `libcuda.so.1` for machines without a GPU that checks kernels as compute-sanitizer does.
//!
//! ```text
//! abi            driver API: the exported functions that a program loads from the library
//!   libraries    interface for simulated cuBLAS, cuDNN and cuFFT
//!   driver       memory, streams, events and graphs; schedules work as late and as unusually as the API allows
//!     machine    device: memory, blocks, threads, and detection of their errors
//!       code     decoded kernels
//!         ptx    lexer and parser of PTX text
//! ```
//!
//! Every error of a kernel or call is reported as a sentence on stderr, and the driver returns an error code.

mod abi;
pub mod code;
pub mod driver;
pub mod finding;
pub mod libraries;
pub mod machine;
pub mod program;
pub mod ptx;
