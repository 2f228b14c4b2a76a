//! Ranges of a kernel's units on several threads.
#![expect(unsafe_code, reason = "generated code hands in function and buffer pointers")]

use super::{KernelFn, pool};

/// Pieces that each thread takes on average, so that a slow one does not hold up the rest.
const PIECES_A_THREAD: i64 = 4;

/// Buffer pointers that may be shared: units of a kernel write to disjoint places.
#[derive(Clone, Copy)]
struct Buffers(*const *mut u8);

// SAFETY: the pointers are only handed to kernels, whose units are independent by construction.
unsafe impl Sync for Buffers {}

impl Buffers {
    fn pointer(&self) -> *const *mut u8 {
        self.0
    }
}

/// Runs `kernel` over `0..units`, at least `grain` units at a time. Returns when all are done.
pub(super) unsafe extern "C" fn xla_cpu_parallel(
    kernel: KernelFn,
    buffers: *const *mut u8,
    units: i64,
    grain: i64,
    threads: i64,
) {
    let pieces = (units / grain.max(1)).clamp(1, threads.max(1) * PIECES_A_THREAD);
    let shared = Buffers(buffers);
    pool::parallel_for(threads as usize, pieces as usize, &|piece| {
        let (begin, end) = (units * piece as i64 / pieces, units * (piece as i64 + 1) / pieces);
        // SAFETY: the generated caller passes a kernel, its buffers, and its number of units; ranges of pieces are
        // disjoint and cover all units.
        unsafe { kernel(shared.pointer(), begin, end) };
    });
}
