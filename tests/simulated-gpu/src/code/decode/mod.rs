//! Decoder of a kernel: converts its syntax tree to instructions.

mod asynchronous;
mod calls;
mod collectives;
mod copies;
mod decoder;
mod memory;
mod warp_group;

use std::collections::HashMap;

use super::{Approximations, Kernel, Op, POISON, Slot, Type, TypeKind, alu, integer};
use crate::ptx::{self, Function, Module, Operand, Space, Statement};
use decoder::{Callee, Decoder, Result};

/// Decodes a kernel. `globals` maps the module's variables to device addresses.
pub fn decode<'a>(
    module: &Module<'a>,
    function: &Function<'a>,
    globals: &'a HashMap<String, u64>,
    approximations: Approximations,
) -> Result<Kernel> {
    let mut decoder = Decoder::new(function, module.target, globals, approximations);
    decoder.lay_out_parameters(function)?;
    module.variables.iter().filter(|v| v.space == Space::Shared).try_for_each(|variable| decoder.declare(variable))?;
    for callee in module.functions.iter().filter(|callee| !callee.is_entry) {
        decoder.callees.insert(callee.name.to_owned(), Callee::of(callee));
    }
    decoder.body(function.body.as_deref().unwrap_or_default())?;
    decoder.finish(function.line)
}

