//! Parallel loops over a kernel's work items.
#![expect(unsafe_code, reason = "generated code hands in function and buffer pointers")]

use std::sync::atomic::{AtomicU64, Ordering};

use smallvec::SmallVec;

use crate::kernel::KernelFn;
use crate::pool;

/// Average number of chunks for each thread, for load balancing.
const CHUNKS_A_THREAD: i64 = 4;

/// Buffer pointers that threads may share: work items of a kernel write disjoint memory.
#[derive(Clone, Copy)]
struct Buffers(*const *mut u8);

// SAFETY: the pointers are only passed to kernels, whose work items are independent by construction.
unsafe impl Sync for Buffers {}

impl Buffers {
    fn pointer(&self) -> *const *mut u8 {
        self.0
    }
}

/// Runs `kernel` over `0..work_items`, at least `grain` of them in a chunk. Returns when all are done.
pub(super) unsafe extern "C" fn xla_cpu_parallel(
    kernel: KernelFn,
    buffers: *const *mut u8,
    work_items: i64,
    grain: i64,
    threads: i64,
) {
    let shared = Buffers(buffers);
    in_chunks(work_items, grain, threads, &|begin, end| {
        // SAFETY: the generated caller passes a kernel, its buffers, and its number of work items; the chunks' ranges
        // are disjoint and cover all work items.
        unsafe { kernel(shared.pointer(), begin, end) };
    });
}

/// Runs a kernel like [`xla_cpu_parallel`]. The last of its `count` pointers points to scratch memory of
/// `scratch_bytes` for each thread (at most for each work item). A chunk owns one part of it while it runs.
pub(super) unsafe extern "C" fn xla_cpu_parallel_with_scratch(
    kernel: KernelFn,
    buffers: *const *mut u8,
    work_items: i64,
    grain: i64,
    threads: i64,
    count: i64,
    scratch_bytes: i64,
) {
    let shared = Buffers(buffers);
    let parts = Parts::new(threads.min(work_items).max(1) as usize);
    in_chunks(work_items, grain, threads, &|begin, end| {
        // SAFETY: the generated caller passes `count` pointers.
        let pointers = unsafe { std::slice::from_raw_parts(shared.pointer(), count.max(1) as usize) };
        let mut pointers: SmallVec<[*mut u8; 16]> = pointers.into();
        let part = parts.take();
        if let Some(scratch) = pointers.last_mut() {
            *scratch = scratch.wrapping_add(part * scratch_bytes as usize);
        }
        // SAFETY: as above. No other chunk uses this part of the scratch memory until it is released. The number of
        // parts is the maximum number of concurrent chunks, and the lowest free part is taken.
        unsafe { kernel(pointers.as_ptr(), begin, end) };
        parts.give_back(part);
    });
}

/// Splits work items into chunks, and runs them on threads.
fn in_chunks(work_items: i64, grain: i64, threads: i64, run: &(dyn Fn(i64, i64) + Sync)) {
    let chunks = (work_items / grain.max(1)).clamp(1, threads.max(1) * CHUNKS_A_THREAD);
    pool::parallel_for(threads as usize, chunks as usize, &|chunk| {
        run(work_items * chunk as i64 / chunks, work_items * (chunk as i64 + 1) / chunks);
    });
}

/// Set of numbers, each with at most one owner at a time.
struct Parts {
    /// Bit set of the numbers without an owner.
    free: SmallVec<[AtomicU64; 2]>,
}

impl Parts {
    fn new(count: usize) -> Parts {
        let word = |first: usize| match count - first {
            64.. => u64::MAX,
            few => (1 << few) - 1,
        };
        Parts { free: (0..count).step_by(64).map(|first| AtomicU64::new(word(first))).collect() }
    }

    /// Takes the lowest free number. Spins until there is one.
    fn take(&self) -> usize {
        loop {
            for (number, word) in self.free.iter().enumerate() {
                let free = word.load(Ordering::Relaxed);
                let bit = free.trailing_zeros();
                // Acquire: synchronizes with the writes of the previous owner.
                if free != 0
                    && word.compare_exchange(free, free & !(1 << bit), Ordering::Acquire, Ordering::Relaxed).is_ok()
                {
                    return number * 64 + bit as usize;
                }
            }
            std::hint::spin_loop();
        }
    }

    fn give_back(&self, part: usize) {
        self.free[part / 64].fetch_or(1 << (part % 64), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_one_owner_at_a_time() {
        for count in [1, 3, 64, 65, 200] {
            let parts = Parts::new(count);
            let taken: Vec<usize> = (0..count).map(|_| parts.take()).collect();
            assert_eq!(taken, (0..count).collect::<Vec<_>>());
            taken.iter().for_each(|&part| parts.give_back(part));
            assert_eq!(parts.take(), 0);
        }
        let parts = Parts::new(2);
        let owners = [AtomicU64::new(0), AtomicU64::new(0)];
        pool::parallel_for(2, 1000, &|_| {
            let part = parts.take();
            assert_eq!(owners[part].fetch_add(1, Ordering::SeqCst), 0);
            owners[part].fetch_sub(1, Ordering::SeqCst);
            parts.give_back(part);
        });
    }
}
