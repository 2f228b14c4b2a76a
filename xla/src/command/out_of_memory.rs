//! The end of the command when memory has run out: one error and exit code 1 instead of an abort.
#![expect(
    unsafe_code,
    reason = "an allocator is an unsafe trait, and the standard library cannot end a process at once"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;

use xla::hlo::out_of_memory::last_resort;

/// The system's allocator; the command ends where it has no memory for a request whose caller cannot return an error
/// ([`fallible`](xla::hlo::out_of_memory::fallible)).
#[derive(Debug)]
pub struct Allocator;

// SAFETY: every call is one of `System`, which keeps the contract; `checked` returns its argument, or not at all.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        checked(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        checked(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        checked(unsafe { System.realloc(memory, layout, size) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn checked(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        last_resort();
    }
    memory
}

/// Reports the error, without an allocation, and ends the process.
pub fn end() {
    // If standard error is closed, the exit code still tells.
    let _ = std::io::stderr()
        .write_all(b"error: memory ran out; raise the limit of this process, or take a smaller program\n");
    xla::service::remove_temporaries();
    leave(i32::from(super::failure::FAILED))
}

/// Ends the process without the destructors of its libraries, which other threads still use.
#[cfg(unix)]
fn leave(status: i32) -> ! {
    // SAFETY: the function has no preconditions.
    unsafe { libc::_exit(status) }
}

#[cfg(not(unix))]
fn leave(status: i32) -> ! {
    std::process::exit(status)
}
