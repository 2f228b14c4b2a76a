//! `parallel_for`: ranges of a kernel's units on rayon's threads and on the calling one.
#![expect(unsafe_code, reason = "generated code hands in function and buffer pointers")]

use std::sync::atomic::{AtomicI64, Ordering};

/// A kernel: buffer pointers, first unit, one past the last unit.
pub(super) type KernelFn = unsafe extern "C" fn(*const *mut u8, i64, i64);

/// Pieces that each thread takes on average, so that a slow one does not hold up the rest.
const PIECES_A_THREAD: i64 = 4;

/// Buffer pointers that may be shared: units of a kernel write to disjoint places.
#[derive(Clone, Copy)]
struct Buffers(*const *mut u8);

// SAFETY: the pointers are only handed to kernels, whose units are independent by construction.
unsafe impl Send for Buffers {}
// SAFETY: as above.
unsafe impl Sync for Buffers {}

impl Buffers {
    fn pointer(self) -> *const *mut u8 {
        self.0
    }
}

/// Runs `kernel` over `0..units`, at least `grain` units at a time. Returns when all are done.
///
/// The calling thread takes part, so that nothing is lost when the others are busy or asleep.
pub(super) unsafe extern "C" fn xla_cpu_parallel(kernel: KernelFn, buffers: *const *mut u8, units: i64, grain: i64) {
    let threads = rayon::current_num_threads() as i64;
    let pieces = (units / grain.max(1)).clamp(1, threads * PIECES_A_THREAD);
    if pieces == 1 || threads == 1 {
        // SAFETY: the generated caller passes a kernel, its buffers, and its number of units.
        unsafe { kernel(buffers, 0, units) };
        return;
    }
    let shared = Buffers(buffers);
    let next = AtomicI64::new(0);
    let work = || loop {
        let piece = next.fetch_add(1, Ordering::Relaxed);
        if piece >= pieces {
            return;
        }
        let (begin, end) = (units * piece / pieces, units * (piece + 1) / pieces);
        // SAFETY: as above; ranges of pieces are disjoint and cover all units.
        unsafe { kernel(shared.pointer(), begin, end) };
    };
    rayon::in_place_scope(|scope| {
        for _ in 1..threads.min(pieces) {
            scope.spawn(|_| work());
        }
        work();
    });
}
