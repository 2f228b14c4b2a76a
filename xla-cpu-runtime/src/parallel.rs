//! Parallel loops over a kernel's work items.
#![expect(unsafe_code, reason = "generated code hands in function and buffer pointers")]

use std::sync::atomic::{AtomicU64, Ordering};

use smallvec::SmallVec;

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
    let shared = Buffers(buffers);
    in_chunks(work_items, grain, threads, &|begin, end| {
        // SAFETY: the generated caller passes a kernel, its buffers, and its number of work items; the chunks' ranges
        // are disjoint and cover all work items.
        unsafe { kernel(shared.pointer(), begin, end) };
    });
}

/// As [`xla_cpu_parallel`] for a kernel whose last of `count` pointers is to scratch memory, `scratch_bytes` for each
/// thread and no more than for each work item: whoever runs a chunk has a part of it meanwhile.
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
        // SAFETY: the generated caller passes as many pointers as it says.
        let pointers = unsafe { std::slice::from_raw_parts(shared.pointer(), count.max(1) as usize) };
        let mut pointers: SmallVec<[*mut u8; 16]> = pointers.into();
        let part = parts.take();
        if let Some(scratch) = pointers.last_mut() {
            *scratch = scratch.wrapping_add(part * scratch_bytes as usize);
        }
        // SAFETY: as above; nobody else has this part of the scratch memory until it is given back, and there are as
        // many parts as chunks that run at once, and the lowest free one is taken.
        unsafe { kernel(pointers.as_ptr(), begin, end) };
        parts.give_back(part);
    });
}

/// Cuts work items into chunks, and runs them on threads.
fn in_chunks(work_items: i64, grain: i64, threads: i64, run: &(dyn Fn(i64, i64) + Sync)) {
    let chunks = (work_items / grain.max(1)).clamp(1, threads.max(1) * CHUNKS_A_THREAD);
    pool::parallel_for(threads as usize, chunks as usize, &|chunk| {
        run(work_items * chunk as i64 / chunks, work_items * (chunk as i64 + 1) / chunks);
    });
}

/// Numbers of which each has one owner at a time.
struct Parts {
    /// A set bit for each that nobody has.
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

    /// The lowest number that is free. There must be one, now or soon.
    fn take(&self) -> usize {
        loop {
            for (number, word) in self.free.iter().enumerate() {
                let free = word.load(Ordering::Relaxed);
                let bit = free.trailing_zeros();
                // What the owner before wrote there happened before.
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
