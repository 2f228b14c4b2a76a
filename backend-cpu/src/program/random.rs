//! Random state of programs without runtime: 128 bits in the caller's memory, advanced by inline code.

use inkwell::values::PointerValue;
use xla_llvm::emitter::Emitter;
use xla_llvm::lanes::Scalar;

/// Copies the state to `drawn`, and advances it by `delta`. Both are pairs of 64-bit words, the low word first.
pub(crate) fn advance<'ctx>(emitter: &Emitter<'ctx>, state: PointerValue<'ctx>, drawn: PointerValue<'ctx>, delta: i64) {
    let words = [0, 1].map(|number| emitter.lanes(emitter.int_type(64).const_int(number, false)));
    let [low, high] = words.map(|word| emitter.load_lanes(state, word, Scalar::Int(64), 1, None));
    let next = low + delta;
    let carry = next.ult(low).zext(64);
    // `delta` is sign-extended to the high word.
    let next = [next, high + (delta >> 63) + carry];
    for (word, (before, after)) in words.into_iter().zip([low, high].into_iter().zip(next)) {
        emitter.store_lanes(before, drawn, word, None);
        emitter.store_lanes(after, state, word, None);
    }
}
