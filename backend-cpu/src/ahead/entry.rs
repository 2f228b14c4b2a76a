//! The entry of an object file: `i32 NAME(ptr call)` checks the call, fills the table of addresses, runs the thunks.
//!
//! The call is a structure: a 32-bit number (the ABI), a byte (whether to stop) and three that are reserved, the
//! arena's address and size, then the pointers. Nothing is written before everything is checked.

use inkwell::basic_block::BasicBlock;
use inkwell::values::{BasicValueEnum, FunctionValue, IntValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use xla_hlo::{Error, Module, Result};
use xla_llvm::elemental::constant_array;
use xla_llvm::emitter::Emitter;
use xla_service::thunks::ThunkProgram;

use super::constants::{self, Constants, constant};
use super::interface::{ARENA_ALIGNMENT, Base, Interface, Word, status};
use crate::program::arguments::{ArgumentTable, ArgumentWord};
use crate::program::external::ExternalExit;
use crate::program::refused::refused;
use crate::program::sequence::{self, Plan, Surroundings};
use crate::program::spread::ParallelFor;

/// Places in the structure of a call, of pointers of that size.
pub(super) struct CallLayout {
    pointer_bytes: u64,
}

impl CallLayout {
    /// Offset of the byte that stops the run.
    const CANCEL: u64 = 4;
    /// Offset of the arena's address, which its size follows.
    const ARENA: u64 = 8;

    pub fn new(pointer_bytes: u32) -> CallLayout {
        CallLayout { pointer_bytes: pointer_bytes.into() }
    }

    /// Offset of a pointer, by its number.
    pub fn field(&self, number: usize) -> u64 {
        CallLayout::ARENA + self.pointer_bytes * (2 + number as u64)
    }
}

/// Writes the entry; the interface learns how large the arena is.
pub(super) fn emit(
    emitter: &Emitter<'_>,
    plan: &Plan,
    (module, program): (&Module, &ThunkProgram),
    interface: &mut Interface,
) -> Result<()> {
    let context = emitter.context();
    let pointer = context.ptr_type(AddressSpace::default());
    let ty = context.i32_type().fn_type(&[pointer.into()], false);
    let function = emitter.module().add_function(&interface.name, ty, None);
    emitter.decorate(function);
    emitter.builder().position_at_end(context.append_basic_block(function, "entry"));
    let Some(BasicValueEnum::PointerValue(call)) = function.get_first_param() else {
        return Err(Error::internal("the entry function lacks its parameter"));
    };
    let modes = plan.denormal_modes(emitter);
    let layout = CallLayout::new(emitter.target().pointer_bytes());
    let mut entry = Entry { e: emitter, function, call, layout, failures: Vec::new() };
    entry.check_call(interface)?;
    let arena = entry.load_pointer(CallLayout::ARENA)?;
    let (table, cancel) = (entry.offset(arena, interface.table)?, entry.offset(call, CallLayout::CANCEL)?);
    let (external, parallel) = (entry.external(interface)?, entry.parallel(interface)?);
    let checked = entry.here()?;
    let [body, failed] = ["body", "cancelled"].map(|name| context.append_basic_block(function, name));
    emitter.builder().position_at_end(body);
    let surroundings = Surroundings { function, table, run: None, cancel, failed, external, parallel, modes };
    let words = sequence::emit(emitter, plan, surroundings)?;
    entry.ret(status::OK)?;
    emitter.builder().position_at_end(failed);
    entry.ret(status::CANCELLED)?;
    if let Some(exit) = external {
        entry.external_failed(&exit, interface)?;
    }
    interface.set_table_bytes(words.words().len() as u64 * entry.layout.pointer_bytes)?;
    emitter.builder().position_at_end(checked);
    entry.check_arena(arena, interface)?;
    let file = entry.constants(interface)?;
    let fields = entry.pointers(interface)?;
    let bases = entry.bases((arena, file), &fields, (module, program), interface)?;
    entry.fill(table, &words, (&bases, &fields), interface, arena)?;
    emitter.builder().build_unconditional_branch(body).map_err(refused)?;
    entry.fail()?;
    emitter.check()
}

struct Entry<'a, 'ctx> {
    e: &'a Emitter<'ctx>,
    function: FunctionValue<'ctx>,
    call: PointerValue<'ctx>,
    layout: CallLayout,
    /// Blocks that leave with an error, each with its status.
    failures: Vec<(BasicBlock<'ctx>, u32)>,
}

impl<'ctx> Entry<'_, 'ctx> {
    /// Checks that there is a call, and that it is one of this program.
    fn check_call(&mut self, interface: &Interface) -> Result<()> {
        let there = self.e.builder().build_is_not_null(self.call, "").map_err(refused)?;
        self.check(there, status::NO_CALL)?;
        let int = self.e.context().i32_type();
        let abi = self.e.builder().build_load(int, self.call, "abi").map_err(refused)?.into_int_value();
        let expected = int.const_int(interface.abi().into(), false);
        let same = self.e.builder().build_int_compare(IntPredicate::EQ, abi, expected, "").map_err(refused)?;
        self.check(same, status::WRONG_ABI)
    }

    /// The pointer for functions of the application, and the block for their errors, if the program calls any.
    fn external(&self, interface: &Interface) -> Result<Option<ExternalExit<'ctx>>> {
        let Some(place) = interface.place(Word::UserData) else { return Ok(None) };
        let user_data = self.load_pointer(self.layout.field(place))?;
        let (builder, here) = (self.e.builder(), self.here()?);
        let failed = self.e.context().append_basic_block(self.function, "external_failed");
        builder.position_at_end(failed);
        let status = builder.build_phi(self.e.context().i32_type(), "status").map_err(refused)?;
        builder.position_at_end(here);
        Ok(Some(ExternalExit { user_data, failed, status }))
    }

    /// The function that shares work among threads, if the program uses several.
    fn parallel(&self, interface: &Interface) -> Result<Option<ParallelFor<'ctx>>> {
        let places = [Word::ParallelFor, Word::Pool].map(|word| interface.place(word));
        let [Some(function), Some(pool)] = places else { return Ok(None) };
        // Functions may be in an address space of their own.
        let pointer = self.function.as_global_value().as_pointer_value().get_type();
        let place = self.offset(self.call, self.layout.field(function))?;
        let function = self.e.builder().build_load(pointer, place, "").map_err(refused)?.into_pointer_value();
        Ok(Some(ParallelFor { function, pool: self.load_pointer(self.layout.field(pool))? }))
    }

    /// Leaves with the number of a function of the application, where the caller wants to have it.
    fn external_failed(&self, exit: &ExternalExit<'ctx>, interface: &Interface) -> Result<()> {
        let builder = self.e.builder();
        builder.position_at_end(exit.failed);
        let place = interface.place(Word::ExternalStatus);
        let place = place.ok_or_else(|| Error::internal("the call has no place for a function's status"))?;
        let pointer = self.load_pointer(self.layout.field(place))?;
        let [tell, leave] = ["tell", "leave"].map(|name| self.e.context().append_basic_block(self.function, name));
        let wanted = builder.build_is_not_null(pointer, "").map_err(refused)?;
        builder.build_conditional_branch(wanted, tell, leave).map_err(refused)?;
        builder.position_at_end(tell);
        builder.build_store(pointer, exit.status.as_basic_value()).map_err(refused)?;
        builder.build_unconditional_branch(leave).map_err(refused)?;
        builder.position_at_end(leave);
        self.ret(status::EXTERNAL_FAILED)
    }

    /// Checks size and alignment of the arena.
    fn check_arena(&mut self, arena: PointerValue<'ctx>, interface: &Interface) -> Result<()> {
        if interface.arena_bytes == 0 {
            return Ok(());
        }
        let there = self.e.builder().build_is_not_null(arena, "").map_err(refused)?;
        self.check(there, status::ARENA_TOO_SMALL)?;
        self.check_size(CallLayout::ARENA + self.layout.pointer_bytes, interface.arena_bytes, status::ARENA_TOO_SMALL)?;
        self.check_alignment(arena, ARENA_ALIGNMENT, status::ARENA_MISALIGNED)
    }

    /// The address of the contents of the file of constants, if the program reads any, after checks of them.
    fn constants(&mut self, interface: &Interface) -> Result<Option<PointerValue<'ctx>>> {
        let Some(Constants { size, stamp }) = interface.constants else { return Ok(None) };
        let places = [Word::Constants, Word::ConstantsSize].map(|word| interface.place(word));
        let [Some(place), Some(place_of_size)] = places else {
            return Err(Error::internal("the call has no place for constants"));
        };
        let file = self.load_pointer(self.layout.field(place))?;
        let there = self.e.builder().build_is_not_null(file, "").map_err(refused)?;
        self.check(there, status::NO_CONSTANTS)?;
        self.check_size(self.layout.field(place_of_size), size, status::WRONG_CONSTANTS)?;
        self.check_alignment(file, constants::ALIGNMENT, status::WRONG_CONSTANTS)?;
        let int = self.e.context().i32_type();
        let found = self.e.builder().build_load(int, file, "stamp").map_err(refused)?.into_int_value();
        let expected = int.const_int(stamp.into(), false);
        let same = self.e.builder().build_int_compare(IntPredicate::EQ, found, expected, "").map_err(refused)?;
        self.check(same, status::WRONG_CONSTANTS)?;
        Ok(Some(file))
    }

    /// Checks that the size at that place of the call is no less than that.
    fn check_size(&mut self, place: u64, least: u64, status: u32) -> Result<()> {
        let word = self.e.int_type(8 * self.layout.pointer_bytes as u32);
        let place = self.offset(self.call, place)?;
        let size = self.e.builder().build_load(word, place, "size").map_err(refused)?.into_int_value();
        let least = word.const_int(least, false);
        let enough = self.e.builder().build_int_compare(IntPredicate::UGE, size, least, "").map_err(refused)?;
        self.check(enough, status)
    }

    fn check_alignment(&mut self, pointer: PointerValue<'ctx>, alignment: u64, status: u32) -> Result<()> {
        let word = self.e.int_type(8 * self.layout.pointer_bytes as u32);
        let builder = self.e.builder();
        let address = builder.build_ptr_to_int(pointer, word, "").map_err(refused)?;
        let rest = builder.build_and(address, word.const_int(alignment - 1, false), "").map_err(refused)?;
        let aligned = builder.build_int_compare(IntPredicate::EQ, rest, word.const_zero(), "").map_err(refused)?;
        self.check(aligned, status)
    }

    /// Loads the pointers of the call, and checks those of arrays with elements.
    fn pointers(&mut self, interface: &Interface) -> Result<Vec<PointerValue<'ctx>>> {
        let mut pointers = Vec::with_capacity(interface.fields.len());
        for (number, field) in interface.fields.iter().enumerate() {
            let pointer = self.load_pointer(self.layout.field(number))?;
            if field.elements() > 0 {
                let there = self.e.builder().build_is_not_null(pointer, "").map_err(refused)?;
                self.check(there, status::NULL_POINTER + number as u32)?;
            }
            pointers.push(pointer);
        }
        Ok(pointers)
    }

    /// The first byte of each allocation.
    fn bases(
        &self,
        (arena, file): (PointerValue<'ctx>, Option<PointerValue<'ctx>>),
        fields: &[PointerValue<'ctx>],
        (module, program): (&Module, &ThunkProgram),
        interface: &Interface,
    ) -> Result<Vec<PointerValue<'ctx>>> {
        let allocations = program.assignment.allocations().iter().zip(&interface.bases);
        let base = |(allocation, base): (_, &Base)| match *base {
            Base::Field(field) => fields.get(field).copied().ok_or_else(|| Error::internal("a pointer is missing")),
            Base::Arena(offset) => self.offset(arena, offset),
            Base::Constant => constant_array(self.e, constant(module, allocation)?),
            Base::File(offset) => match file {
                Some(file) => self.offset(file, offset),
                None => Err(Error::internal("the call has no file of constants")),
            },
        };
        allocations.map(base).collect()
    }

    /// Fills the table of addresses.
    fn fill(
        &self,
        table: PointerValue<'ctx>,
        words: &ArgumentTable,
        (bases, fields): (&[PointerValue<'ctx>], &[PointerValue<'ctx>]),
        interface: &Interface,
        arena: PointerValue<'ctx>,
    ) -> Result<()> {
        for (number, word) in words.words().iter().enumerate() {
            let address = match *word {
                ArgumentWord::Address { allocation, offset } => {
                    let base = bases.get(allocation);
                    let base = *base.ok_or_else(|| Error::internal("an allocation has no place"))?;
                    self.offset(base, offset as u64)?
                }
                ArgumentWord::Scratch => self.offset(arena, interface.scratch)?,
                ArgumentWord::RandomState => {
                    let field = interface.random_state.and_then(|number| fields.get(number));
                    *field.ok_or_else(|| Error::internal("the call has no random state"))?
                }
                ArgumentWord::Context => return Err(Error::internal("a program without runtime takes its context")),
            };
            let place = self.offset(table, number as u64 * self.layout.pointer_bytes)?;
            self.e.builder().build_store(place, address).map_err(refused)?;
        }
        Ok(())
    }

    /// Goes on if the condition holds, else leaves with that status.
    fn check(&mut self, holds: IntValue<'ctx>, status: u32) -> Result<()> {
        let block = |name| self.e.context().append_basic_block(self.function, name);
        let (next, bad) = (block("next"), block("bad"));
        self.e.builder().build_conditional_branch(holds, next, bad).map_err(refused)?;
        self.e.builder().position_at_end(next);
        self.failures.push((bad, status));
        Ok(())
    }

    /// Ends the blocks of failures.
    fn fail(&self) -> Result<()> {
        self.failures.iter().try_for_each(|&(block, status)| {
            self.e.builder().position_at_end(block);
            self.ret(status)
        })
    }

    fn ret(&self, status: u32) -> Result<()> {
        let status = self.e.context().i32_type().const_int(status.into(), false);
        self.e.builder().build_return(Some(&status)).map(|_| ()).map_err(refused)
    }

    /// A pointer of the call's structure.
    fn load_pointer(&self, offset: u64) -> Result<PointerValue<'ctx>> {
        let place = self.offset(self.call, offset)?;
        let pointer = self.e.context().ptr_type(AddressSpace::default());
        Ok(self.e.builder().build_load(pointer, place, "").map_err(refused)?.into_pointer_value())
    }

    /// The address so many bytes further on.
    fn offset(&self, base: PointerValue<'ctx>, bytes: u64) -> Result<PointerValue<'ctx>> {
        let bytes = self.e.int_type(64).const_int(bytes, false);
        self.e.byte_address(base, self.e.lanes(bytes))
    }

    fn here(&self) -> Result<BasicBlock<'ctx>> {
        self.e.builder().get_insert_block().ok_or_else(|| Error::internal("code is emitted outside of a function"))
    }
}
