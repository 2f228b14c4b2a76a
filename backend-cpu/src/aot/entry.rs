//! Entry function of an object file: `i32 NAME(ptr call)` checks the call, fills the address table, runs the thunks.
//!
//! The call is a structure: a 32-bit ABI hash, the cancellation byte, three reserved bytes, the arena's address and
//! size, then the pointers. The entry writes no memory before all checks have passed.

use inkwell::basic_block::BasicBlock;
use inkwell::module::Linkage;
use inkwell::types::IntType;
use inkwell::values::{ArrayValue, BasicValueEnum, FunctionValue, IntValue, PointerValue};
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

/// Layout of the call structure, for a given pointer size.
pub(super) struct CallLayout {
    pointer_bytes: u64,
}

impl CallLayout {
    /// Offset of the cancellation byte.
    const CANCEL: u64 = 4;
    /// Offset of the arena's address, which is followed by its size.
    const ARENA: u64 = 8;

    pub fn new(pointer_bytes: u32) -> CallLayout {
        CallLayout { pointer_bytes: pointer_bytes.into() }
    }

    /// Returns the offset of pointer number `number`.
    pub fn field(&self, number: usize) -> u64 {
        CallLayout::ARENA + self.pointer_bytes * (2 + number as u64)
    }
}

/// Emits the entry function `symbol`, and sets the size of the arena in `interface`.
pub(super) fn emit(
    emitter: &Emitter<'_>,
    plan: &Plan,
    (module, program): (&Module, &ThunkProgram),
    (symbol, interface): (&str, &mut Interface),
) -> Result<()> {
    let context = emitter.context();
    let pointer = context.ptr_type(AddressSpace::default());
    let ty = context.i32_type().fn_type(&[pointer.into()], false);
    let declared = emitter.module().get_function(symbol);
    let function = declared.unwrap_or_else(|| emitter.module().add_function(symbol, ty, None));
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
    let surroundings =
        Surroundings { function, table, run: None, cancel, profiled: None, failed, external, parallel, modes };
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
    entry.check_constants(interface)?;
    entry.check_pointers(interface)?;
    entry.fill(table, &words, (module, program), interface)?;
    emitter.builder().build_unconditional_branch(body).map_err(refused)?;
    entry.fail()?;
    emitter.check()
}

/// Constant table of integers.
#[derive(Clone, Copy)]
struct NumberTable<'ctx> {
    table: PointerValue<'ctx>,
    ty: IntType<'ctx>,
}

struct Entry<'a, 'ctx> {
    e: &'a Emitter<'ctx>,
    function: FunctionValue<'ctx>,
    call: PointerValue<'ctx>,
    layout: CallLayout,
    /// Blocks that return an error, each with its status.
    failures: Vec<(BasicBlock<'ctx>, IntValue<'ctx>)>,
}

