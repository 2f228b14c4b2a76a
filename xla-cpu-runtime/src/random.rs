//! Random counter of the device.
#![expect(unsafe_code, reason = "generated code hands pointers over")]

use crate::host::RunContext;
use crate::kernel::KernelFn;

/// Advances the device's random counter by the only number of the descriptor. `buffers` are the run's context, and two
/// words for the counter's previous value, the low one first.
pub(super) unsafe extern "C" fn xla_cpu_random_state(
    buffers: *const *mut u8,
    _: *const KernelFn,
    descriptor: *const i64,
    _: i64,
    _: i64,
) {
    // SAFETY: as `LibraryFunction::takes_context` states, the generated caller passes its own context first; the
    // context outlives the call and is only read here. The result follows, which is u64[2]. The descriptor has one
    // number.
    unsafe {
        let context = &*(*buffers).cast::<RunContext<'_>>();
        let before = context.context.random.advance(*descriptor);
        let result = (*buffers.add(1)).cast::<u64>();
        result.write_unaligned(before as u64);
        result.add(1).write_unaligned((before >> 64) as u64);
    }
}
