//! Memory of a thread that is kept from one chunk of work to the next.

use std::cell::Cell;
use std::mem::MaybeUninit;

/// Bytes that a thread keeps; larger memory is given back.
const KEPT_BYTES: usize = 16 << 20;

/// A line of the cache: where memory begins.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line {
    _bytes: [MaybeUninit<u8>; 64],
}

thread_local! {
    static KEPT: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// Calls `work` with the first byte of `bytes` bytes of uninitialised memory, aligned to a cache line.
pub(super) fn with_memory<R>(bytes: usize, work: impl FnOnce(*mut u8) -> R) -> R {
    // Taken out, so that work within work gets memory of its own.
    let mut lines = KEPT.take();
    lines.clear();
    lines.reserve(bytes.div_ceil(size_of::<Line>()));
    let result = work(lines.as_mut_ptr().cast());
    if lines.capacity() * size_of::<Line>() <= KEPT_BYTES {
        KEPT.set(lines);
    }
    result
}
