//! Assembly of PTX to cubins: by `ptxas`, which needs neither GPU nor driver, or by the driver's linker.
//!
//! ```text
//! Ptxas::find ── assemble(ptx, "sm_90") ──> Cubin { bytes, report: registers and spills by kernel }
//!                   └─ CubinCache: from a file, if the PTX was assembled before
//!                          └─ InProcess: for a program that this process loads; otherwise the driver assembles it
//! ```
//!
//! Without `ptxas`, executables contain only PTX, which the driver assembles on the machine that runs them.

pub(crate) mod assembler;
pub(crate) mod cache;
pub(crate) mod in_process;
pub(crate) mod ptxas;
pub(crate) mod report;
