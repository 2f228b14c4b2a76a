//! Lowering trait: device code for one instruction, or none.

use xla_hlo::{CompId, Computation, InstrId, Instruction, Module, Result};

use super::{ArraySlice, KernelRef, LibraryRef};

/// Turns scheduled instructions into device code, one at a time.
///
/// # Contract
///
/// - **Asked for** every instruction that computes something, in the order of the schedule, callees inside their
///   callers: mostly fusions. Not asked for parameters, constants, tuples, control flow, and copies and bitcasts that
///   keep the order of bytes.
/// - **Checked by the caller:** the module is verified and scheduled; operands and results have the shapes and layouts
///   of the instruction, one slice for each array leaf.
/// - **Aliasing:** a result's slice may be an operand's where the operation reads each element where it writes it, or
///   updates the operand in place; see [`xla_passes::buffers`]. Otherwise they are disjoint.
/// - **[`Lowered::NotMine`]** is no failure: the host fallback takes it, or the service reports it. Errors are for
///   operations that the backend wants and cannot compile; the service adds the instruction's name.
pub trait Lowering {
    /// Lowers one instruction. Kernels and library calls go into the backend's own table; the reference stays here.
    fn lower(&mut self, cx: &LoweringContext<'_>) -> Result<Lowered>;
}

/// The instruction to lower.
#[derive(Clone, Copy, Debug)]
pub struct LoweringContext<'a> {
    /// The module.
    pub module: &'a Module,
    /// Its computation that the instruction is in.
    pub computation: CompId,
    /// The instruction.
    pub instruction: InstrId,
    /// Array leaves of the operands: one operand after the other, each depth first.
    pub operands: &'a [ArraySlice],
    /// Array leaves of the result, depth first.
    pub results: &'a [ArraySlice],
}

impl<'a> LoweringContext<'a> {
    /// The computation that the instruction is in.
    pub fn computation(&self) -> &'a Computation {
        &self.module[self.computation]
    }

    /// The instruction.
    pub fn instruction(&self) -> &'a Instruction {
        &self.computation()[self.instruction]
    }

    /// Whether a result has bytes in common with an operand.
    pub fn overwrites(&self) -> bool {
        self.results.iter().any(|result| self.operands.iter().any(|operand| operand.slice.overlaps(&result.slice)))
    }
}

/// A backend's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lowered {
    /// A kernel to launch.
    Kernel(KernelRef),
    /// A call into a library.
    LibraryCall(LibraryRef),
    /// Nothing this backend does.
    NotMine,
}

impl<F: FnMut(&LoweringContext<'_>) -> Result<Lowered>> Lowering for F {
    fn lower(&mut self, cx: &LoweringContext<'_>) -> Result<Lowered> {
        self(cx)
    }
}
