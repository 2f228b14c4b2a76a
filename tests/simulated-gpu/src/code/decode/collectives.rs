//! Decoder of collective instructions: barriers, shuffles, votes, matrix loads and multiply-accumulates.

use super::decoder::{Decoder, Result};
use super::memory::MemoryAccess;
use crate::code::{Collective, Fragments, MatrixLoad, Op, ShuffleMode, Slot, Slots, TypeKind, VoteMode, alu};
use crate::ptx::{Operand, Space};

impl<'a> Decoder<'a> {
    pub(super) fn together(&mut self, opcode: &str, operands: &[Operand<'a>]) -> Result<()> {
        let parts: Vec<&str> = opcode.split('.').collect();
        let word = self.ty("b32")?;
        let collective = match (&parts[..], operands) {
            (["bar", "warp", "sync"], [mask]) => Collective::Sync { mask: self.value(mask, word)? },
            (
                ["bar", "sync"]
                | ["bar", "cta", "sync"]
                | ["barrier", "sync", "aligned"]
                | ["barrier", "cta", "sync", "aligned"],
                _,
            ) => {
                return self.barrier(opcode, operands, true);
            }
            (["barrier", "sync"] | ["barrier", "cta", "sync"], _) => return self.barrier(opcode, operands, false),
            (["shfl", "sync", mode, "b32"], [d, a, b, c, mask]) => {
                let mode = match *mode {
                    "up" => ShuffleMode::Up,
                    "down" => ShuffleMode::Down,
                    "bfly" => ShuffleMode::Butterfly,
                    "idx" => ShuffleMode::Index,
                    _ => return self.unknown(opcode),
                };
                let (d, p) = self.pair(d)?;
                let [a, b] = [self.value(a, word)?, self.value(b, word)?];
                Collective::Shuffle { mode, d, p, a, b, c: self.value(c, word)?, mask: self.value(mask, word)? }
            }
            (["vote", "sync", mode, "pred" | "b32"], [d, a, mask]) => {
                let mode = match *mode {
                    "all" => VoteMode::All,
                    "any" => VoteMode::Any,
                    "uni" => VoteMode::Uniform,
                    "ballot" => VoteMode::Ballot,
                    _ => return self.unknown(opcode),
                };
                let a = self.predicate(a)?;
                Collective::Vote { mode, d: self.result(d)?, a, mask: self.value(mask, word)? }
            }
            (["match", mode @ ("any" | "all"), "sync", ty @ ("b32" | "b64")], [d, a, mask]) => {
                let ty = self.ty(ty)?;
                let (d, p) = self.pair(d)?;
                let (a, mask) = (self.value(a, ty)?, self.value(mask, word)?);
                Collective::Match { all: *mode == "all", d, p, a, bits: ty.bits, mask }
            }
            (["redux", "sync", action, ty], [d, a, mask]) => {
                let Some(found) = alu::find(&format!("{action}.{ty}")) else { return self.unknown(opcode) };
                let (a, mask) = (self.value(a, word)?, self.value(mask, word)?);
                Collective::Reduce { run: found.run, d: self.result(d)?, a, mask }
            }
            (["ldmatrix", "sync", "aligned", "m8n8", count, rest @ ..], [d, Operand::Address(base, offset)]) => {
                let (transposed, rest) = match rest {
                    ["trans", rest @ ..] => (true, rest),
                    rest => (false, rest),
                };
                let ["shared" | "shared::cta", "b16"] = rest else { return self.unknown(opcode) };
                return self.load_matrices(opcode, count, d, (base, *offset), transposed);
            }
            (["mma", "sync", "aligned", shape, "row", "col", d, a, b, c], _) if a == b && d == c => {
                return self.mma(opcode, shape, [a, d], operands);
            }
            _ => return self.unknown(opcode),
        };
        self.collective(collective);
        Ok(())
    }

    /// Decodes `bar.sync id` and `bar.sync id, count`.
    fn barrier(&mut self, opcode: &str, operands: &[Operand<'a>], aligned: bool) -> Result<()> {
        let word = self.ty("b32")?;
        let (id, count) = match operands {
            [id] => (self.value(id, word)?, self.constant(0)),
            [id, count] => (self.value(id, word)?, self.value(count, word)?),
            _ => return self.unknown(opcode),
        };
        self.push(Op::Barrier { id, count, aligned });
        self.kernel.waits = true;
        Ok(())
    }

    /// Returns the slots of a result `d|p`, or of `d` alone.
    fn pair(&mut self, operand: &Operand<'a>) -> Result<(Slot, Slot)> {
        match operand {
            Operand::Pair(d, p) => Ok((self.result(&Operand::Name(d))?, self.result(&Operand::Name(p))?)),
            d => Ok((self.result(d)?, self.result(&Operand::Name("_"))?)),
        }
    }

    fn load_matrices(
        &mut self,
        opcode: &str,
        count: &str,
        d: &Operand<'a>,
        (base, offset): (&Operand<'a>, i64),
        transposed: bool,
    ) -> Result<()> {
        let registers = match d {
            Operand::Vector(registers) => registers.as_slice(),
            other => std::slice::from_ref(other),
        };
        let Some(access) = MemoryAccess::plain(Space::Shared, if transposed { "b16" } else { "b32" }) else {
            return self.unknown(opcode);
        };
        if !matches!((count, registers.len()), ("x1", 1) | ("x2", 2) | ("x4", 4)) {
            return self.unknown(opcode);
        }
        let d = registers.iter().map(|d| self.result(d)).collect::<Result<Vec<_>>>()?;
        let (row, d) = (self.place(&access, base, offset)?, self.slots(&d));
        self.collective(Collective::LoadMatrices(MatrixLoad { row, transposed, d }));
        Ok(())
    }

    fn mma(&mut self, opcode: &str, shape: &str, types: [&str; 2], operands: &[Operand<'a>]) -> Result<()> {
        let [factors, sums] = [self.ty(types[0])?, self.ty(types[1])?];
        let depth = match (shape, factors.kind) {
            ("m16n8k4", TypeKind::Tensor) => 4,
            ("m16n8k8", _) => 8,
            ("m16n8k16", TypeKind::Float | TypeKind::Brain) => 16,
            _ => return self.unknown(opcode),
        };
        let fits = matches!(
            (factors.kind, factors.bits, sums.kind, sums.bits),
            (TypeKind::Float | TypeKind::Brain, 16, TypeKind::Float, 32)
                | (TypeKind::Float, 16, TypeKind::Float, 16)
                | (TypeKind::Tensor, 32, TypeKind::Float, 32)
        );
        let [Operand::Vector(d), Operand::Vector(a), Operand::Vector(b), Operand::Vector(c)] = operands else {
            return self.unknown(opcode);
        };
        let sum_registers = if sums.bits == 32 { 4 } else { 2 };
        let in_a_register = 32 / factors.bits.max(1) as usize;
        let lengths = [d.len(), a.len(), b.len(), c.len()];
        let expected = [sum_registers, depth / 2 / in_a_register, depth / 4 / in_a_register, sum_registers];
        if !fits || factors.count != 1 || lengths != expected {
            return self.unknown(opcode);
        }
        let fragments = Fragments { depth, factors, sums };
        let d = d.iter().map(|d| self.result(d)).collect::<Result<Vec<_>>>()?;
        let mut sources = [Slots::default(); 3];
        for (slots, operands) in sources.iter_mut().zip([a, b, c]) {
            let word = self.ty("b32")?;
            let values = operands.iter().map(|operand| self.value(operand, word)).collect::<Result<Vec<_>>>()?;
            *slots = self.slots(&values);
        }
        let [a, b, c] = sources;
        let d = self.slots(&d);
        self.collective(Collective::Mma { fragments, d, a, b, c });
        Ok(())
    }
}
