//! Copies as inline code, for programs that may not call the C library.

use inkwell::AddressSpace;
use inkwell::module::Linkage;
use inkwell::values::{BasicValueEnum, FunctionValue};
use xla_hlo::{Error, Result};
use xla_llvm::emitter::Emitter;
use xla_llvm::lanes::Scalar;
use xla_service::thunks::ArraySlice;

use crate::program::refused::refused;

/// Largest word that is copied at once, in bytes; the actual word depends on the alignment of both arrays.
const LARGEST_WORD: usize = 8;

/// Returns `void copy(ptr to, ptr from, i64 count)`, emitted on first use, and the count for these two arrays. Both
/// must be aligned to their elements, and be identical or disjoint.
pub(crate) fn function<'ctx>(
    emitter: &Emitter<'ctx>,
    [from, to]: [&ArraySlice; 2],
) -> Result<(FunctionValue<'ctx>, i64)> {
    let number = |array: &ArraySlice| array.shape.element_type().real_part().byte_width();
    let (word, bytes) = (number(from).min(number(to)).clamp(1, LARGEST_WORD), to.slice.size);
    if !bytes.is_multiple_of(word) {
        return Err(Error::internal(format!(
            "{} takes {bytes} bytes, which is not a multiple of its element size",
            to.shape
        )));
    }
    let scalar = Scalar::Int(8 * word as u32);
    let name = format!("xla.copy.{}", scalar.bits());
    let function = emitter.module().get_function(&name);
    let function = function.map_or_else(|| emit(emitter, &name, scalar), Ok)?;
    Ok((function, (bytes / word) as i64))
}

/// Emits the function.
fn emit<'ctx>(emitter: &Emitter<'ctx>, name: &str, scalar: Scalar) -> Result<FunctionValue<'ctx>> {
    let context = emitter.context();
    let (pointer, long) = (context.ptr_type(AddressSpace::default()), context.i64_type());
    let ty = context.void_type().fn_type(&[pointer.into(), pointer.into(), long.into()], false);
    let function = emitter.module().add_function(name, ty, Some(Linkage::Internal));
    emitter.decorate(function);
    let resume = emitter.builder().get_insert_block();
    emitter.builder().position_at_end(context.append_basic_block(function, "entry"));
    let [
        Some(BasicValueEnum::PointerValue(to)),
        Some(BasicValueEnum::PointerValue(from)),
        Some(BasicValueEnum::IntValue(count)),
    ] = [0, 1, 2].map(|i| function.get_nth_param(i))
    else {
        return Err(Error::internal("a copy lacks its parameters"));
    };
    emitter.copy([from, to], scalar, emitter.lanes(count));
    emitter.builder().build_return(None).map_err(refused)?;
    if let Some(block) = resume {
        emitter.builder().position_at_end(block);
    }
    emitter.check()?;
    Ok(function)
}
