//! Copies as code, for programs that may not call the C library.

use inkwell::module::Linkage;
use inkwell::values::{BasicValueEnum, FunctionValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use xla_hlo::{Error, Result};
use xla_llvm::emitter::Emitter;
use xla_llvm::lanes::{Lanes, Scalar};
use xla_service::thunks::ArraySlice;

use crate::program::refused::refused;

/// Bytes of the words that are copied at once, as many as the alignment of both places allows.
const LARGEST_WORD: usize = 8;

/// `void copy(ptr to, ptr from, i64 count)`, emitted at the first request, and the count for these two arrays. Each is
/// aligned to its elements; they are at one place or have no byte in common.
pub(crate) fn function<'ctx>(
    emitter: &Emitter<'ctx>,
    [from, to]: [&ArraySlice; 2],
) -> Result<(FunctionValue<'ctx>, i64)> {
    let number = |array: &ArraySlice| array.shape.element_type().real_part().byte_width();
    let (word, bytes) = (number(from).min(number(to)).clamp(1, LARGEST_WORD), to.slice.size);
    if !bytes.is_multiple_of(word) {
        return Err(Error::internal(format!("{} takes {bytes} bytes", to.shape)));
    }
    let scalar = Scalar::Int(8 * word as u32);
    let name = format!("xla.copy.{}", scalar.bits());
    let function = emitter.module().get_function(&name);
    let function = function.map_or_else(|| emit(emitter, &name, scalar), Ok)?;
    Ok((function, (bytes / word) as i64))
}

/// Writes the function: a loop of vectors, then one of words.
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
    let copy = CopyLoops { emitter, function, places: [to, from], scalar };
    let (count, start) = (emitter.lanes(count), emitter.lanes(long.const_zero()));
    let width = emitter.target().lanes(scalar.bits());
    let middle = count - count.urem(i64::from(width));
    copy.each(start, middle, width)?;
    if width > 1 {
        copy.each(middle, count, 1)?;
    }
    emitter.builder().build_return(None).map_err(refused)?;
    if let Some(block) = resume {
        emitter.builder().position_at_end(block);
    }
    emitter.check()?;
    Ok(function)
}

/// A copy that is being written.
struct CopyLoops<'e, 'ctx> {
    emitter: &'e Emitter<'ctx>,
    function: FunctionValue<'ctx>,
    places: [PointerValue<'ctx>; 2],
    scalar: Scalar,
}

impl<'e, 'ctx> CopyLoops<'e, 'ctx> {
    /// Copies from one word to before another, `width` at once.
    fn each(&self, start: Lanes<'e, 'ctx>, end: Lanes<'e, 'ctx>, width: u32) -> Result<()> {
        let (emitter, builder) = (self.emitter, self.emitter.builder());
        let block = |name| emitter.context().append_basic_block(self.function, name);
        let (test, body, done) = (block("test"), block("copy"), block("done"));
        let front = builder.get_insert_block().ok_or_else(|| Error::internal("a copy outside of a function"))?;
        builder.build_unconditional_branch(test).map_err(refused)?;
        builder.position_at_end(test);
        let (BasicValueEnum::IntValue(first), BasicValueEnum::IntValue(last)) = (start.raw(), end.raw()) else {
            return Err(Error::internal("a copy counts in integers"));
        };
        let phi = builder.build_phi(first.get_type(), "").map_err(refused)?;
        let at = emitter.lanes(phi.as_basic_value());
        let BasicValueEnum::IntValue(number) = at.raw() else {
            return Err(Error::internal("a copy counts in integers"));
        };
        let more = builder.build_int_compare(IntPredicate::ULT, number, last, "").map_err(refused)?;
        builder.build_conditional_branch(more, body, done).map_err(refused)?;
        builder.position_at_end(body);
        let [to, from] = self.places;
        let value = emitter.load_lanes(from, at, self.scalar, width, None);
        emitter.store_lanes(value, to, at, None);
        let next = at + i64::from(width);
        builder.build_unconditional_branch(test).map_err(refused)?;
        phi.add_incoming(&[(&start.raw(), front), (&next.raw(), body)]);
        builder.position_at_end(done);
        Ok(())
    }
}
