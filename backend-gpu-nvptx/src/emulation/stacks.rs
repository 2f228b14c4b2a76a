//! Stacks of fibers.
#![expect(unsafe_code, reason = "a stack is described by its addresses")]

use corosensei::stack::{DefaultStack, Stack, StackPointer};
use xla_hlo::{Error, Result};

/// Size of a stack in bytes; kernels keep no arrays on it.
const STACK_BYTES: usize = 64 << 10;
/// Size of a page in bytes: addresses with a distance of pages compete for the same lines of a level 1 cache.
const PAGE_BYTES: usize = 4 << 10;
/// Difference between the offsets of consecutive stacks: an odd number of cache lines that has room for the frames of a
/// small kernel.
const OFFSET_BYTES: usize = 7 * 64;

/// Stacks of finished fibers, for those of the next block: allocating a stack takes longer than running a block.
#[derive(Default)]
pub(super) struct Stacks {
    idle: Vec<OffsetStack>,
    created: usize,
}

impl Stacks {
    pub(super) fn take(&mut self) -> Result<OffsetStack> {
        if let Some(stack) = self.idle.pop() {
            return Ok(stack);
        }
        let stack = DefaultStack::new(STACK_BYTES).map_err(|e| {
            Error::resource_exhausted(format!("the stack for a thread of a kernel cannot be allocated: {e}"))
        })?;
        let offset = self.created * OFFSET_BYTES % PAGE_BYTES;
        self.created += 1;
        Ok(OffsetStack { stack, offset })
    }

    pub(super) fn put_back(&mut self, stacks: impl Iterator<Item = OffsetStack>) {
        self.idle.extend(stacks);
    }
}

/// Stack whose first frame is at an offset from a page boundary. Without offsets, the frames of all threads of a block
/// are in the same sets of the cache, and most switches between threads miss.
pub(super) struct OffsetStack {
    stack: DefaultStack,
    /// Bytes below the page boundary; a multiple of a cache line, and less than a page.
    offset: usize,
}

// SAFETY: the addresses are those of `DefaultStack`, with its guard page, but for a base that is less than a page lower;
// 60 KiB remain of 64. Offsets are multiples of 64 bytes, so the base is as aligned as a stack must be.
unsafe impl Stack for OffsetStack {
    fn base(&self) -> StackPointer {
        let base = self.stack.base();
        StackPointer::new(base.get() - self.offset).unwrap_or(base)
    }

    fn limit(&self) -> StackPointer {
        self.stack.limit()
    }

    #[cfg(windows)]
    fn teb_fields(&self) -> corosensei::stack::StackTebFields {
        self.stack.teb_fields()
    }

    #[cfg(windows)]
    fn update_teb_fields(&mut self, stack_limit: usize, guaranteed_stack_bytes: usize) {
        self.stack.update_teb_fields(stack_limit, guaranteed_stack_bytes)
    }
}