impl<'ctx> Entry<'_, 'ctx> {
    /// Emits the checks that there is a call and that it belongs to this program.
    fn check_call(&mut self, interface: &Interface) -> Result<()> {
        let there = self.e.builder().build_is_not_null(self.call, "").map_err(refused)?;
        self.check(there, status::NO_CALL)?;
        let int = self.e.context().i32_type();
        let abi = self.e.builder().build_load(int, self.call, "abi").map_err(refused)?.into_int_value();
        let expected = int.const_int(interface.abi().into(), false);
        let same = self.e.builder().build_int_compare(IntPredicate::EQ, abi, expected, "").map_err(refused)?;
        self.check(same, status::WRONG_ABI)
    }

    /// Loads the user data for functions of the application, and creates the block for their errors, if the program
    /// calls such functions.
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

    /// Loads the application's function that distributes work over threads, if the program uses several.
    fn parallel(&self, interface: &Interface) -> Result<Option<ParallelFor<'ctx>>> {
        let places = [Word::ParallelFor, Word::Pool].map(|word| interface.place(word));
        let [Some(function), Some(pool)] = places else { return Ok(None) };
        // Functions may be in a separate address space.
        let pointer = self.function.as_global_value().as_pointer_value().get_type();
        let place = self.offset(self.call, self.layout.field(function))?;
        let function = self.e.builder().build_load(pointer, place, "").map_err(refused)?.into_pointer_value();
        Ok(Some(ParallelFor { function, pool: self.load_pointer(self.layout.field(pool))? }))
    }

    /// Emits the exit after a failed function of the application: stores its status, if the caller wants it, and
    /// returns.
    fn external_failed(&self, exit: &ExternalExit<'ctx>, interface: &Interface) -> Result<()> {
        let builder = self.e.builder();
        builder.position_at_end(exit.failed);
        let place = interface.place(Word::ExternalStatus);
        let place =
            place.ok_or_else(|| Error::internal("the call structure has no field for the status of a function"))?;
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

    /// Emits the checks of the arena's size and alignment.
    fn check_arena(&mut self, arena: PointerValue<'ctx>, interface: &Interface) -> Result<()> {
        if interface.arena_bytes == 0 {
            return Ok(());
        }
        let there = self.e.builder().build_is_not_null(arena, "").map_err(refused)?;
        self.check(there, status::ARENA_TOO_SMALL)?;
        self.check_size(CallLayout::ARENA + self.layout.pointer_bytes, interface.arena_bytes, status::ARENA_TOO_SMALL)?;
        self.check_alignment(arena, ARENA_ALIGNMENT, status::ARENA_MISALIGNED)
    }

    /// Emits the checks of the constants file, if the program reads one.
    fn check_constants(&mut self, interface: &Interface) -> Result<()> {
        let Some(Constants { size, stamp }) = interface.constants else { return Ok(()) };
        let places = [Word::Constants, Word::ConstantsSize].map(|word| interface.place(word));
        let [Some(place), Some(place_of_size)] = places else {
            return Err(Error::internal("the call structure has no field for constants"));
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
        self.check(same, status::WRONG_CONSTANTS)
    }

    /// Emits the check that the size at offset `place` of the call is at least `least`.
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

    /// Emits the null checks of pointers to non-empty arrays, as one loop over the call structure.
    fn check_pointers(&mut self, interface: &Interface) -> Result<()> {
        let byte = self.e.context().i8_type();
        let wanted: Vec<bool> = interface.fields.iter().map(|field| field.elements() > 0).collect();
        if !wanted.contains(&true) {
            return Ok(());
        }
        let flags: Vec<IntValue<'ctx>> = wanted.iter().map(|&w| byte.const_int(w.into(), false)).collect();
        let flags = wanted.contains(&false).then(|| self.table("entry.checked", &byte.const_array(&flags)));
        let first = self.offset(self.call, self.layout.field(0))?;
        self.each(wanted.len(), |s, number| {
            let builder = s.e.builder();
            let place = s.element(first, number, s.layout.pointer_bytes)?;
            let pointer = s.e.context().ptr_type(AddressSpace::default());
            let pointer = builder.build_load(pointer, place, "").map_err(refused)?.into_pointer_value();
            let mut holds = builder.build_is_not_null(pointer, "").map_err(refused)?;
            if let Some(flags) = flags {
                let place = s.e.byte_address(flags, s.e.lanes(number))?;
                let flag = builder.build_load(byte, place, "").map_err(refused)?.into_int_value();
                let empty =
                    builder.build_int_compare(IntPredicate::EQ, flag, byte.const_zero(), "").map_err(refused)?;
                holds = builder.build_or(holds, empty, "").map_err(refused)?;
            }
            let int = s.e.context().i32_type();
            let number = builder.build_int_cast(number, int, "").map_err(refused)?;
            let status = int.const_int(status::NULL_POINTER.into(), false);
            let status = builder.build_int_add(number, status, "").map_err(refused)?;
            s.check_with(holds, status)
        })
    }

    /// Emits the loop that fills the address table, driven by two constant tables: for each address, the offset of its
    /// base pointer in the call structure, and the distance from the base. Constants in the object have no such base;
    /// their addresses are stored afterwards.
    fn fill(
        &mut self,
        table: PointerValue<'ctx>,
        words: &ArgumentTable,
        (module, program): (&Module, &ThunkProgram),
        interface: &Interface,
    ) -> Result<()> {
        let [mut places, mut distances] = [(); 2].map(|()| Vec::with_capacity(words.words().len()));
        let mut constants = Vec::new();
        for (number, &argument) in words.words().iter().enumerate() {
            let (place, distance) = match argument {
                ArgumentWord::Address { allocation, offset } => match self.base(allocation, interface)? {
                    Some((place, start)) => (place, start + offset as u64),
                    None => {
                        constants.push((number, allocation, offset as u64));
                        (CallLayout::ARENA, 0)
                    }
                },
                ArgumentWord::Scratch => (CallLayout::ARENA, interface.scratch),
                ArgumentWord::RandomState => {
                    let field = interface.random_state;
                    let field =
                        field.ok_or_else(|| Error::internal("the call structure has no field for the random state"))?;
                    (self.layout.field(field), 0)
                }
                ArgumentWord::Context => {
                    return Err(Error::internal("a program without runtime takes the context of a runtime"));
                }
            };
            places.push(place);
            distances.push(distance);
        }
        if constants.len() < places.len() {
            let [places, distances] = [("entry.bases", &places), ("entry.distances", &distances)]
                .map(|(name, numbers)| self.numbers(name, numbers));
            let pointer = self.e.context().ptr_type(AddressSpace::default());
            self.each(words.words().len(), |s, number| {
                let place = s.load_number(places, number)?;
                let place = s.e.byte_address(s.call, s.e.lanes(place))?;
                let base = s.e.builder().build_load(pointer, place, "").map_err(refused)?.into_pointer_value();
                let distance = s.load_number(distances, number)?;
                let address = s.e.byte_address(base, s.e.lanes(distance))?;
                let target = s.element(table, number, s.layout.pointer_bytes)?;
                s.e.builder().build_store(target, address).map(|_| ()).map_err(refused)
            })?;
        }
        let allocations = program.assignment.allocations();
        for (number, allocation, offset) in constants {
            let base = constant_array(self.e, constant(module, &allocations[allocation])?)?;
            let address = self.offset(base, offset)?;
            let target = self.offset(table, number as u64 * self.layout.pointer_bytes)?;
            self.e.builder().build_store(target, address).map_err(refused)?;
        }
        Ok(())
    }

    /// Returns the offset in the call structure of an allocation's base pointer, and the distance from it; `None` for a
    /// constant in the object.
    fn base(&self, allocation: usize, interface: &Interface) -> Result<Option<(u64, u64)>> {
        let base =
            interface.bases.get(allocation).ok_or_else(|| Error::internal("an allocation has no base pointer"))?;
        Ok(match *base {
            Base::Field(field) => Some((self.layout.field(field), 0)),
            Base::Arena(start) => Some((CallLayout::ARENA, start)),
            Base::File(start) => {
                let place = interface.place(Word::Constants);
                let place =
                    place.ok_or_else(|| Error::internal("the call structure has no field for the constants file"))?;
                Some((self.layout.field(place), start))
            }
            Base::Constant => None,
        })
    }

    /// Emits a loop over the numbers below `count`, which is not 0. The builder continues after the loop.
    fn each(&mut self, count: usize, body: impl FnOnce(&mut Self, IntValue<'ctx>) -> Result<()>) -> Result<()> {
        let word = self.e.int_type(8 * self.layout.pointer_bytes as u32);
        let (before, builder) = (self.here()?, self.e.builder());
        let [step, done] = ["each", "done"].map(|name| self.e.context().append_basic_block(self.function, name));
        builder.build_unconditional_branch(step).map_err(refused)?;
        builder.position_at_end(step);
        let phi = builder.build_phi(word, "number").map_err(refused)?;
        let number = phi.as_basic_value().into_int_value();
        body(self, number)?;
        let builder = self.e.builder();
        let next = builder.build_int_nuw_add(number, word.const_int(1, false), "").map_err(refused)?;
        phi.add_incoming(&[(&word.const_zero(), before), (&next, self.here()?)]);
        let limit = word.const_int(count as u64, false);
        let more = builder.build_int_compare(IntPredicate::ULT, next, limit, "").map_err(refused)?;
        builder.build_conditional_branch(more, step, done).map_err(refused)?;
        builder.position_at_end(done);
        Ok(())
    }

    /// Creates a constant table of integers, with the smallest width that holds the largest one.
    fn numbers(&self, name: &str, numbers: &[u64]) -> NumberTable<'ctx> {
        let bits = 64 - numbers.iter().fold(0, |all, number| all | number).leading_zeros();
        let ty = self.e.int_type(bits.next_power_of_two().max(8));
        let values: Vec<IntValue<'ctx>> = numbers.iter().map(|&number| ty.const_int(number, false)).collect();
        NumberTable { table: self.table(name, &ty.const_array(&values)), ty }
    }

    /// Loads an entry of a table, extended to the width of an address.
    fn load_number(&self, numbers: NumberTable<'ctx>, at: IntValue<'ctx>) -> Result<IntValue<'ctx>> {
        let place = self.element(numbers.table, at, u64::from(numbers.ty.get_bit_width() / 8))?;
        let value = self.e.builder().build_load(numbers.ty, place, "").map_err(refused)?.into_int_value();
        self.e.builder().build_int_z_extend_or_bit_cast(value, at.get_type(), "").map_err(refused)
    }

    /// Returns the address of array element `number`, for elements of `bytes` bytes.
    fn element(&self, array: PointerValue<'ctx>, number: IntValue<'ctx>, bytes: u64) -> Result<PointerValue<'ctx>> {
        let bytes = number.get_type().const_int(bytes, false);
        let offset = self.e.builder().build_int_mul(number, bytes, "").map_err(refused)?;
        self.e.byte_address(array, self.e.lanes(offset))
    }

    /// Creates a private constant table.
    fn table(&self, name: &str, values: &ArrayValue<'ctx>) -> PointerValue<'ctx> {
        let global = self.e.module().add_global(values.get_type(), None, name);
        global.set_initializer(values);
        global.set_constant(true);
        global.set_linkage(Linkage::Private);
        global.as_pointer_value()
    }

    /// Emits a check: continues if the condition holds, otherwise returns `status`.
    fn check(&mut self, holds: IntValue<'ctx>, status: u32) -> Result<()> {
        self.check_with(holds, self.e.context().i32_type().const_int(status.into(), false))
    }

    /// [`Entry::check`] with a computed status.
    fn check_with(&mut self, holds: IntValue<'ctx>, status: IntValue<'ctx>) -> Result<()> {
        let block = |name| self.e.context().append_basic_block(self.function, name);
        let (next, bad) = (block("next"), block("bad"));
        self.e.builder().build_conditional_branch(holds, next, bad).map_err(refused)?;
        self.e.builder().position_at_end(next);
        self.failures.push((bad, status));
        Ok(())
    }

    /// Terminates the blocks of failed checks.
    fn fail(&self) -> Result<()> {
        self.failures.iter().try_for_each(|&(block, status)| {
            self.e.builder().position_at_end(block);
            self.e.builder().build_return(Some(&status)).map(|_| ()).map_err(refused)
        })
    }

    fn ret(&self, status: u32) -> Result<()> {
        let status = self.e.context().i32_type().const_int(status.into(), false);
        self.e.builder().build_return(Some(&status)).map(|_| ()).map_err(refused)
    }

    /// Loads a pointer from the call structure.
    fn load_pointer(&self, offset: u64) -> Result<PointerValue<'ctx>> {
        let place = self.offset(self.call, offset)?;
        let pointer = self.e.context().ptr_type(AddressSpace::default());
        Ok(self.e.builder().build_load(pointer, place, "").map_err(refused)?.into_pointer_value())
    }

    /// Returns the address `bytes` bytes after `base`.
    fn offset(&self, base: PointerValue<'ctx>, bytes: u64) -> Result<PointerValue<'ctx>> {
        let bytes = self.e.int_type(64).const_int(bytes, false);
        self.e.byte_address(base, self.e.lanes(bytes))
    }

    fn here(&self) -> Result<BasicBlock<'ctx>> {
        self.e.builder().get_insert_block().ok_or_else(|| Error::internal("code is emitted outside of a function"))
    }
}
