//! Decoder of `cp.async` and its groups and waits.

use super::decoder::{Decoder, Result};
use super::memory::MemoryAccess;
use crate::code::{ALL_COPIES, Op};
use crate::ptx::{Operand, Space};

impl<'a> Decoder<'a> {
    pub(super) fn copy(&mut self, opcode: &str, operands: &[Operand<'a>]) -> Result<()> {
        let parts: Vec<&str> = opcode.split('.').collect();
        match (&parts[..], operands) {
            (["cp", "async", "commit_group"], []) => self.push(Op::EndCopyGroup),
            (["cp", "async", "wait_all"], []) => self.push(Op::WaitForCopies(ALL_COPIES)),
            (["cp", "async", "wait_group"], [Operand::Integer(pending)]) => {
                let Some(pending) = u32::try_from(*pending).ok().filter(|&pending| pending != ALL_COPIES) else {
                    return self.error("a number of groups has 32 bits");
                };
                self.push(Op::WaitForCopies(pending));
            }
            (
                ["cp", "async", cache @ ("ca" | "cg"), "shared" | "shared::cta", "global", hints @ ..],
                [
                    Operand::Address(to, to_offset),
                    Operand::Address(from, from_offset),
                    Operand::Integer(bytes),
                    read @ ..,
                ],
            ) if hints.iter().all(|hint| hint.starts_with("L2::")) => {
                let bytes = match (*cache, *bytes) {
                    ("ca", bytes @ (4 | 8 | 16)) | ("cg", bytes @ 16) => bytes as u32,
                    _ => return self.unknown(opcode),
                };
                let read = match read {
                    [] => self.constant(u64::from(bytes)),
                    [read @ (Operand::Name(_) | Operand::Integer(_))] => self.value(read, self.ty("u32")?)?,
                    _ => return self.unknown(opcode),
                };
                // Accesses of a copy are checked in words of 32 bits.
                let access = |space| MemoryAccess::plain(space, "b32").map_or_else(|| self.unknown(opcode), Ok);
                let (shared, global) = (access(Space::Shared)?, access(Space::Global)?);
                let to = self.place(&shared, to, *to_offset)?;
                let from = self.place(&global, from, *from_offset)?;
                self.push(Op::CopyAsync { to, from, bytes, read });
            }
            _ => return self.unknown(opcode),
        }
        Ok(())
    }
}
