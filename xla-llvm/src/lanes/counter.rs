//! Loop counters that are hidden from LLVM's scalar evolution.
//!
//! Loop strength reduction takes up to half of the code generation, most of it for counters of outer loops: it expands
//! the sums of all counters and strides. On x86, an operand addresses a base, a scaled index and a constant, and the
//! emitter places loop-invariant parts of indices outside of the loop. The pass therefore pays only in the two
//! innermost loops, and not in an innermost loop with many accumulators, whose addresses are few.
#![expect(unsafe_code, reason = "the bindings have no `freeze`")]

use inkwell::llvm_sys::core::LLVMBuildFreeze;
use inkwell::values::{AsValueRef, BasicValueEnum};

use super::Lanes;
use crate::emitter::Emitter;

/// Number of carried values from which on the addresses of an innermost loop are few.
const MANY_CARRIED: usize = 8;

/// Loop whose body is being emitted: the height of the nest around it so far.
pub(crate) struct OpenLoop(usize);

/// Kind of a loop's counters, known when its body is emitted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counters {
    /// Visible to strength reduction.
    Analyzed,
    /// Hidden from it.
    Opaque,
}

impl Emitter<'_> {
    /// Begins a loop, before its body is emitted.
    pub(crate) fn begin_loop(&self) -> OpenLoop {
        OpenLoop(self.nest_height.replace(0))
    }

    /// Ends a loop with this number of carried values, whose body was just emitted.
    pub(crate) fn end_loop(&self, OpenLoop(around): OpenLoop, carried: usize) -> Counters {
        let inner = self.nest_height.get();
        self.nest_height.set(around.max(inner + 1));
        let is_costly = inner >= 2 || (inner == 0 && carried >= MANY_CARRIED);
        if is_costly && self.target().is_x86() { Counters::Opaque } else { Counters::Analyzed }
    }
}

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    /// Returns the next value of a loop's counter, at the end of the body. `freeze` hides it from scalar evolution, and
    /// costs no instruction. Vectors and floats are returned unchanged.
    pub(crate) fn as_counter(self, counters: Counters) -> Self {
        let (BasicValueEnum::IntValue(value), Counters::Opaque) = (self.raw, counters) else { return self };
        let builder = self.emitter.builder.as_mut_ptr();
        // SAFETY: the value belongs to the function in which the builder is positioned, and the name is a C string.
        let raw = unsafe { BasicValueEnum::new(LLVMBuildFreeze(builder, value.as_value_ref(), c"".as_ptr())) };
        Lanes { raw, ..self }
    }
}
