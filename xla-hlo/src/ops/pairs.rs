//! Pairs of asynchronous opcodes: start operations and the done operations that wait for them.

use super::Opcode;

impl Opcode {
    /// Returns the opcodes that may use the result of this start operation, which must have exactly one user. Empty for
    /// operations that are not a start.
    ///
    /// The result of a send or receive may also pass through a tuple, for example into a loop, and be awaited there.
    pub const fn done_opcodes(self) -> &'static [Opcode] {
        match self {
            Opcode::AsyncStart | Opcode::AsyncUpdate => &[Opcode::AsyncUpdate, Opcode::AsyncDone],
            Opcode::CopyStart => &[Opcode::CopyDone],
            Opcode::AllReduceStart => &[Opcode::AllReduceDone],
            Opcode::AllGatherStart => &[Opcode::AllGatherDone],
            Opcode::CollectivePermuteStart => &[Opcode::CollectivePermuteDone],
            Opcode::Send => &[Opcode::SendDone, Opcode::Tuple],
            Opcode::Recv => &[Opcode::RecvDone, Opcode::Tuple],
            _ => &[],
        }
    }

    /// Returns the opcodes that may produce operand 0 of this done operation. Empty for operations that wait for
    /// nothing.
    pub const fn start_opcodes(self) -> &'static [Opcode] {
        match self {
            Opcode::AsyncUpdate | Opcode::AsyncDone => &[Opcode::AsyncStart, Opcode::AsyncUpdate],
            Opcode::CopyDone => &[Opcode::CopyStart],
            Opcode::AllReduceDone => &[Opcode::AllReduceStart],
            Opcode::AllGatherDone => &[Opcode::AllGatherStart],
            Opcode::CollectivePermuteDone => &[Opcode::CollectivePermuteStart],
            Opcode::SendDone => &[Opcode::Send, Opcode::GetTupleElement],
            Opcode::RecvDone => &[Opcode::Recv, Opcode::GetTupleElement],
            _ => &[],
        }
    }
}
