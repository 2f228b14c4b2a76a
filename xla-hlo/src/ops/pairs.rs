//! Start and done: opcodes that start an operation, and those that wait for it.

use super::Opcode;

impl Opcode {
    /// Opcodes that may use the result of this operation, which starts something: it must be used exactly once. Empty
    /// for operations that are complete in themselves.
    ///
    /// A send or receive may also go through a tuple, into a loop for instance, and be done there.
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

    /// Opcodes of operand 0 of this done operation. Empty for operations that wait for nothing.
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
