//! From the syntax tree of a kernel to instructions.

use std::collections::HashMap;

use super::calls::Callee;
use super::{
    ALWAYS, Collective, Granules, Instruction, Kernel, Op, POISON, Slot, Slots, Special, Type, alu, expected, integer,
};
use crate::ptx::{self, Function, Module, Operand, Space, Statement, SyntaxError, Variable};

pub(super) type Result<T> = std::result::Result<T, SyntaxError>;

/// The most threads of a block, whatever a kernel says.
const MOST_THREADS: u64 = 1024;

/// Decodes a kernel. `globals` are the addresses of the module's variables in the device's memory.
pub fn decode(module: &Module<'_>, function: &Function<'_>, globals: &HashMap<String, u64>) -> Result<Kernel> {
    let mut decoder = Decoder::new(function, globals);
    decoder.lay_out_parameters(function)?;
    module.variables.iter().filter(|v| v.space == Space::Shared).try_for_each(|variable| decoder.declare(variable))?;
    for callee in module.functions.iter().filter(|callee| !callee.is_entry) {
        decoder.callees.insert(callee.name.to_owned(), Callee::of(callee));
    }
    decoder.body(function.body.as_deref().unwrap_or_default())?;
    decoder.finish(function.line)
}

/// A kernel that grows.
pub(super) struct Decoder<'a> {
    pub(super) kernel: Kernel,
    /// What names stand for, by scope; the last one is the innermost.
    scopes: Vec<HashMap<&'a str, Symbol>>,
    constants: HashMap<u64, Slot>,
    specials: HashMap<&'a str, Slot>,
    globals: &'a HashMap<String, u64>,
    pub(super) callees: HashMap<String, Callee>,
    labels: HashMap<&'a str, u32>,
    /// Branches to labels that come later: instruction, label, line.
    forward: Vec<(usize, &'a str, u32)>,
    /// Names of dynamic shared memory, whose place is known when all other shared memory is.
    dynamic: Vec<Slot>,
    /// Atomic exchanges: their instructions.
    pub(super) exchanges: Vec<usize>,
    pub(super) line: u32,
}

#[derive(Clone, Copy)]
enum Symbol {
    /// Registers with numbers: how many, and the slots of those that were met, which start here.
    Registers { count: u64 },
    /// A register, or a parameter of a call.
    Slot(Slot),
    /// The kernel's parameter of that number.
    Parameter(usize),
}

