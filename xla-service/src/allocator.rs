//! An allocator that has some memory left when there is none.
#![expect(unsafe_code, reason = "an allocator is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};

use xla_hlo::out_of_memory::{last_resort, release_remainder, release_reserve};

/// The system's allocator, with a reserve for requests whose caller cannot return an error: those outside of
/// [`fallible`](xla_hlo::out_of_memory::fallible).
///
/// A request that fails is made again after the [reserve](xla_hlo::out_of_memory::ensure_room) was released. The next
/// step of a compilation finds that there is none, and is an error. Without a reserve the
/// [last resort](xla_hlo::out_of_memory::last_resort) runs. For programs and shared libraries:
///
/// ```
/// # mod program {
/// #[global_allocator]
/// static ALLOCATOR: xla_service::Allocator = xla_service::Allocator;
/// # }
/// ```
#[derive(Debug)]
pub struct Allocator;

// SAFETY: every call is one of `System`, which keeps the contract; `checked` returns memory of one of these calls, or
// null.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        checked(|| unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        checked(|| unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract; `memory` is as it was after a request that failed.
        checked(|| unsafe { System.realloc(memory, layout, size) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn checked(request: impl Fn() -> *mut u8) -> *mut u8 {
    let mut memory = request();
    for release in [release_reserve, release_remainder] {
        if memory.is_null() && release() {
            memory = request();
        }
    }
    if memory.is_null() {
        last_resort();
    }
    memory
}
