//! Decoder state of a kernel: scopes of names, slots of registers and constants, and the instructions decoded so far.

use std::collections::{HashMap, HashSet};

use crate::code::{
    ALWAYS, Approximations, Collective, Granules, Instruction, Kernel, Op, POISON, Slot, Slots, Special, Type, expected,
};
use crate::ptx::{Function, Operand, Space, SyntaxError, Variable};

pub(super) type Result<T> = std::result::Result<T, SyntaxError>;

/// Maximum number of threads of a block, even if a kernel specifies more.
const MOST_THREADS: u64 = 1024;

/// Signature of a function that can be called.
#[derive(Clone, Copy, Debug)]
pub(super) struct Callee {
    pub(super) parameters: usize,
    pub(super) has_body: bool,
}

impl Callee {
    pub(super) fn of(function: &Function<'_>) -> Callee {
        Callee { parameters: function.parameters.len(), has_body: function.body.is_some() }
    }
}

/// Kernel under construction.
pub(super) struct Decoder<'a> {
    pub(super) kernel: Kernel,
    /// Symbols of names by scope, the innermost scope last.
    pub(super) scopes: Vec<HashMap<&'a str, Symbol>>,
    constants: HashMap<u64, Slot>,
    specials: HashMap<&'a str, Slot>,
    globals: &'a HashMap<String, u64>,
    pub(super) approximations: Approximations,
    pub(super) callees: HashMap<String, Callee>,
    /// Branch targets by the scope that contains the label.
    labels: HashMap<(u32, &'a str), u32>,
    /// Branches; their labels may follow later in the text.
    branches: Vec<Jump<'a>>,
    /// Numbers of the open scopes, parallel to `scopes`, and the number of the next one.
    open: Vec<u32>,
    opened: u32,
    /// Slots of the addresses of dynamic shared memory, which follows all static shared memory, and its alignment.
    dynamic: Vec<Slot>,
    dynamic_align: u64,
    /// Registers of 32 bits; if they are used as addresses, the upper half of the slot is ignored.
    narrow: HashSet<Slot>,
    /// Target architecture, such as `sm_90a`.
    target: &'a str,
    /// Indices of atomic exchange instructions.
    pub(super) exchanges: Vec<usize>,
    pub(super) line: u32,
}

/// Branch to a label in one of `scopes`, the innermost last.
struct Jump<'a> {
    at: usize,
    label: &'a str,
    scopes: Vec<u32>,
    line: u32,
}

#[derive(Clone, Copy)]
pub(super) enum Symbol {
    /// Numbered registers: their count, and whether they have 32 bits.
    Registers { count: u64, is_narrow: bool },
    /// Register, or parameter of a call.
    Slot(Slot),
    /// Index of a kernel parameter.
    Parameter(usize),
}

