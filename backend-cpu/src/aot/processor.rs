//! Check of the processor, and dispatch among entries for several processors. This code runs on every x86 processor.
//!
//! ```text
//! i32 NAME(ptr call)     dispatch, cached in a byte after the first call: jumps to an entry or returns a status
//! i8 entry.processor()   cpuid and xgetbv, compared with the features of each level; the last match wins
//! i32 NAME.0(ptr call)   entry of the first level; NAME.1 that of the second one, ...
//! ```
//!
//! Other architectures have no unprivileged instruction that reports features (on AArch64, POWER, ARM and RISC-V the
//! operating system reports them through its library), or reject code when it is loaded (WebAssembly).

use std::collections::{BTreeMap, BTreeSet};

use inkwell::basic_block::BasicBlock;
use inkwell::module::Linkage;
use inkwell::types::{BasicTypeEnum, IntType};
use inkwell::values::{BasicValueEnum, FunctionValue, InstructionValue, IntValue, PointerValue, ValueKind};
use inkwell::{AddressSpace, AtomicOrdering, IntPredicate};
use xla_hlo::{Error, Result};
use xla_llvm::emitter::Emitter;
use xla_llvm::target::{CpuidRegister, CpuidWord, OSXSAVE, Target, X86Checks};

use super::interface::status;
use crate::program::refused::refused;

/// Values of the cached level: not determined yet, no matching level, and the first level, followed by the others.
const UNKNOWN: u64 = 0;
const NONE: u64 = 1;
const FIRST: u64 = 2;

/// Levels: processors that an object has code for, each with its checks, if any.
pub(super) struct Levels(Vec<Option<X86Checks>>);

impl Levels {
    /// Creates the levels of targets; [`Error::InvalidArgument`] for several targets that code cannot distinguish at
    /// run time.
    pub fn new(targets: &[Target]) -> Result<Levels> {
        let levels: Vec<Option<X86Checks>> = targets.iter().map(Target::x86_checks).collect();
        let first_without = targets.iter().zip(&levels).skip(1).find(|(_, checks)| checks.is_none());
        match first_without {
            None => Ok(Levels(levels)),
            Some((target, _)) => Err(Error::invalid_argument(format!(
                "code for {} after other processors is never chosen, since a program cannot detect its features; give one processor, or for x86 the oldest one first",
                if target.cpu().is_empty() { target.triple() } else { target.cpu() }
            ))),
        }
    }

    /// Whether the object selects among entries or checks the processor.
    pub fn is_checked(&self) -> bool {
        self.0.len() > 1 || self.0.iter().any(Option::is_some)
    }

    /// Returns the name of a program's entry for a level.
    pub fn symbol(&self, name: &str, level: usize) -> String {
        if self.is_checked() { format!("{name}.{level}") } else { name.to_string() }
    }

    /// Whether a processor may match no level.
    pub fn may_fail(&self) -> bool {
        self.0.iter().all(Option::is_some)
    }

    /// Emits dispatch functions with these names, if there is anything to check.
    pub fn emit(&self, emitter: &Emitter<'_>, names: &[String]) -> Result<()> {
        if !self.is_checked() {
            return Ok(());
        }
        let byte = emitter.context().i8_type();
        let kept = emitter.module().add_global(byte, None, "entry.level");
        kept.set_initializer(&byte.const_int(UNKNOWN, false));
        kept.set_linkage(Linkage::Internal);
        let writer = Writer { e: emitter, levels: &self.0, kept: kept.as_pointer_value() };
        let processor = writer.processor()?;
        names.iter().try_for_each(|name| writer.choice(name, processor))
    }
}

struct Writer<'a, 'ctx> {
    e: &'a Emitter<'ctx>,
    levels: &'a [Option<X86Checks>],
    /// Byte that caches the level.
    kept: PointerValue<'ctx>,
}

