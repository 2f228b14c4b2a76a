//! Static arena for small requests that the system's allocator can no longer serve.
#![expect(unsafe_code, reason = "threads share the bytes")]

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Size of the largest request that the arena serves, in bytes.
const LARGEST: usize = 64 << 10;

/// Bump allocator over `N` static bytes. The bump pointer returns to the start once all requests are freed.
///
/// The arena is lock-free and makes no system call: its state is one word. The bytes are part of the process image.
/// They count as address space from the start, and no other allocator in the process can take them.
#[repr(align(4096))]
pub(super) struct Arena<const N: usize> {
    bytes: UnsafeCell<[u8; N]>,
    /// Number of live requests in the upper half, offset of the first free byte in the lower half.
    state: AtomicU64,
}

// SAFETY: the bytes are accessed only through pointers that `take` returned, and no byte belongs to two live requests.
unsafe impl<const N: usize> Sync for Arena<N> {}

impl<const N: usize> Arena<N> {
    /// Creates an arena with all bytes free.
    pub(super) const fn new() -> Self {
        assert!(N <= u32::MAX as usize);
        Arena { bytes: UnsafeCell::new([0; N]), state: AtomicU64::new(0) }
    }

    /// Returns memory of this layout; null if the request is too large or the arena has too little space left.
    pub(super) fn take(&self, layout: Layout) -> *mut u8 {
        if layout.size() > LARGEST || layout.align() > align_of::<Self>() {
            return ptr::null_mut();
        }
        let mut start = 0;
        let taken = self.state.fetch_update(Ordering::Acquire, Ordering::Relaxed, |state| {
            let (live, free) = unpack(state);
            start = (free as usize).next_multiple_of(layout.align());
            let end = start + layout.size();
            (end <= N).then(|| pack(live + 1, end as u32))
        });
        match taken {
            Ok(_) => self.start().wrapping_add(start),
            Err(_) => ptr::null_mut(),
        }
    }

    /// Whether [`take`](Self::take) returned the pointer.
    pub(super) fn contains(&self, memory: *mut u8) -> bool {
        (self.start().addr()..self.start().addr() + N).contains(&memory.addr())
    }

    /// Frees one request; the arena does not distinguish between requests.
    pub(super) fn release(&self) {
        let released = self.state.fetch_update(Ordering::Release, Ordering::Relaxed, |state| {
            let (live, free) = unpack(state);
            let live = live.checked_sub(1)?;
            Some(pack(live, if live == 0 { 0 } else { free }))
        });
        debug_assert!(released.is_ok(), "more requests freed than taken");
    }

    fn start(&self) -> *mut u8 {
        self.bytes.get().cast()
    }
}

fn pack(live: u32, free: u32) -> u64 {
    u64::from(live) << 32 | u64::from(free)
}

fn unpack(state: u64) -> (u32, u32) {
    ((state >> 32) as u32, state as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    #[test]
    fn requests_do_not_overlap_and_the_bytes_are_used_again_when_all_are_freed() {
        static ARENA: Arena<4096> = Arena::new();
        let first = ARENA.take(layout(3, 1));
        let second = ARENA.take(layout(64, 64));
        assert_eq!(second.addr() - first.addr(), 64);
        assert_eq!(second.addr() % 64, 0);
        assert!(ARENA.contains(second) && !ARENA.contains(ptr::null_mut()));
        assert!(!ARENA.contains(first.wrapping_add(4096)));
        assert!(ARENA.take(layout(4096, 1)).is_null(), "128 bytes are taken");
        ARENA.release();
        assert_eq!(ARENA.take(layout(1, 1)).addr() - first.addr(), 128, "one request lives");
        ARENA.release();
        ARENA.release();
        assert_eq!(ARENA.take(layout(4096, 1)), first);
    }

    #[test]
    fn large_requests_and_alignments_are_refused() {
        static ARENA: Arena<{ 2 * LARGEST }> = Arena::new();
        assert!(ARENA.take(layout(LARGEST + 1, 1)).is_null());
        assert!(ARENA.take(layout(1, 8192)).is_null());
        assert!(!ARENA.take(layout(LARGEST, 1)).is_null());
    }

    #[test]
    fn threads_take_and_free_at_the_same_time() {
        // Large enough even if there is always a thread with a live request.
        static ARENA: Arena<{ 4 * 1000 * 16 }> = Arena::new();
        std::thread::scope(|scope| {
            for value in 1..=4_u8 {
                scope.spawn(move || {
                    for _ in 0..1000 {
                        let memory = ARENA.take(layout(16, 16));
                        assert!(!memory.is_null());
                        // SAFETY: the request has 16 bytes, and no other thread has a request that contains them.
                        unsafe { memory.write_bytes(value, 16) };
                        std::thread::yield_now();
                        // SAFETY: as above; the bytes are written.
                        let bytes = unsafe { std::slice::from_raw_parts(memory, 16) };
                        assert!(bytes.iter().all(|&byte| byte == value));
                        ARENA.release();
                    }
                });
            }
        });
        assert_eq!(ARENA.state.load(Ordering::Relaxed), 0);
    }
}
