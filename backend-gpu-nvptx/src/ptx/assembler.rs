//! Assembler of PTX: the driver's linker or `ptxas`, and the machine code that either writes.

use xla_hlo::Result;

use super::report::Report;

/// Machine code for one GPU architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cubin {
    /// An ELF file.
    pub bytes: Vec<u8>,
    /// Resources of each kernel.
    pub report: Report,
}

/// Assembles PTX.
pub(crate) trait Assemble {
    /// Its name and version: another one may make other machine code.
    fn tool(&self) -> String;

    /// Machine code of PTX for a GPU architecture such as `sm_90`.
    fn assemble(&self, ptx: &str, target: &str) -> Result<Cubin>;
}