impl<'a> Decoder<'a> {
    fn new(function: &Function<'_>, globals: &'a HashMap<String, u64>) -> Decoder<'a> {
        let kernel = Kernel {
            name: function.name.to_owned(),
            code: Vec::new(),
            lines: Vec::new(),
            image: Vec::new(),
            specials: Vec::new(),
            lists: Vec::new(),
            collectives: Vec::new(),
            parameters: Vec::new(),
            shared_bytes: 0,
            local_bytes: 0,
            most_threads: function.most_threads.unwrap_or(MOST_THREADS).min(MOST_THREADS) as u32,
            granules: Granules { global: 2, shared: 2 },
            waits: false,
        };
        Decoder {
            kernel,
            scopes: vec![HashMap::new()],
            constants: HashMap::new(),
            specials: HashMap::new(),
            globals,
            callees: HashMap::new(),
            labels: HashMap::new(),
            forward: Vec::new(),
            dynamic: Vec::new(),
            exchanges: Vec::new(),
            line: function.line,
        }
    }

    pub(super) fn error<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(SyntaxError::new(self.line, message))
    }

    fn lay_out_parameters(&mut self, function: &Function<'a>) -> Result<()> {
        let mut end = 0u64;
        for (number, parameter) in function.parameters.iter().enumerate() {
            let (bytes, align) = self.size_of(parameter)?;
            let start = end.next_multiple_of(align);
            end = start + bytes;
            if end > 32_764 {
                return self.error("parameters take more than 32764 bytes");
            }
            self.kernel.parameters.push((start as usize, bytes as usize));
            self.bind(parameter.name, Symbol::Parameter(number));
        }
        Ok(())
    }

    /// Bytes and alignment of a variable.
    fn size_of(&self, variable: &Variable<'_>) -> Result<(u64, u64)> {
        let Some(ty) = Type::parse(variable.element) else {
            return self.error(format!("`.{}` is no type", variable.element));
        };
        let align = variable.align.unwrap_or(ty.bytes());
        if !align.is_power_of_two() || align > 1 << 12 {
            return self.error(format!("`{}` is aligned to {align}", variable.name));
        }
        match variable.count.unwrap_or(0).checked_mul(ty.bytes()).filter(|bytes| *bytes <= 1 << 32) {
            Some(bytes) => Ok((bytes, align)),
            None => self.error(format!("`{}` is too big", variable.name)),
        }
    }

    fn bind(&mut self, name: &'a str, symbol: Symbol) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, symbol);
        }
    }

    fn declare(&mut self, variable: &Variable<'a>) -> Result<()> {
        self.line = variable.line;
        match variable.space {
            Space::Register if variable.is_numbered => {
                self.bind(variable.name, Symbol::Registers { count: variable.count.unwrap_or(0) });
            }
            Space::Register => {
                let slot = self.fresh(POISON);
                self.bind(variable.name, Symbol::Slot(slot));
            }
            Space::Param if variable.count == Some(1) => {
                let slot = self.fresh(POISON);
                self.bind(variable.name, Symbol::Slot(slot));
            }
            Space::Shared => self.declare_shared(variable)?,
            Space::Local => {
                let (bytes, align) = self.size_of(variable)?;
                let start = (self.kernel.local_bytes as u64).next_multiple_of(align);
                self.kernel.local_bytes = (start + bytes) as usize;
                let slot = self.constant(start);
                self.bind(variable.name, Symbol::Slot(slot));
            }
            _ => return self.error(format!("`{}` cannot be declared here", variable.name)),
        }
        Ok(())
    }

    fn declare_shared(&mut self, variable: &Variable<'a>) -> Result<()> {
        let (bytes, align) = self.size_of(variable)?;
        let slot = if variable.count.is_none() || (variable.is_extern && bytes == 0) {
            let slot = self.fresh(0);
            self.dynamic.push(slot);
            slot
        } else {
            let start = (self.kernel.shared_bytes as u64).next_multiple_of(align);
            self.kernel.shared_bytes = (start + bytes) as usize;
            self.constant(start)
        };
        self.bind(variable.name, Symbol::Slot(slot));
        Ok(())
    }

    fn body(&mut self, statements: &[Statement<'a>]) -> Result<()> {
        for statement in statements {
            match statement {
                Statement::Open => self.scopes.push(HashMap::new()),
                Statement::Close => drop(self.scopes.pop()),
                Statement::Declare(variable) => self.declare(variable)?,
                Statement::Label(name) => {
                    if self.labels.insert(name, self.kernel.code.len() as u32).is_some() {
                        return self.error(format!("the label {name} is there twice"));
                    }
                }
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
            ("bra", [Operand::Name(label)]) => {
                self.forward.push((first, label, self.line));
                self.push(Op::Branch(0));
            }
            ("ret" | "exit", []) => self.push(Op::Return),
            ("trap", []) => self.push(Op::Trap),
            ("membar" | "fence" | "nanosleep", _) => self.push(Op::Nothing),
            ("call", _) => self.call(operands)?,
            ("ld" | "st" | "atom" | "red" | "cvta" | "isspacep", _) => self.memory(opcode, operands)?,
            ("bar" | "barrier", _) | ("shfl" | "vote" | "match" | "redux" | "mma" | "activemask", _) => {
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

    /// The error for an instruction that is not known.
    pub(super) fn unknown<T>(&self, opcode: &str) -> Result<T> {
        self.error(format!("the instruction `{opcode}` is not known, or not with these operands"))
    }

    fn compute(&mut self, opcode: &str, operands: &[Operand<'a>]) -> Result<()> {
        if let ["mov", ty] = *opcode.split('.').collect::<Vec<_>>() {
            match (operands, Type::parse(ty)) {
                ([Operand::Vector(parts), from], Some(ty)) => return self.split(parts, from, ty),
                ([into, Operand::Vector(parts)], Some(ty)) => return self.join(into, parts, ty),
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
        Ok(())
    }

    /// `setp.lt.s32 p, a, b`, `setp.lt.and.f32 p|q, a, b, c`.
    fn compare(&mut self, opcode: &str, operands: &[Operand<'a>]) -> Result<()> {
        let parts: Vec<&str> = opcode.split('.').collect();
        let Some(ty) = parts.last().and_then(|ty| Type::parse(ty)).filter(|ty| ty.count == 1) else {
            return self.unknown(opcode);
        };
        let Some(run) = alu::comparison(parts[1], ty) else { return self.unknown(opcode) };
        let ab = [self.value(&operands[1], ty)?, self.value(&operands[2], ty)?];
        let (p, q) = match operands[0] {
            Operand::Pair(p, q) => (self.result(&Operand::Name(p))?, Some(self.result(&Operand::Name(q))?)),
            ref p => (self.result(p)?, None),
        };
        // Operands may be among the results.
        let compared = self.fresh(POISON);
        self.push(Op::Alu { run, d: compared, abc: [ab[0], ab[1], 0] });
        let other = match (&parts[2..parts.len() - 1], operands.get(3)) {
            ([], None) => None,
            ([combine], Some(with)) => match integer::predicate(combine) {
                Some(combine) => Some((combine, self.predicate(with)?)),
                None => return self.unknown(opcode),
            },
            _ => return self.unknown(opcode),
        };
        let mut give = |negated: bool, d| {
            if negated {
                let run = |a: u64, _, _| !a & 1;
                self.push(Op::Alu { run, d: compared, abc: [compared, 0, 0] });
            }
            let (run, with): (super::Run, _) = other.unwrap_or((|a, _, _| a, 0));
            self.push(Op::Alu { run, d, abc: [compared, with, 0] });
        };
        // Where `c` is `p`, the second result wants the old value: no compiler writes that.
        give(false, p);
        q.into_iter().for_each(|q| give(true, q));
        Ok(())
    }

    /// `bfi d, a, b, start, length`: the last two go as one operand.
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

    pub(super) fn push(&mut self, op: Op) {
        self.kernel.code.push(Instruction { guard: ALWAYS, negated: false, op });
        self.kernel.lines.push(self.line);
    }

    pub(super) fn collective(&mut self, collective: Collective) {
        self.push(Op::Collective(self.kernel.collectives.len() as u32));
        self.kernel.collectives.push(collective);
        self.kernel.waits = true;
    }

    pub(super) fn ty(&self, name: &str) -> Result<Type> {
        Type::parse(name).map_or_else(|| self.error(format!("`{name}` is no type")), Ok)
    }

    /// A new slot that starts with a value.
    pub(super) fn fresh(&mut self, value: u64) -> Slot {
        self.kernel.image.push(value);
        (self.kernel.image.len() - 1) as Slot
    }

    pub(super) fn constant(&mut self, value: u64) -> Slot {
        if let Some(slot) = self.constants.get(&value) {
            return *slot;
        }
        let slot = self.fresh(value);
        self.constants.insert(value, slot);
        slot
    }

    pub(super) fn slots(&mut self, slots: &[Slot]) -> Slots {
        let start = self.kernel.lists.len() as u32;
        self.kernel.lists.extend_from_slice(slots);
        Slots { start, count: slots.len() as u32 }
    }

    /// The slot of a result; `_` has one of its own.
    pub(super) fn result(&mut self, operand: &Operand<'a>) -> Result<Slot> {
        match operand {
            Operand::Name("_") => Ok(self.fresh(POISON)),
            Operand::Name(name) if name.starts_with('%') || self.find(name).is_some() => self.register(name),
            _ => self.error("a result must be a register"),
        }
    }

    /// The slot of an operand of a type.
    pub(super) fn value(&mut self, operand: &Operand<'a>, ty: Type) -> Result<Slot> {
        let is_single = ty.bits == 32 && ty.kind == super::Kind::Float;
        match operand {
            Operand::Integer(value) => Ok(self.constant(*value)),
            Operand::Single(bits) => Ok(self.constant(u64::from(*bits))),
            Operand::Double(bits) if is_single => {
                Ok(self.constant(u64::from((f64::from_bits(*bits) as f32).to_bits())))
            }
            Operand::Double(bits) => Ok(self.constant(*bits)),
            Operand::Name(name) => self.register(name),
            _ => self.error("an operand of this form is not known"),
        }
    }

    /// A predicate, or what is not it.
    pub(super) fn predicate(&mut self, operand: &Operand<'a>) -> Result<Slot> {
        match operand {
            Operand::Not(name) => {
                let (source, d) = (self.register(name)?, self.fresh(POISON));
                self.push(Op::Alu { run: |a, _, _| !a & 1, d, abc: [source, 0, 0] });
                Ok(d)
            }
            other => self.value(other, self.ty("pred")?),
        }
    }

    fn find(&self, name: &str) -> Option<Symbol> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).copied()
    }

    /// The number of a kernel's parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<usize> {
        match self.find(name) {
            Some(Symbol::Parameter(number)) => Some(number),
            _ => None,
        }
    }

    /// The slot of a register, a special register, or of the address of a variable.
    pub(super) fn register(&mut self, name: &'a str) -> Result<Slot> {
        match self.find(name) {
            Some(Symbol::Slot(slot)) => return Ok(slot),
            Some(Symbol::Registers { .. } | Symbol::Parameter(_)) => {
                return self.error(format!("`{name}` is no register"));
            }
            None => {}
        }
        if let Some(address) = self.globals.get(name) {
            return Ok(self.constant(*address));
        }
        if let Some(slot) = self.specials.get(name) {
            return Ok(*slot);
        }
        if let Some(special) = special(name) {
            let slot = self.fresh(POISON);
            self.kernel.specials.push((special, slot));
            self.specials.insert(name, slot);
            return Ok(slot);
        }
        self.numbered(name)
    }

    /// `%r12`, if there are so many.
    fn numbered(&mut self, name: &'a str) -> Result<Slot> {
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = name[prefix.len()..].parse::<u64>().ok();
        let scope = self.scopes.iter().rposition(|scope| matches!(scope.get(prefix), Some(Symbol::Registers { .. })));
        let (Some(number), Some(scope)) = (number, scope) else {
            return self.error(format!("`{name}` is not declared"));
        };
        if !matches!(self.scopes[scope][prefix], Symbol::Registers { count } if number < count) {
            return self.error(format!("`{name}` is beyond the registers that are declared"));
        }
        let slot = self.fresh(POISON);
        self.scopes[scope].insert(name, Symbol::Slot(slot));
        Ok(slot)
    }

    fn finish(mut self, line: u32) -> Result<Kernel> {
        for (at, label, line) in std::mem::take(&mut self.forward) {
            self.line = line;
            let Some(&target) = self.labels.get(label) else {
                return self.error(format!("there is no label {label}"));
            };
            self.kernel.code[at].op = Op::Branch(target);
        }
        // The end of the text is the end of a thread, and a label may stand there.
        self.line = self.kernel.lines.last().copied().unwrap_or(line);
        self.push(Op::Return);
        self.kernel.shared_bytes = self.kernel.shared_bytes.next_multiple_of(16);
        for slot in &self.dynamic {
            self.kernel.image[*slot as usize] = self.kernel.shared_bytes as u64;
        }
        expected::mark(&mut self.kernel, &self.exchanges);
        Ok(self.kernel)
    }
}

/// The special register of a name.
fn special(name: &str) -> Option<Special> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let (base, dimension) = match name.rsplit_once('.') {
        Some((base, "x")) => (base, 0),
        Some((base, "y")) => (base, 1),
        Some((base, "z")) => (base, 2),
        _ => (name, 3),
    };
    match (base, dimension) {
        ("%tid", 0..3) => Some(Special::Thread(dimension)),
        ("%ntid", 0..3) => Some(Special::Threads(dimension)),
        ("%ctaid", 0..3) => Some(Special::Block(dimension)),
        ("%nctaid", 0..3) => Some(Special::Blocks(dimension)),
        ("%laneid", 3) => Some(Special::Lane),
        ("%warpid", 3) => Some(Special::Warp),
        ("%lanemask_eq", 3) => Some(Special::LaneMask(Equal, true)),
        ("%lanemask_lt", 3) => Some(Special::LaneMask(Less, false)),
        ("%lanemask_le", 3) => Some(Special::LaneMask(Less, true)),
        ("%lanemask_gt", 3) => Some(Special::LaneMask(Greater, false)),
        ("%lanemask_ge", 3) => Some(Special::LaneMask(Greater, true)),
        ("%dynamic_smem_size", 3) => Some(Special::DynamicShared),
        _ => None,
    }
}
