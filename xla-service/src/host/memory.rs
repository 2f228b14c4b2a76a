//! Host memory: 64-byte aligned blocks, always initialised.
#![expect(unsafe_code, reason = "allocates and frees raw memory")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use xla_hlo::out_of_memory::fallible;

/// Alignment of every block, in bytes: a cache line, and the widest vector register.
pub const MEMORY_ALIGNMENT: usize = 64;

/// Alignment requested from the system's allocator. Up to this value it can return zero pages without touching them.
const BASE_ALIGNMENT: usize = 16;

/// Smallest block, in bytes, that requests huge pages: they reduce TLB misses, and the first touch of each takes
/// one page fault instead of hundreds.
const HUGE_PAGES_FROM: usize = 4 << 20;

/// Owned block of memory. It is zero-initialised, so its bytes are initialised at all times.
#[derive(Debug)]
pub(super) struct HostBlock {
    /// Pointer returned by the allocator.
    base: NonNull<u8>,
    /// First aligned byte, less than `MEMORY_ALIGNMENT` after the base.
    start: NonNull<u8>,
    size: usize,
    /// Bytes of the mapping that holds the block; 0 for one of the allocator.
    mapped: usize,
}

// SAFETY: a block owns its memory and has no thread affinity; shared references to it only allow reading.
unsafe impl Send for HostBlock {}
// SAFETY: as above.
unsafe impl Sync for HostBlock {}

/// Returns the allocation request for a block of `size` usable bytes.
fn request(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(MEMORY_ALIGNMENT)?, BASE_ALIGNMENT).ok()
}

impl HostBlock {
    /// Allocates a zeroed block; `None` if the system has no memory for it.
    pub fn new(size: usize) -> Option<HostBlock> {
        let layout = request(size)?;
        // SAFETY: the layout's size is at least MEMORY_ALIGNMENT, hence not zero.
        let base = NonNull::new(fallible(|| unsafe { alloc_zeroed(layout) }))?;
        if size >= HUGE_PAGES_FROM {
            ask_for_huge_pages(base, layout.size());
        }
        let padding = base.as_ptr().align_offset(MEMORY_ALIGNMENT);
        // SAFETY: padding < MEMORY_ALIGNMENT, and the allocation is MEMORY_ALIGNMENT bytes longer than size, so the
        // pointer is inside of it.
        let start = unsafe { base.add(padding) };
        Some(HostBlock { base, start, size, mapped: 0 })
    }

    /// Allocates zeros in separate pages, followed by a page without access: a read or write past the last multiple of
    /// [`MEMORY_ALIGNMENT`] ends the process. `None` if the system has no memory for it.
    #[cfg(target_os = "linux")]
    pub fn guarded(size: usize) -> Option<HostBlock> {
        use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
        let page = rustix::param::page_size();
        let usable = size.max(1).checked_next_multiple_of(page)?;
        let mapped = usable.checked_add(page)?;
        // SAFETY: new pages at a place that the system chooses are used by no one.
        let pages = unsafe { mmap_anonymous(std::ptr::null_mut(), mapped, ProtFlags::empty(), MapFlags::PRIVATE) };
        let base = NonNull::new(pages.ok()?.cast::<u8>())?;
        // SAFETY: the range is the mapping without its last page.
        if unsafe { mprotect(base.as_ptr().cast(), usable, MprotectFlags::READ | MprotectFlags::WRITE) }.is_err() {
            // SAFETY: the mapping was made above, and nothing refers to it.
            unsafe { munmap(base.as_ptr().cast(), mapped) }.unwrap_or_default();
            return None;
        }
        // SAFETY: `size` bytes are usable, and so are those up to the next multiple of the alignment, which divides a
        // page.
        let start = unsafe { base.add(usable - size.next_multiple_of(MEMORY_ALIGNMENT)) };
        Some(HostBlock { base, start, size, mapped })
    }

    /// Allocates zeros without a guard page, which only Linux has.
    #[cfg(not(target_os = "linux"))]
    pub fn guarded(size: usize) -> Option<HostBlock> {
        HostBlock::new(size)
    }

    /// Returns the number of usable bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the first byte; `size` bytes from there on may be read while the block is borrowed.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns all bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: start is valid for size bytes (see `new`), they are initialised, and there are no writers while self
        // is borrowed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.size) }
    }

    /// Returns all bytes, for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and self is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.size) }
    }
}

/// `madvise(MADV_HUGEPAGE)`: requests huge pages. The system may refuse, which leaves the memory unchanged.
#[cfg(target_os = "linux")]
fn ask_for_huge_pages(base: NonNull<u8>, size: usize) {
    let padding = base.as_ptr().align_offset(rustix::param::page_size());
    if let Some(size) = size.checked_sub(padding) {
        // SAFETY: the range is inside the allocation, and the advice does not change its contents.
        let advised = unsafe {
            let start = base.as_ptr().add(padding);
            rustix::mm::madvise(start.cast(), size, rustix::mm::Advice::LinuxHugepage)
        };
        // After a refusal the block has ordinary pages.
        advised.unwrap_or_default();
    }
}

/// Does nothing: other systems choose page sizes themselves.
#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages(_: NonNull<u8>, _: usize) {}

impl Drop for HostBlock {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        if self.mapped > 0 {
            // SAFETY: `base` is a mapping of this size, made by `guarded`, and the block was its only user.
            unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.mapped) }.unwrap_or_default();
            return;
        }
        if let Some(layout) = request(self.size) {
            // SAFETY: base came from `alloc_zeroed` with this very layout, since size never changes.
            unsafe { dealloc(self.base.as_ptr(), layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_zero_and_writable() {
        let make = [HostBlock::new, HostBlock::guarded];
        for (size, make) in [0, 1, 63, 64, 65, 4096, 100_000].into_iter().flat_map(|size| make.map(|make| (size, make)))
        {
            let mut block = make(size).unwrap();
            assert_eq!(block.start().as_ptr() as usize % MEMORY_ALIGNMENT, 0);
            assert_eq!(block.bytes().len(), size);
            assert!(block.bytes().iter().all(|&b| b == 0));
            block.bytes_mut().fill(7);
            assert!(block.bytes().iter().all(|&b| b == 7));
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn guarded_blocks_end_at_a_page() {
        for size in [1, 64, 100, 4096, 5000] {
            let block = HostBlock::guarded(size).unwrap();
            let end = block.start().as_ptr().addr() + size;
            let page = rustix::param::page_size();
            assert_eq!(end.next_multiple_of(MEMORY_ALIGNMENT) % page, 0);
            assert!(block.mapped >= size + page);
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(HostBlock::new(usize::MAX).is_none());
        assert!(HostBlock::new(usize::MAX / 2).is_none());
        assert!(HostBlock::guarded(usize::MAX).is_none());
    }
}
