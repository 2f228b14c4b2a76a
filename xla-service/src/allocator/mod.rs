//! Global allocator with a reserve for memory exhaustion.
#![expect(unsafe_code, reason = "an allocator is an unsafe trait")]

mod arena;

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;

use xla_hlo::out_of_memory::{is_fallible, last_resort, leave_thread, release_reserve};

use arena::Arena;

/// Memory for errors and for returning them to their callers.
static ARENA: Arena<{ 1 << 20 }> = Arena::new();

/// The system's allocator, with a reserve for requests whose caller cannot return an error, which are the requests
/// outside [`fallible`](xla_hlo::out_of_memory::fallible).
///
/// After a request fails, the allocator releases the [reserve](xla_hlo::out_of_memory::ensure_room) and retries. The
/// next step of a compilation finds no reserve and returns an error. Other libraries may consume the released memory.
/// If none is left, threads that can be [lost](xla_hlo::out_of_memory::leave_thread) are ended, and small requests of
/// the others come from a static 1 MiB arena. When the arena is full, the [last
/// resort](xla_hlo::out_of_memory::last_resort) runs. Programs and shared libraries install the allocator like this:
///
/// ```
/// # mod program {
/// #[global_allocator]
/// static ALLOCATOR: xla_service::Allocator = xla_service::Allocator;
/// # }
/// ```
#[derive(Debug)]
pub struct Allocator;

// SAFETY: memory comes from `System`, which upholds the contract, or from `ARENA`, whose requests do not overlap. Each
// block is returned to the allocator that it came from.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract.
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
        // SAFETY: the caller upholds the contract.
        checked(|| unsafe { System.alloc_zeroed(layout) }, from_arena)
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that `size` makes a valid layout with this alignment.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let moved = |to: *mut u8| {
            if !to.is_null() {
                // SAFETY: both blocks have at least the smaller of the two sizes, and they are different requests; the
                // caller no longer uses the old one.
                unsafe {
                    ptr::copy_nonoverlapping(memory, to, size.min(layout.size()));
                    self.dealloc(memory, layout);
                }
            }
            to
        };
        if ARENA.contains(memory) {
            // SAFETY: the caller upholds the contract.
            return moved(unsafe { self.alloc(new) });
        }
        // SAFETY: the caller upholds the contract. A failed request leaves `memory` unchanged.
        checked(|| unsafe { System.realloc(memory, layout, size) }, || moved(ARENA.take(new)))
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if ARENA.contains(memory) {
            return ARENA.release();
        }
        // SAFETY: the caller upholds the contract, and the memory came from `System`.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Makes a request, and retries it after releasing the reserve. If both fail, returns memory from `arena`.
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
