//! NVIDIA's libraries for tests: cuBLASLt, cuDNN and cuFFT on a machine without a GPU, and a check of how they are
//! called; and a profiler.
//!
//! ```text
//! blas, dnn, fft   a library each
//!   abi              the functions of its interface, which a program finds in it
//!     what was made    descriptions and plans, as far as programs of this repository use them
//!       rules            what the library takes, by NVIDIA's documents
//!         the work         plain loops in doubles, rounded once
//! nvtx             what a profiler hears
//! element, handles, workspace, refusal   numbers, handles, memory of calls, and what is said of a wrong one
//! simulated-gpu    the driver, in the same file: work is sent to its streams, and done in its memory
//! ```
//!
//! A file with all of it is found under the names of all libraries, the driver's among them: so it is loaded once, with
//! one device. Every call that a library must not get is told as a sentence on stderr, and answered with the code that
//! its documents give. Requests that no test of this repository makes are refused as not supported.

mod arguments;
mod blas;
mod dnn;
mod element;
mod fft;
mod handles;
mod nvtx;
mod refusal;
mod workspace;