impl<'a> Decoder<'a> {
    pub(super) fn new(
        function: &Function<'_>,
        target: &'a str,
        globals: &'a HashMap<String, u64>,
        approximations: Approximations,
    ) -> Decoder<'a> {
        let kernel = Kernel {
            name: function.name.to_owned(),
            code: Vec::new(),
            lines: Vec::new(),
            // Slot 0 is a placeholder for unused operands; no register has it.
            image: vec![POISON],
            specials: Vec::new(),
            lists: Vec::new(),
            collectives: Vec::new(),
            requests: Vec::new(),
            parameters: Vec::new(),
            shared_bytes: 0,
            local_bytes: 0,
            most_threads: function.most_threads.unwrap_or(MOST_THREADS).min(MOST_THREADS) as u32,
            exact_threads: function.exact_threads.map(|sizes| sizes.map(|size| size.min(MOST_THREADS) as u32)),
            granules: Granules { global: 2, shared: 2 },
            waits: false,
            is_asynchronous: false,
            multiplies: false,
        };
        Decoder {
            kernel,
            scopes: vec![HashMap::new()],
            constants: HashMap::new(),
            specials: HashMap::new(),
            globals,
            approximations,
            callees: HashMap::new(),
            labels: HashMap::new(),
            branches: Vec::new(),
            open: vec![0],
            opened: 1,
            dynamic: Vec::new(),
            dynamic_align: 16,
            narrow: HashSet::new(),
            target,
            exchanges: Vec::new(),
            line: function.line,
        }
    }

    pub(super) fn error<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(SyntaxError::new(self.line, message))
    }

    pub(super) fn lay_out_parameters(&mut self, function: &Function<'a>) -> Result<()> {
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

    /// Returns the size and alignment of a variable in bytes.
    fn size_of(&self, variable: &Variable<'_>) -> Result<(u64, u64)> {
        let Some(ty) = Type::parse(variable.element) else {
            return self.error(format!("`.{}` is not a type", variable.element));
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

    /// Opens a scope for names and labels.
    pub(super) fn open_scope(&mut self) {
        self.scopes.push(HashMap::new());
        self.open.push(self.opened);
        self.opened += 1;
    }

    pub(super) fn close_scope(&mut self) {
        self.scopes.pop();
        self.open.pop();
    }

    pub(super) fn label(&mut self, name: &'a str) -> Result<()> {
        let scope = self.open.last().copied().unwrap_or(0);
        match self.labels.insert((scope, name), self.kernel.code.len() as u32) {
            Some(_) => self.error(format!("the label {name} is there twice")),
            None => Ok(()),
        }
    }

    pub(super) fn branch(&mut self, label: &'a str) {
        let at = self.kernel.code.len();
        self.branches.push(Jump { at, label, scopes: self.open.clone(), line: self.line });
        self.push(Op::Branch(0));
    }

    /// Returns an error unless the module targets compute capability 9.0 or later, or exactly `sm_90a` if `exact`.
    pub(super) fn check_target(&self, opcode: &str, exact: bool) -> Result<()> {
        let number = self.target.strip_prefix("sm_").map(|number| number.trim_end_matches(char::is_alphabetic));
        let is_later = number.and_then(|number| number.parse::<u32>().ok()).is_some_and(|number| number >= 90);
        if if exact { self.target == "sm_90a" } else { is_later } {
            return Ok(());
        }
        let wanted = if exact { "sm_90a" } else { "sm_90 or later" };
        self.error(format!("`{opcode}` needs the target {wanted}, and the module is for {}", self.target))
    }

    pub(super) fn declare(&mut self, variable: &Variable<'a>) -> Result<()> {
        self.line = variable.line;
        let is_narrow = Type::parse(variable.element).is_some_and(|ty| ty.bits * ty.count == 32);
        match variable.space {
            Space::Register if variable.is_numbered => {
                self.bind(variable.name, Symbol::Registers { count: variable.count.unwrap_or(0), is_narrow });
            }
            Space::Register => {
                let slot = self.fresh(POISON);
                if is_narrow {
                    self.narrow.insert(slot);
                }
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
            self.dynamic_align = self.dynamic_align.max(align);
            slot
        } else {
            let start = (self.kernel.shared_bytes as u64).next_multiple_of(align);
            self.kernel.shared_bytes = (start + bytes) as usize;
            self.constant(start)
        };
        self.bind(variable.name, Symbol::Slot(slot));
        Ok(())
    }

    pub(super) fn unknown<T>(&self, opcode: &str) -> Result<T> {
        self.error(format!("the instruction `{opcode}` is not known, or not with these operands"))
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
        Type::parse(name).map_or_else(|| self.error(format!("`{name}` is not a type")), Ok)
    }

    /// Allocates a slot with an initial value.
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

    /// Returns the slot of a result; `_` gets a fresh slot.
    pub(super) fn result(&mut self, operand: &Operand<'a>) -> Result<Slot> {
        match operand {
            Operand::Name("_") => Ok(self.fresh(POISON)),
            Operand::Name(name) if name.starts_with('%') || self.find(name).is_some() => self.register(name),
            _ => self.error("a result must be a register"),
        }
    }

    /// Returns the slot of an operand of a type.
    pub(super) fn value(&mut self, operand: &Operand<'a>, ty: Type) -> Result<Slot> {
        let is_single = ty.bits == 32 && ty.kind == crate::code::TypeKind::Float;
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

    /// Returns the slot of a predicate or of its negation.
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

    /// Returns the symbol of a name. Numbered registers hide those with an equal name of outer scopes, even before
    /// their first use.
    fn find(&self, name: &str) -> Option<Symbol> {
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        for scope in self.scopes.iter().rev() {
            if let Some(symbol) = scope.get(name) {
                return Some(*symbol);
            }
            if prefix.len() < name.len() && matches!(scope.get(prefix), Some(Symbol::Registers { .. })) {
                return None;
            }
        }
        None
    }

    /// Returns the slot of an address; a 32-bit register is zero-extended.
    pub(super) fn address(&mut self, base: Slot) -> Slot {
        if !self.narrow.contains(&base) {
            return base;
        }
        let d = self.fresh(POISON);
        self.push(Op::Alu { run: |a, _, _| a & 0xffff_ffff, d, abc: [base, 0, 0] });
        d
    }

    /// Returns the index of a kernel parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<usize> {
        match self.find(name) {
            Some(Symbol::Parameter(number)) => Some(number),
            _ => None,
        }
    }

    /// Returns the slot of a register, or of the address of a variable or kernel parameter.
    pub(super) fn address_of(&mut self, name: &'a str) -> Result<Slot> {
        match self.parameter(name) {
            Some(number) => Ok(self.constant(self.kernel.parameters[number].0 as u64)),
            None => self.register(name),
        }
    }

    /// Returns the slot of a register, a special register, or the address of a variable.
    pub(super) fn register(&mut self, name: &'a str) -> Result<Slot> {
        match self.find(name) {
            Some(Symbol::Slot(slot)) => return Ok(slot),
            Some(Symbol::Registers { .. } | Symbol::Parameter(_)) => {
                return self.error(format!("`{name}` is not a register"));
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

    /// Returns the slot of a numbered register such as `%r12`, if its number is below the declared count.
    pub(super) fn numbered(&mut self, name: &'a str) -> Result<Slot> {
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = name[prefix.len()..].parse::<u64>().ok();
        let scope = self.scopes.iter().rposition(|scope| matches!(scope.get(prefix), Some(Symbol::Registers { .. })));
        let (Some(number), Some(scope)) = (number, scope) else {
            return self.error(format!("`{name}` is not declared"));
        };
        let is_narrow = match self.scopes[scope][prefix] {
            Symbol::Registers { count, is_narrow } if number < count => is_narrow,
            _ => return self.error(format!("`{name}` is beyond the registers that are declared")),
        };
        let slot = self.fresh(POISON);
        if is_narrow {
            self.narrow.insert(slot);
        }
        self.scopes[scope].insert(name, Symbol::Slot(slot));
        Ok(slot)
    }

    pub(super) fn finish(mut self, line: u32) -> Result<Kernel> {
        for Jump { at, label, scopes, line } in std::mem::take(&mut self.branches) {
            self.line = line;
            let Some(&target) = scopes.iter().rev().find_map(|scope| self.labels.get(&(*scope, label))) else {
                return self.error(format!("there is no label {label}"));
            };
            self.kernel.code[at].op = Op::Branch(target);
        }
        // A thread returns at the end of the text, and a label may precede the end.
        self.line = self.kernel.lines.last().copied().unwrap_or(line);
        self.push(Op::Return);
        self.kernel.shared_bytes = self.kernel.shared_bytes.next_multiple_of(self.dynamic_align as usize);
        for slot in &self.dynamic {
            self.kernel.image[*slot as usize] = self.kernel.shared_bytes as u64;
        }
        expected::mark(&mut self.kernel, &self.exchanges);
        Ok(self.kernel)
    }
}

/// Returns the special register with a name.
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