impl<'ctx> Writer<'_, 'ctx> {
    /// Emits the dispatch function of a program.
    fn choice(&self, name: &str, processor: FunctionValue<'ctx>) -> Result<()> {
        let (context, builder, byte) = (self.e.context(), self.e.builder(), self.byte());
        let int = context.i32_type();
        let ty = int.fn_type(&[context.ptr_type(AddressSpace::default()).into()], false);
        let function = self.e.module().add_function(name, ty, None);
        self.e.decorate_for_all_x86(function);
        let block = |name| context.append_basic_block(function, name);
        let [entry, ask, choose, none] = ["entry", "ask", "choose", "none"].map(block);
        builder.position_at_end(entry);
        let known = builder.build_load(byte, self.kept, "").map_err(refused)?.into_int_value();
        self.make_atomic(known.as_instruction())?;
        let unknown = byte.const_int(UNKNOWN, false);
        let is_unknown = builder.build_int_compare(IntPredicate::EQ, known, unknown, "").map_err(refused)?;
        builder.build_conditional_branch(is_unknown, ask, choose).map_err(refused)?;
        builder.position_at_end(ask);
        let asked = builder.build_call(processor, &[], "").map_err(refused)?;
        let asked = basic(asked.try_as_basic_value())?;
        builder.build_unconditional_branch(choose).map_err(refused)?;
        builder.position_at_end(choose);
        let level = builder.build_phi(byte, "level").map_err(refused)?;
        level.add_incoming(&[(&known, entry), (&asked, ask)]);
        let entries: Vec<(IntValue<'ctx>, BasicBlock<'ctx>)> = (0..self.levels.len())
            .map(|number| (byte.const_int(FIRST + number as u64, false), block("level")))
            .collect();
        builder.build_switch(level.as_basic_value().into_int_value(), none, &entries).map_err(refused)?;
        for (number, &(_, block)) in entries.iter().enumerate() {
            builder.position_at_end(block);
            let symbol = format!("{name}.{number}");
            let entry = self.e.module().get_function(&symbol);
            let entry = entry.unwrap_or_else(|| self.e.module().add_function(&symbol, ty, None));
            let call = function.get_first_param().ok_or_else(|| Error::internal("an entry lacks its parameter"))?;
            let result = builder.build_call(entry, &[call.into()], "").map_err(refused)?;
            result.set_tail_call(true);
            builder.build_return(Some(&basic(result.try_as_basic_value())?)).map_err(refused)?;
        }
        builder.position_at_end(none);
        let status = int.const_int(status::WRONG_PROCESSOR.into(), false);
        builder.build_return(Some(&status)).map(|_| ()).map_err(refused)
    }

    /// Emits the function that determines and caches the last level whose checks the processor passes.
    fn processor(&self) -> Result<FunctionValue<'ctx>> {
        let (builder, byte) = (self.e.builder(), self.byte());
        let function =
            self.e.module().add_function("entry.processor", byte.fn_type(&[], false), Some(Linkage::Internal));
        self.e.decorate_for_all_x86(function);
        builder.position_at_end(self.e.context().append_basic_block(function, "entry"));
        let words = self.words()?;
        let saves = self.levels.iter().flatten().any(|checks| checks.state != 0);
        let state = if saves { Some(self.saved_state(function, &words)?) } else { None };
        let mut choice = byte.const_int(NONE, false);
        for (number, checks) in self.levels.iter().enumerate() {
            let level = byte.const_int(FIRST + number as u64, false);
            choice = match checks {
                None => level,
                Some(checks) => {
                    let fits = self.fits(checks, &words, state)?;
                    builder.build_select(fits, level, choice, "").map_err(refused)?.into_int_value()
                }
            };
        }
        let keep = builder.build_store(self.kept, choice).map_err(refused)?;
        self.make_atomic(Some(keep))?;
        builder.build_return(Some(&choice)).map_err(refused)?;
        Ok(function)
    }

    /// Emits the test whether the processor passes checks.
    fn fits(
        &self,
        checks: &X86Checks,
        words: &BTreeMap<CpuidWord, IntValue<'ctx>>,
        state: Option<IntValue<'ctx>>,
    ) -> Result<IntValue<'ctx>> {
        let builder = self.e.builder();
        let mut fits = self.e.context().bool_type().const_all_ones();
        let state = state.map(|found| (found, checks.state, checks.state));
        let of_words = checks.cpuid.iter().map(|(word, check)| {
            let found = words.get(word).ok_or_else(|| Error::internal("a word of cpuid was not read"))?;
            Ok((*found, check.mask, check.least))
        });
        for check in of_words.chain(state.map(Ok)) {
            let (found, mask, least) = check?;
            let [mask, least] = [mask, least].map(|number| self.int(number));
            let found = builder.build_and(found, mask, "").map_err(refused)?;
            let enough = builder.build_int_compare(IntPredicate::UGE, found, least, "").map_err(refused)?;
            fits = builder.build_and(fits, enough, "").map_err(refused)?;
        }
        Ok(fits)
    }

    /// `cpuid` for each leaf that is checked. The words of unsupported leaves are 0.
    fn words(&self) -> Result<BTreeMap<CpuidWord, IntValue<'ctx>>> {
        let builder = self.e.builder();
        let checked = self.levels.iter().flatten().flat_map(|checks| checks.cpuid.keys());
        let mut leaves: BTreeSet<(u32, u32)> = checked.map(|word| (word.leaf, word.subleaf)).collect();
        leaves.insert((OSXSAVE.0.leaf, OSXSAVE.0.subleaf));
        let first: Vec<(u32, u32)> = leaves.iter().map(|&(leaf, _)| (leaf, 0)).collect();
        leaves.extend(first);
        let mut words = BTreeMap::new();
        let mut last: BTreeMap<u32, IntValue<'ctx>> = BTreeMap::new();
        for (leaf, subleaf) in leaves {
            // Leaf numbers start at 0 and at 2^31. The first leaf of each range contains the number of its last leaf,
            // and subleaf 0 that of the last subleaf.
            let start = leaf & 1 << 31;
            let last_leaf = match last.get(&start) {
                Some(&known) => known,
                None => self.cpuid(start, 0)?[0],
            };
            last.insert(start, last_leaf);
            let compare =
                |last, number| builder.build_int_compare(IntPredicate::UGE, last, number, "").map_err(refused);
            let mut is_there = compare(last_leaf, self.int(leaf))?;
            if subleaf > 0 {
                let first = CpuidWord { leaf, subleaf: 0, register: CpuidRegister::Eax };
                let last = *words.get(&first).ok_or_else(|| Error::internal("a leaf of cpuid was not read"))?;
                is_there = builder.build_and(is_there, compare(last, self.int(subleaf))?, "").map_err(refused)?;
            }
            let registers = [CpuidRegister::Eax, CpuidRegister::Ebx, CpuidRegister::Ecx, CpuidRegister::Edx];
            for (register, value) in registers.into_iter().zip(self.cpuid(leaf, subleaf)?) {
                let value = builder.build_select(is_there, value, self.int(0), "").map_err(refused)?;
                words.insert(CpuidWord { leaf, subleaf, register }, value.into_int_value());
            }
        }
        Ok(words)
    }

    /// `xgetbv`: returns the low half of XCR0, the register state that the operating system saves; 0 if it does not
    /// enable the instruction.
    fn saved_state(
        &self,
        function: FunctionValue<'ctx>,
        words: &BTreeMap<CpuidWord, IntValue<'ctx>>,
    ) -> Result<IntValue<'ctx>> {
        let (context, builder, int) = (self.e.context(), self.e.builder(), self.e.context().i32_type());
        let before =
            builder.get_insert_block().ok_or_else(|| Error::internal("code is emitted outside of a function"))?;
        let [read, done] = ["read", "done"].map(|name| context.append_basic_block(function, name));
        let (word, bit) = OSXSAVE;
        let found = *words.get(&word).ok_or_else(|| Error::internal("a word of cpuid was not read"))?;
        let allowed = builder.build_and(found, self.int(bit), "").map_err(refused)?;
        let allowed = builder.build_int_compare(IntPredicate::NE, allowed, self.int(0), "").map_err(refused)?;
        builder.build_conditional_branch(allowed, read, done).map_err(refused)?;
        builder.position_at_end(read);
        // Emitted as bytes, because assemblers accept the mnemonic only for newer processors.
        let state = self.instruction(".byte 15, 1, 208", ["={ax},={dx}", "{cx}"], &[self.int(0)])?[0];
        builder.build_unconditional_branch(done).map_err(refused)?;
        builder.position_at_end(done);
        let phi = builder.build_phi(int, "state").map_err(refused)?;
        phi.add_incoming(&[(&self.int(0), before), (&state, read)]);
        Ok(phi.as_basic_value().into_int_value())
    }

    /// `cpuid`: returns EAX, EBX, ECX and EDX of a leaf.
    fn cpuid(&self, leaf: u32, subleaf: u32) -> Result<Vec<IntValue<'ctx>>> {
        let constraints = ["={ax},={bx},={cx},={dx}", "0,2"];
        self.instruction("cpuid", constraints, &[self.int(leaf), self.int(subleaf)])
    }

    /// Emits an instruction with 32-bit results and operands in registers.
    fn instruction(
        &self,
        text: &str,
        [results, operands]: [&str; 2],
        arguments: &[IntValue<'ctx>],
    ) -> Result<Vec<IntValue<'ctx>>> {
        let (context, builder) = (self.e.context(), self.e.builder());
        let int: BasicTypeEnum<'ctx> = context.i32_type().into();
        let count = results.split(',').count();
        let ty = context.struct_type(&vec![int; count], false).fn_type(&vec![int.into(); arguments.len()], false);
        let constraints = format!("{results},{operands},~{{dirflag}},~{{fpsr}},~{{flags}}");
        let assembly = context.create_inline_asm(ty, text.to_string(), constraints, true, false, None, false);
        let arguments: Vec<_> = arguments.iter().map(|&argument| argument.into()).collect();
        let call = builder.build_indirect_call(ty, assembly, &arguments, "").map_err(refused)?;
        let all = basic(call.try_as_basic_value())?.into_struct_value();
        let one = |number| builder.build_extract_value(all, number, "").map_err(refused);
        (0..count as u32).map(|number| Ok(one(number)?.into_int_value())).collect()
    }

    /// Makes a load or store of a byte atomic, because other threads may access it at the same time.
    fn make_atomic(&self, access: Option<InstructionValue<'ctx>>) -> Result<()> {
        let access = access.ok_or_else(|| Error::internal("a memory access is not an instruction"))?;
        access.set_alignment(1).map_err(refused)?;
        access.set_atomic_ordering(AtomicOrdering::Monotonic).map_err(refused)
    }

    fn byte(&self) -> IntType<'ctx> {
        self.e.context().i8_type()
    }

    fn int(&self, number: u32) -> IntValue<'ctx> {
        self.e.context().i32_type().const_int(number.into(), false)
    }
}

/// Returns the value that a call returns.
fn basic(value: ValueKind<'_>) -> Result<BasicValueEnum<'_>> {
    match value {
        ValueKind::Basic(value) => Ok(value),
        ValueKind::Instruction(_) => Err(Error::internal("a call returns no value")),
    }
}
