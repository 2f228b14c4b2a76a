//! Entry function of a program that runs in this process.
//!
//! `i32 xla_entry(ptr table, ptr context, ptr cancel, i32 profile)`. `table` holds the addresses of all arguments in
//! the layout of [`ArgumentTable`]. `context` is passed to host calls. `cancel` is a byte that loops poll. If `profile`
//! is not 0, the runtime is called at the start and end of each thunk. The result is 0, or 1 if a host call failed or
//! the run was cancelled.

use inkwell::values::BasicValueEnum;
use inkwell::{AddressSpace, IntPredicate};
use xla_hlo::{Error, Result};
use xla_llvm::emitter::Emitter;

use crate::program::arguments::ArgumentTable;
use crate::program::refused::refused;
use crate::program::sequence::{self, Plan, Surroundings};

/// Name of the entry function.
pub(crate) const ENTRY: &str = "xla_entry";

/// Emits the entry function into the emitter's module; returns the layout of the table that it takes.
pub(crate) fn emit(emitter: &Emitter<'_>, plan: &Plan) -> Result<ArgumentTable> {
    let context = emitter.context();
    let pointer = context.ptr_type(AddressSpace::default());
    let int = context.i32_type();
    let ty = int.fn_type(&[pointer.into(), pointer.into(), pointer.into(), int.into()], false);
    let function = emitter.module().add_function(ENTRY, ty, None);
    emitter.decorate(function);
    emitter.builder().position_at_end(context.append_basic_block(function, "entry"));
    let [
        Some(BasicValueEnum::PointerValue(table)),
        Some(BasicValueEnum::PointerValue(run)),
        Some(BasicValueEnum::PointerValue(cancel)),
        Some(BasicValueEnum::IntValue(profile)),
    ] = [0, 1, 2, 3].map(|i| function.get_nth_param(i))
    else {
        return Err(Error::internal("the entry function lacks its parameters"));
    };
    let profiled = emitter.builder().build_int_compare(IntPredicate::NE, profile, int.const_zero(), "profiled");
    let profiled = Some(profiled.map_err(refused)?);
    let failed = context.append_basic_block(function, "failed");
    let modes = plan.denormal_modes(emitter);
    let (external, parallel) = (None, None);
    let run = Some(run);
    let surroundings = Surroundings { function, table, run, cancel, profiled, failed, external, parallel, modes };
    let table = sequence::emit(emitter, plan, surroundings)?;
    let end = |status: u64| {
        let status = context.i32_type().const_int(status, false);
        emitter.builder().build_return(Some(&status)).map(|_| ()).map_err(refused)
    };
    end(0)?;
    emitter.builder().position_at_end(failed);
    end(1)?;
    emitter.check()?;
    Ok(table)
}
