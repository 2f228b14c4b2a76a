//! Lowering trait: device code for one instruction, or none.

use xla_hlo::{CompId, Computation, InstrId, Instruction, Module, Result};
use xla_passes::buffers::Slice;

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

    /// Lowers a whole loop to one kernel, which runs its [rounds](LoopContext::rounds); `None` where condition and body
    /// are better lowered one instruction at a time, which is what is asked for next. Asked for loops in which nothing
    /// but computations and copies happens.
    fn lower_loop(&mut self, cx: &LoopContext<'_>) -> Result<Option<KernelRef>> {
        let _ = cx;
        Ok(None)
    }
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

/// A loop to lower as a whole. Its state stays where it is, as that of [`ThunkKind::While`](super::ThunkKind::While).
#[derive(Clone, Copy, Debug)]
pub struct LoopContext<'a> {
    /// The module.
    pub module: &'a Module,
    /// Its computation that the loop is in.
    pub computation: CompId,
    /// The loop.
    pub instruction: InstrId,
    /// The steps that compute the predicate, in the order of the schedule; none where rounds are counted.
    pub condition: &'a [LoopStep],
    /// The steps that compute the next state, in the order of the schedule.
    pub body: &'a [LoopStep],
    /// The place of the predicate: one byte, 0 or 1, which is there after the condition.
    pub predicate: Slice,
    /// The rounds of one launch.
    pub rounds: LoopRounds,
    /// Arrays that the loop reads, each place once; the predicate is among them unless rounds are counted.
    pub operands: &'a [ArraySlice],
    /// Arrays that the loop writes, each place once.
    pub results: &'a [ArraySlice],
}

/// Rounds of a loop in one launch of its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopRounds {
    /// The body so many times.
    Counted(u64),
    /// The condition, then, while the predicate is 1, body and condition again, the body at most so many times. The
    /// predicate stays in its place: the kernel is launched again where it is 1.
    Tested {
        /// Rounds of one launch, at least one.
        at_most: u64,
    },
}

/// An instruction in a loop that does something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopStep {
    /// The computation that the instruction is in.
    pub computation: CompId,
    /// The instruction.
    pub instruction: InstrId,
    /// Array leaves of the operands, as in a [`LoweringContext`].
    pub operands: Vec<ArraySlice>,
    /// Array leaves of the result.
    pub results: Vec<ArraySlice>,
    /// Whether it only copies the bytes of operand 0 to result 0, which have the same size and never overlap in part.
    pub copies: bool,
}

impl LoopStep {
    /// The instruction as one to lower.
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
