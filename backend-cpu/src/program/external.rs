//! Calls of external functions that the linker resolves: custom calls of programs compiled ahead of time.
//!
//! `i32 SYMBOL(ptr operands, ptr results, ptr config, size config_size, ptr user_data)`: tables of the arrays'
//! addresses, the call's configuration, and the application's user data. A nonzero result ends the program's call.

use inkwell::basic_block::BasicBlock;
use inkwell::module::Linkage;
use inkwell::values::{BasicValueEnum, FunctionValue, PhiValue, PointerValue, ValueKind};
use inkwell::{AddressSpace, IntPredicate};
use xla_hlo::{Error, Result};
use xla_llvm::emitter::Emitter;
use xla_service::thunks::ThunkId;

use crate::program::refused::refused;

/// Custom call that is compiled to a call of an external function.
#[derive(Clone, Debug)]
pub(crate) struct ExternalCall {
    pub thunk: ThunkId,
    /// Name of the function.
    pub symbol: String,
    /// Configuration that the program passes to the function.
    pub config: Vec<u8>,
    /// Pairs of an operand and the result whose memory it shares, by their numbers among the arrays.
    pub aliases: Vec<(usize, usize)>,
}

/// User data of external functions, and the exit after their errors.
#[derive(Clone, Copy)]
pub(crate) struct ExternalExit<'ctx> {
    /// User data of the application.
    pub user_data: PointerValue<'ctx>,
    /// Block that leaves the entry function; starts with `status`.
    pub failed: BasicBlock<'ctx>,
    /// Status that the function returned.
    pub status: PhiValue<'ctx>,
}

/// Emits the call at the builder's position in `function`, given the addresses of the tables of operands and results.
pub(crate) fn call<'ctx>(
    emitter: &Emitter<'ctx>,
    (function, exit): (FunctionValue<'ctx>, &ExternalExit<'ctx>),
    call: &ExternalCall,
    [operands, results]: [PointerValue<'ctx>; 2],
) -> Result<()> {
    let (context, builder) = (emitter.context(), emitter.builder());
    let (pointer, int) = (context.ptr_type(AddressSpace::default()), context.i32_type());
    let word = emitter.int_type(8 * emitter.target().pointer_bytes());
    let ty = int.fn_type(&[pointer.into(), pointer.into(), pointer.into(), word.into(), pointer.into()], false);
    let known = emitter.module().get_function(&call.symbol);
    let callee = known.unwrap_or_else(|| emitter.module().add_function(&call.symbol, ty, None));
    if callee.count_basic_blocks() > 0 {
        let reason = format!("the object has a function {:?} of its own; rename the external", call.symbol);
        return Err(Error::invalid_argument(reason));
    }
    let size = word.const_int(call.config.len() as u64, false);
    let arguments =
        [operands.into(), results.into(), config(emitter, &call.config).into(), size.into(), exit.user_data.into()];
    let called = builder.build_call(callee, &arguments, "").map_err(refused)?;
    let ValueKind::Basic(BasicValueEnum::IntValue(status)) = called.try_as_basic_value() else {
        return Err(Error::internal("an external function returns no status"));
    };
    let next = context.append_basic_block(function, "next");
    let bad = builder.build_int_compare(IntPredicate::NE, status, int.const_zero(), "").map_err(refused)?;
    let here = builder.get_insert_block().ok_or_else(|| Error::internal("a call is emitted outside of a function"))?;
    builder.build_conditional_branch(bad, exit.failed, next).map_err(refused)?;
    exit.status.add_incoming(&[(&status, here)]);
    builder.position_at_end(next);
    Ok(())
}

/// Creates a private constant of the bytes, with a terminating zero.
fn config<'ctx>(emitter: &Emitter<'ctx>, bytes: &[u8]) -> PointerValue<'ctx> {
    let value = emitter.context().const_string(bytes, true);
    let global = emitter.module().add_global(value.get_type(), None, "config");
    global.set_initializer(&value);
    global.set_constant(true);
    global.set_linkage(Linkage::Private);
    global.as_pointer_value()
}
