//! Scratch memory of a thread, reused between chunks of work.

use std::cell::Cell;
use std::mem::MaybeUninit;

/// Maximum number of bytes that a thread keeps; larger memory is freed after use.
const KEPT_BYTES: usize = 16 << 20;

/// Cache line, the alignment of scratch memory.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line {
    _bytes: [MaybeUninit<u8>; 64],
}

thread_local! {
    static KEPT: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// Calls `work` with a pointer to `bytes` bytes of uninitialized memory, aligned to a cache line.
pub(super) fn with_memory<R>(bytes: usize, work: impl FnOnce(*mut u8) -> R) -> R {
    // Take the memory out of the cell, so that nested work gets separate memory.
    let mut lines = KEPT.take();
    lines.clear();
    lines.reserve(bytes.div_ceil(size_of::<Line>()));
    let result = work(lines.as_mut_ptr().cast());
    if lines.capacity() * size_of::<Line>() <= KEPT_BYTES {
        KEPT.set(lines);
    }
    result
}
