//! Random state of programs without a runtime: 128 bits of the caller's, moved on as code.

use inkwell::values::PointerValue;
use xla_llvm::emitter::Emitter;
use xla_llvm::lanes::Scalar;

/// Copies the state to where it is drawn to, and moves it on by a number. Both are two words, the low one first.
pub(crate) fn advance<'ctx>(emitter: &Emitter<'ctx>, state: PointerValue<'ctx>, drawn: PointerValue<'ctx>, delta: i64) {
    let words = [0, 1].map(|number| emitter.lanes(emitter.int_type(64).const_int(number, false)));
    let [low, high] = words.map(|word| emitter.load_lanes(state, word, Scalar::Int(64), 1, None));
    let next = low + delta;
    let carry = next.ult(low).zext(64);
    // The upper word of the number is its sign.
    let next = [next, high + (delta >> 63) + carry];
    for (word, (before, after)) in words.into_iter().zip([low, high].into_iter().zip(next)) {
        emitter.store_lanes(before, drawn, word, None);
        emitter.store_lanes(after, state, word, None);
    }
}
