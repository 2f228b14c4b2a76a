//! Assemblers of PTX, the driver's linker and `ptxas`, and the cubins that they produce.

use xla_hlo::Result;

use super::report::Report;

/// Machine code for one GPU architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cubin {
    /// ELF file.
    pub bytes: Vec<u8>,
    /// Resources of each kernel.
    pub report: Report,
}

/// Assembler of PTX.
pub(crate) trait Assemble {
    /// Returns its name and version: another version may produce other machine code.
    fn tool(&self) -> String;

    /// Assembles PTX for a GPU architecture such as `sm_90`.
    fn assemble(&self, ptx: &str, target: &str) -> Result<Cubin>;
}
