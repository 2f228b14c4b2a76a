//! Lowering trait: compiles one instruction to device code, or leaves it to the host.

use xla_hlo::{CompId, Computation, InstrId, Instruction, Module, Result};
use xla_passes::buffers::Slice;

use super::{ArraySlice, KernelRef, LibraryRef};

/// Lowering of scheduled instructions to device code, one at a time.
///
/// # Contract
///
/// - **Called for** every instruction that computes something, in the order of the schedule, callees at their call
///   sites: mostly fusions. Not called for parameters, constants, tuples, control flow, and copies and bitcasts that
///   preserve the order of bytes.
/// - **Checked by the caller:** the module is verified and scheduled; operands and results have the shapes and layouts
///   of the instruction, one slice for each array leaf.
/// - **Aliasing:** a result's slice may equal an operand's slice if the operation reads each element before it writes
///   the same element, or updates the operand in place; see [`xla_passes::buffers`]. Otherwise the slices are disjoint.
/// - **[`Lowered::NotMine`]** is not an error: the host fallback runs the instruction, or the service reports it.
///   Errors are for operations that the backend supports but fails to compile; the service adds the instruction's name.
pub trait Lowering {
    /// Lowers one instruction. Kernels and library calls are stored in the backend's own table; the sequence holds the
    /// reference.
    fn lower(&mut self, cx: &LoweringContext<'_>) -> Result<Lowered>;

    /// Whether the backend's executables run programs of several devices, see
    /// [`Compiler::has_collectives`](crate::Compiler::has_collectives). Collectives are then lowered like other
    /// instructions; the service executes those that are [`Lowered::NotMine`], and those whose library the launcher
    /// does not find. Otherwise collectives among several devices are errors that name the instruction.
    fn has_collectives(&self) -> bool {
        false
    }

    /// Lowers a whole loop to one kernel, which runs its [iterations](LoopContext::rounds). `None` if condition and
    /// body should be lowered one instruction at a time, which the service does next. Called for loops that contain
    /// only computations and copies.
    fn lower_loop(&mut self, cx: &LoopContext<'_>) -> Result<Option<KernelRef>> {
        let _ = cx;
        Ok(None)
    }
}

/// Instruction to lower.
#[derive(Clone, Copy, Debug)]
pub struct LoweringContext<'a> {
    /// Module that contains the instruction.
    pub module: &'a Module,
    /// Computation that contains the instruction.
    pub computation: CompId,
    /// Instruction to lower.
    pub instruction: InstrId,
    /// Array leaves of the operands: operand by operand, each depth first.
    pub operands: &'a [ArraySlice],
    /// Array leaves of the result, depth first.
    pub results: &'a [ArraySlice],
}

impl<'a> LoweringContext<'a> {
    /// Returns the computation that contains the instruction.
    pub fn computation(&self) -> &'a Computation {
        &self.module[self.computation]
    }

    /// Returns the instruction.
    pub fn instruction(&self) -> &'a Instruction {
        &self.computation()[self.instruction]
    }

    /// Whether a result overlaps an operand in memory.
    pub fn overwrites(&self) -> bool {
        self.results.iter().any(|result| self.operands.iter().any(|operand| operand.slice.overlaps(&result.slice)))
    }
}

/// Loop to lower as a whole. Its state is updated in place, as for [`ThunkKind::While`](super::ThunkKind::While).
#[derive(Clone, Copy, Debug)]
pub struct LoopContext<'a> {
    /// Module that contains the loop.
    pub module: &'a Module,
    /// Computation that contains the loop.
    pub computation: CompId,
    /// The loop instruction.
    pub instruction: InstrId,
    /// Steps that compute the predicate, in the order of the schedule; empty if iterations are counted.
    pub condition: &'a [LoopStep],
    /// Steps that compute the next state, in the order of the schedule.
    pub body: &'a [LoopStep],
    /// Location of the predicate: one byte, 0 or 1, which the condition writes.
    pub predicate: Slice,
    /// Iterations of one launch.
    pub rounds: LoopRounds,
    /// Arrays that the loop reads, each slice once; includes the predicate unless iterations are counted.
    pub operands: &'a [ArraySlice],
    /// Arrays that the loop writes, each slice once.
    pub results: &'a [ArraySlice],
}

/// Iterations of a loop in one launch of its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopRounds {
    /// Runs the body this number of times.
    Counted(u64),
    /// Runs the condition; while the predicate is 1, runs body and condition again, with a limit on the number of body
    /// runs. The predicate stays in memory: if it is still 1, the kernel is launched again.
    Tested {
        /// Maximum number of iterations in one launch, at least one.
        at_most: u64,
    },
}

/// Instruction in a loop that computes or copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopStep {
    /// Computation that contains the instruction.
    pub computation: CompId,
    /// Instruction of the step.
    pub instruction: InstrId,
    /// Array leaves of the operands, as in a [`LoweringContext`].
    pub operands: Vec<ArraySlice>,
    /// Array leaves of the result.
    pub results: Vec<ArraySlice>,
    /// Whether the step only copies the bytes of operand 0 to result 0, which have equal sizes and never overlap
    /// partially.
    pub copies: bool,
}

impl LoopStep {
    /// Returns the lowering context of the instruction.
    pub fn context<'a>(&'a self, module: &'a Module) -> LoweringContext<'a> {
        LoweringContext {
            module,
            computation: self.computation,
            instruction: self.instruction,
            operands: &self.operands,
            results: &self.results,
        }
    }
}

/// Result of lowering an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lowered {
    /// Kernel to launch.
    Kernel(KernelRef),
    /// Call of a library.
    LibraryCall(LibraryRef),
    /// Collective that [`Launcher::collective`](super::Launcher::collective) executes, by the name of the library's
    /// operation. Only for collectives among several devices.
    Collective(String),
    /// Not supported by this backend.
    NotMine,
}

impl<F: FnMut(&LoweringContext<'_>) -> Result<Lowered>> Lowering for F {
    fn lower(&mut self, cx: &LoweringContext<'_>) -> Result<Lowered> {
        self(cx)
    }
}
