//! Parallel loops over a kernel's work items.
#![expect(unsafe_code, reason = "generated code hands in function and buffer pointers")]

use crate::kernel::KernelFn;
use crate::pool;

/// Chunks that each thread takes on average, so that a slow one does not hold up the rest.
const CHUNKS_A_THREAD: i64 = 4;

/// Buffer pointers that may be shared: work items of a kernel write to disjoint places.
#[derive(Clone, Copy)]
struct Buffers(*const *mut u8);

// SAFETY: the pointers are only handed to kernels, whose work items are independent by construction.
unsafe impl Sync for Buffers {}

impl Buffers {
    fn pointer(&self) -> *const *mut u8 {
        self.0
    }
}

/// Runs `kernel` over `0..work_items`, at least `grain` of them at a time. Returns when all are done.
pub(super) unsafe extern "C" fn xla_cpu_parallel(
    kernel: KernelFn,
    buffers: *const *mut u8,
    work_items: i64,
    grain: i64,
    threads: i64,
) {
    let chunks = (work_items / grain.max(1)).clamp(1, threads.max(1) * CHUNKS_A_THREAD);
    let shared = Buffers(buffers);
    pool::parallel_for(threads as usize, chunks as usize, &|chunk| {
        let (begin, end) = (work_items * chunk as i64 / chunks, work_items * (chunk as i64 + 1) / chunks);
        // SAFETY: the generated caller passes a kernel, its buffers, and its number of work items; the chunks' ranges
        // are disjoint and cover all work items.
        unsafe { kernel(shared.pointer(), begin, end) };
    });
}
