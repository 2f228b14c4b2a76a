//! PTX to machine code by NVIDIA's assembler, where it is installed, without GPU or driver.
//!
//! ```text
//! Ptxas::find ── assemble(ptx, "sm_90") ──> Cubin { bytes, report: registers and spills by kernel }
//!                   └─ CubinCache: the same from a file, if it was assembled before
//!                          └─ InProcess: for a program that is loaded where it was compiled; or the driver assembles
//! ```
//!
//! Without `ptxas`, programs carry PTX, and the driver of the machine that runs them assembles it.

pub(crate) mod assembler;
pub(crate) mod cache;
pub(crate) mod in_process;
pub(crate) mod ptxas;
pub(crate) mod report;
