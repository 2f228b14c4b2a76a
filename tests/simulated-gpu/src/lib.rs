//! A CUDA driver for tests: the library `libcuda.so.1` on a machine without a GPU, and a sanitizer of kernels.
//!
//! ```text
//! abi      the functions of the driver's interface, which a program finds in the library
//!            libraries: what other libraries need of it
//!   driver   what they do: memory, streams, events, graphs; as late and in as strange an order as the interface allows
//!     machine  the device: memory, blocks, threads, and what is wrong with what they do
//!       code     kernels, decoded
//!         ptx      the text
//! ```
//!
//! Everything that a kernel or a call does wrong is told as a sentence on stderr, and becomes an error of the driver.

mod abi;
pub mod code;
pub mod driver;
pub mod finding;
pub mod libraries;
pub mod machine;
pub mod program;
pub mod ptx;