impl<'a> Decoder<'a> {
    fn body(&mut self, statements: &[Statement<'a>]) -> Result<()> {
        for statement in statements {
            match statement {
                Statement::Open => self.open_scope(),
                Statement::Close => self.close_scope(),
                Statement::Declare(variable) => self.declare(variable)?,
                Statement::Label(name) => self.label(name)?,
                Statement::Instruction(instruction) => self.instruction(instruction)?,
            }
        }
        Ok(())
    }

    fn instruction(&mut self, instruction: &ptx::Instruction<'a>) -> Result<()> {
        self.line = instruction.line;
        let first = self.kernel.code.len();
        let (opcode, operands) = (instruction.opcode, instruction.operands.as_slice());
        let name = opcode.split('.').next().unwrap_or_default();
        match (name, operands) {
            ("bra", [Operand::Name(label)]) => self.branch(label),
            ("ret" | "exit", []) => self.push(Op::Return),
            ("trap", []) => self.push(Op::Trap),
            ("fence", _) if opcode.starts_with("fence.proxy.") || opcode.starts_with("fence.mbarrier_init.") => {
                self.proxy_fence(opcode)?;
            }
            ("membar" | "fence" | "nanosleep", _) => self.push(Op::Nothing),
            ("mbarrier", _) => self.phase_barrier(opcode, operands)?,
            ("prefetch", _) => self.prefetch(opcode, operands)?,
            ("wgmma", _) => self.warp_group(opcode, operands)?,
            ("setmaxnreg", [Operand::Integer(registers)]) => self.registers(opcode, *registers)?,
            ("cp", _) if opcode.starts_with("cp.async.bulk.") => self.bulk_copy(opcode, operands)?,
            ("call", _) => self.call(operands)?,
            ("ld" | "st" | "atom" | "red" | "cvta" | "isspacep", _) => self.memory(opcode, operands)?,
            ("cp", _) => self.copy(opcode, operands)?,
            ("bar" | "barrier", _) | ("shfl" | "vote" | "match" | "redux" | "mma" | "ldmatrix" | "activemask", _) => {
                self.together(opcode, operands)?;
            }
            _ => self.compute(opcode, operands)?,
        }
        if let Some((predicate, negated)) = instruction.guard {
            let guard = self.register(predicate)?;
            for made in &mut self.kernel.code[first..] {
                (made.guard, made.negated) = (guard, negated);
            }
        }
        Ok(())
    }

    /// Decodes an arithmetic instruction; returns an error if the opcode is unknown.
    fn compute(&mut self, opcode: &str, operands: &[Operand<'a>]) -> Result<()> {
        if let ["mov", ty] = *opcode.split('.').collect::<Vec<_>>() {
            match (operands, Type::parse(ty)) {
                ([Operand::Vector(parts), from], Some(ty)) => return self.split(parts, from, ty),
                ([into, Operand::Vector(parts)], Some(ty)) => return self.join(into, parts, ty),
                ([into, from], Some(ty)) if ty.kind != TypeKind::Predicate && ty.count == 1 => {
                    return self.move_value(into, from, ty);
                }
                _ => {}
            }
        }
        match (opcode, operands) {
            ("lop3.b32", [d, a, b, c, Operand::Integer(table)]) => {
                let ty = self.ty("b32")?;
                let abc = [self.value(a, ty)?, self.value(b, ty)?, self.value(c, ty)?];
                let op = Op::Lop3 { d: self.result(d)?, abc, table: *table as u8 };
                self.push(op);
                return Ok(());
            }
            ("bfi.b32" | "bfi.b64", [d, a, b, start, length]) => {
                return self.insert_bits(opcode, d, [a, b, start, length]);
            }
            _ => {}
        }
        if let ([d, upper, lower], Some(opcode)) = (operands, alu::halves_of_pair(opcode)) {
            return self.convert_pair(&opcode, d, [lower, upper]);
        }
        if opcode.starts_with("setp.") && operands.len() >= 3 {
            return self.compare(opcode, operands);
        }
        let Some(found) = alu::find(opcode) else { return self.unknown(opcode) };
        let Some((d, sources)) = operands.split_first() else { return self.unknown(opcode) };
        if sources.len() != found.operands {
            return self.unknown(opcode);
        }
        let mut abc = [0; 3];
        for (slot, source) in abc.iter_mut().zip(sources) {
            *slot = self.value(source, found.ty)?;
        }
        if let Some(extra) = found.extra {
            abc[found.operands] = self.constant(extra);
        }
        let d = self.result(d)?;
        self.push(match found.packed {
            Some(bits) => Op::Packed { run: found.run, d, abc, bits },
            None => Op::Alu { run: found.run, d, abc },
        });
        if let Some((run, number)) = self.approximations.error(opcode) {
            let abc = [d, self.constant(number), 0];
            self.push(Op::Alu { run, d, abc });
        }
        Ok(())
    }

    /// Decodes `setp`. In `setp.lt.and.f32 p|q, a, b, c`, `q` is computed from the negated comparison. In
    /// `setp.gt.f16x2 p|q, a, b`, `p` compares the lower halves and `q` the upper halves.
    fn compare(&mut self, opcode: &str, operands: &[Operand<'a>]) -> Result<()> {
        let parts: Vec<&str> = opcode.split('.').collect();
        let Some(ty) = parts.last().and_then(|ty| Type::parse(ty)) else { return self.unknown(opcode) };
        let Some(run) = alu::comparison(parts[1], Type { count: 1, ..ty }) else { return self.unknown(opcode) };
        let ab = [self.value(&operands[1], ty)?, self.value(&operands[2], ty)?];
        let (p, q) = match operands[0] {
            Operand::Pair(p, q) => (self.result(&Operand::Name(p))?, Some(self.result(&Operand::Name(q))?)),
            ref p => (self.result(p)?, None),
        };
        if ty.count == 2 && q.is_none() {
            return self.unknown(opcode);
        }
        // A result register may also be an operand.
        let compared: Vec<Slot> = (0..ty.count).map(|_| self.fresh(POISON)).collect();
        let elements = ab.map(|whole| match ty.count {
            1 => vec![whole],
            _ => self.halves(whole, ty),
        });
        for ((&d, &a), &b) in compared.iter().zip(&elements[0]).zip(&elements[1]) {
            self.push(Op::Alu { run, d, abc: [a, b, 0] });
        }
        let other = match (&parts[2..parts.len() - 1], operands.get(3)) {
            ([], None) => None,
            ([combine], Some(with)) => match integer::predicate(combine) {
                Some(combine) => Some((combine, self.predicate(with)?)),
                None => return self.unknown(opcode),
            },
            _ => return self.unknown(opcode),
        };
        let (run, with): (super::Run, _) = other.unwrap_or((|a, _, _| a, 0));
        // If `c` and `p` are one register, the second result would need the old value; compilers do not emit this.
        self.push(Op::Alu { run, d: p, abc: [compared[0], with, 0] });
        if let Some(q) = q {
            let second = compared[compared.len() - 1];
            if ty.count == 1 {
                self.push(Op::Alu { run: |a, _, _| !a & 1, d: second, abc: [second, 0, 0] });
            }
            self.push(Op::Alu { run, d: q, abc: [second, with, 0] });
        }
        Ok(())
    }

    /// Splits a register that holds a pair into its elements, the lower one first.
    fn halves(&mut self, whole: Slot, ty: Type) -> Vec<Slot> {
        let parts: Vec<Slot> = (0..ty.count).map(|_| self.fresh(POISON)).collect();
        let into = self.slots(&parts);
        self.push(Op::Split { from: whole, into, bits: ty.bits });
        parts
    }

    /// Decodes `bfi d, a, b, start, length`; the last two operands are packed into one slot.
    fn insert_bits(&mut self, opcode: &str, d: &Operand<'a>, from: [&Operand<'a>; 4]) -> Result<()> {
        let ty = self.ty("b32")?;
        let wide = self.ty(&opcode[4..])?;
        let [a, b] = [self.value(from[0], wide)?, self.value(from[1], wide)?];
        let [start, length] = [self.value(from[2], ty)?, self.value(from[3], ty)?];
        let both = self.fresh(POISON);
        self.push(Op::Alu { run: |s, l, _| s & 0xffff_ffff | l << 32, d: both, abc: [start, length, 0] });
        let run = if wide.bits == 32 { integer::insert::<32> } else { integer::insert::<64> };
        let d = self.result(d)?;
        self.push(Op::Alu { run, d, abc: [a, b, both] });
        Ok(())
    }

    /// Decodes `cvt.rn.bf16x2.f32 d, upper, lower` as two scalar conversions.
    fn convert_pair(&mut self, opcode: &str, d: &Operand<'a>, from: [&Operand<'a>; 2]) -> Result<()> {
        let Some(found) = alu::find(opcode) else { return self.unknown(opcode) };
        let how = self.constant(found.extra.unwrap_or(0));
        let mut halves = [0; 2];
        for (half, operand) in halves.iter_mut().zip(from) {
            let from = self.value(operand, found.ty)?;
            *half = self.fresh(POISON);
            self.push(Op::Alu { run: found.run, d: *half, abc: [from, how, 0] });
        }
        let (from, into) = (self.slots(&halves), self.result(d)?);
        self.push(Op::Join { into, from, bits: 16 });
        Ok(())
    }

    /// Decodes a move from a register, a number, or the address of a variable or kernel parameter.
    fn move_value(&mut self, into: &Operand<'a>, from: &Operand<'a>, ty: Type) -> Result<()> {
        let from = match from {
            Operand::Name(name) => self.address_of(name)?,
            from => self.value(from, ty)?,
        };
        let d = self.result(into)?;
        self.push(Op::Move { d, from });
        Ok(())
    }

    fn split(&mut self, parts: &[Operand<'a>], from: &Operand<'a>, ty: Type) -> Result<()> {
        let bits = self.part_bits(parts, ty)?;
        let from = self.value(from, ty)?;
        let into = parts.iter().map(|part| self.result(part)).collect::<Result<Vec<_>>>()?;
        let into = self.slots(&into);
        self.push(Op::Split { from, into, bits });
        Ok(())
    }

    fn join(&mut self, into: &Operand<'a>, parts: &[Operand<'a>], ty: Type) -> Result<()> {
        let bits = self.part_bits(parts, ty)?;
        let part = Type { bits, ..ty };
        let from = parts.iter().map(|operand| self.value(operand, part)).collect::<Result<Vec<_>>>()?;
        let from = self.slots(&from);
        let into = self.result(into)?;
        self.push(Op::Join { into, from, bits });
        Ok(())
    }

    fn part_bits(&self, parts: &[Operand<'_>], ty: Type) -> Result<u32> {
        match parts.len() {
            2 | 4 if ty.bits <= 64 => Ok(ty.bits / parts.len() as u32),
            _ => self.error("a vector of that many parts"),
        }
    }
}
