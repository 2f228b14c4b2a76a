//! Simulated NVIDIA libraries for tests on machines without a GPU: cuBLASLt, cuDNN, cuFFT and NCCL, which check
//! their calls, and an NVTX profiler.
//!
//! ```text
//! blas, dnn, fft   one library each
//!   abi            exported functions
//!     plan, graph  descriptors and plans, as far as programs of this repository use them
//!       rules      limits of the library, by NVIDIA's documentation
//!     work         execution by plain loops in doubles, rounded once
//! nccl             collectives among devices, which has more parts
//! nvtx             profiler
//! element, handles, workspace, refusal   shared: element types, handles, workspaces, and reports of misuse
//! simulated-gpu    driver, in the same file: work is submitted to its streams and runs in its memory
//! ```
//!
//! One file with all of these is installed under the names of all libraries and of the driver, so that it is loaded
//! once, with one set of devices. Every misuse of a library is reported as a sentence on stderr, and the call returns
//! the status code of NVIDIA's documentation. Requests that no test of this repository makes are refused as not
//! supported.

mod arguments;
mod blas;
mod dnn;
mod element;
mod fft;
mod handles;
mod nccl;
mod nvtx;
mod refusal;
mod workspace;
