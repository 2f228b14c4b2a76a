//! An allocator that has some memory left when there is none.
#![expect(unsafe_code, reason = "an allocator is an unsafe trait")]

mod arena;

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;

use xla_hlo::out_of_memory::{is_fallible, last_resort, leave_thread, release_reserve};

use arena::Arena;

/// Memory for errors, and for the path back to their callers.
static ARENA: Arena<{ 1 << 20 }> = Arena::new();

/// The system's allocator, with a reserve for requests whose caller cannot return an error: those outside of
/// [`fallible`](xla_hlo::out_of_memory::fallible).
///
/// A request that fails is made again after the [reserve](xla_hlo::out_of_memory::ensure_room) was released. The next
/// step of a compilation finds that there is none, and is an error. Libraries share the released memory; where they
/// leave none, threads that can be [lost](xla_hlo::out_of_memory::leave_thread) are, and small requests of others are
/// served from 1 MiB of this allocator's own. When it is full the [last resort](xla_hlo::out_of_memory::last_resort)
/// runs. For programs and shared libraries:
///
/// ```
/// # mod program {
/// #[global_allocator]
/// static ALLOCATOR: xla_service::Allocator = xla_service::Allocator;
/// # }
/// ```
#[derive(Debug)]
pub struct Allocator;

// SAFETY: memory comes from `System`, which keeps the contract, or from `ARENA`, whose requests do not overlap, and is
// returned to the one that it came from.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        checked(|| unsafe { System.alloc(layout) }, || ARENA.take(layout))
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let from_arena = || {
            let memory = ARENA.take(layout);
            if !memory.is_null() {
                // SAFETY: the request has this size, and other requests do not overlap it.
                unsafe { memory.write_bytes(0, layout.size()) };
            }
            memory
        };
        // SAFETY: the caller keeps the contract.
        checked(|| unsafe { System.alloc_zeroed(layout) }, from_arena)
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees a size that makes a layout with this alignment.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let moved = |to: *mut u8| {
            if !to.is_null() {
                // SAFETY: both have the smaller size's bytes, and are different requests; the caller no longer uses the
                // old one.
                unsafe {
                    ptr::copy_nonoverlapping(memory, to, size.min(layout.size()));
                    self.dealloc(memory, layout);
                }
            }
            to
        };
        if ARENA.contains(memory) {
            // SAFETY: the caller keeps the contract.
            return moved(unsafe { self.alloc(new) });
        }
        // SAFETY: the caller keeps the contract; `memory` is as it was after a request that failed.
        checked(|| unsafe { System.realloc(memory, layout, size) }, || moved(ARENA.take(new)))
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if ARENA.contains(memory) {
            return ARENA.release();
        }
        // SAFETY: the caller keeps the contract, and the memory is one of `System`.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Memory of `request`, which is made again after the reserve was released, or of `arena`.
fn checked(request: impl Fn() -> *mut u8, arena: impl FnOnce() -> *mut u8) -> *mut u8 {
    let mut memory = request();
    if memory.is_null() && release_reserve() {
        memory = request();
    }
    if memory.is_null() {
        leave_thread();
    }
    if memory.is_null() && !is_fallible() {
        memory = arena();
    }
    if memory.is_null() {
        last_resort();
    }
    memory
}
