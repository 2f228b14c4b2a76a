//! Pool of host memory, which reuses pages that are already mapped.
//!
//! Fresh pages cost more than many of the kernels that fill them, because the system zeroes each page at its first
//! touch. Therefore freed blocks are kept in free lists by size class, up to a limit; the least recently used class is
//! evicted first.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use xla_hlo::{Error, Result};

use super::external_memory::ExternalMemory;
use super::memory::{HostBlock, MEMORY_ALIGNMENT};
use crate::executor::{Allocation, MemoryStats};

/// Memory pool. Clones are handles to the same pool. All methods may be called from any thread.
#[derive(Clone, Debug)]
pub struct MemoryPool(Arc<SharedPool>);

/// Limits of a pool, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Maximum in use; larger requests are [`Error::ResourceExhausted`]. `None` for the system's limit.
    pub in_use: Option<usize>,
    /// Maximum kept in the free lists.
    pub retained: usize,
}

#[derive(Debug)]
struct SharedPool {
    limits: PoolLimits,
    /// Number of blocks handed out so far, for a dirty pool.
    dirtied: Option<AtomicU64>,
    state: Mutex<PoolState>,
}

#[derive(Debug, Default)]
struct PoolState {
    classes: Vec<FreeList>,
    stats: MemoryStats,
    clock: u64,
}

/// Free blocks of one size class, the most recently used last.
#[derive(Debug, Default)]
struct FreeList {
    blocks: Vec<HostBlock>,
    last_used: u64,
}

/// Memory of a pool, returned to it when dropped; or external memory, which is read-only.
#[derive(Debug)]
pub struct HostMemory {
    origin: Origin,
    size: usize,
}

#[derive(Debug)]
enum Origin {
    /// Block of a pool, present until dropped.
    Pool(Option<HostBlock>, MemoryPool),
    Outside(ExternalMemory),
}

/// Returns a pseudo-random byte to fill memory with: one of four, always the same for the same number.
pub fn dirt(number: u64) -> u8 {
    const BYTES: [u8; 4] = [0xff, 0x5a, 0x81, 0x7f];
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = number.wrapping_mul(ODD);
    BYTES[((mixed ^ mixed >> 29).wrapping_mul(ODD) >> 62) as usize]
}

impl Default for PoolLimits {
    /// Limits usage to the machine's memory and the free lists to a quarter of it.
    fn default() -> Self {
        let memory = super::machine::machine().memory_bytes;
        PoolLimits { in_use: memory, retained: memory.map_or(1 << 30, |bytes| bytes / 4) }
    }
}

impl MemoryPool {
    /// Creates an empty pool.
    pub fn new(limits: PoolLimits) -> MemoryPool {
        MemoryPool(Arc::new(SharedPool { limits, dirtied: None, state: Mutex::default() }))
    }

    /// Creates an empty pool that fills memory at each allocation with one of a few bytes that encode NaN, large or
    /// invalid numbers of most types. Reads of uninitialised memory then return different values each time. Each
    /// allocation is a guarded block, which is never reused.
    pub fn dirty(limits: PoolLimits) -> MemoryPool {
        MemoryPool(Arc::new(SharedPool { limits, dirtied: Some(AtomicU64::new(0)), state: Mutex::default() }))
    }

    /// Allocates memory of `size` bytes, aligned to [`MEMORY_ALIGNMENT`]. Contents are zeros or those of an earlier
    /// user.
    pub fn allocate(&self, size: usize) -> Result<HostMemory> {
        let is_dirty = self.0.dirtied.is_some();
        let class = if is_dirty { SizeClass::exact(size) } else { SizeClass::of(size) };
        let class = class.ok_or_else(|| self.exhausted(size))?;
        if let Some(block) = self.take_warm(class) {
            return Ok(self.wrap(block, size));
        }
        // Freed outside the lock: returning pages to the system is slow.
        let evicted = self.reserve(class, size)?;
        drop(evicted);
        let make = if is_dirty { HostBlock::guarded } else { HostBlock::new };
        let block = make(class.bytes).or_else(|| {
            self.trim();
            make(class.bytes)
        });
        let Some(block) = block else {
            self.state().stats.bytes_in_use -= class.bytes;
            return Err(self.exhausted(size));
        };
        Ok(self.wrap(block, size))
    }

    /// Returns the bytes in use and pooled.
    pub fn stats(&self) -> MemoryStats {
        MemoryStats { bytes_limit: self.0.limits.in_use, ..self.state().stats }
    }

    /// Returns all pooled memory to the system.
    pub fn trim(&self) {
        let mut state = self.state();
        state.stats.bytes_pooled = 0;
        let classes = std::mem::take(&mut state.classes);
        drop(state);
        drop(classes);
    }

    fn wrap(&self, mut block: HostBlock, size: usize) -> HostMemory {
        if let Some(dirtied) = &self.0.dirtied {
            block.bytes_mut().fill(dirt(dirtied.fetch_add(1, Ordering::Relaxed)));
        }
        HostMemory { origin: Origin::Pool(Some(block), self.clone()), size }
    }

    fn take_warm(&self, class: SizeClass) -> Option<HostBlock> {
        let mut state = self.state();
        state.clock += 1;
        let clock = state.clock;
        let list = state.classes.get_mut(class.index)?;
        let block = list.blocks.pop()?;
        list.last_used = clock;
        state.stats.bytes_pooled -= class.bytes;
        state.stats.pool_hits += 1;
        state.count_use(class.bytes);
        Some(block)
    }

    /// Counts a new block as in use, and evicts pooled blocks to stay within the limit.
    fn reserve(&self, class: SizeClass, size: usize) -> Result<Vec<HostBlock>> {
        let mut state = self.state();
        let mut evicted = Vec::new();
        if let Some(limit) = self.0.limits.in_use {
            if state.stats.bytes_in_use.checked_add(class.bytes).is_none_or(|sum| sum > limit) {
                drop(state);
                return Err(self.exhausted(size));
            }
            let room = limit - state.stats.bytes_in_use - class.bytes;
            state.evict_to(room, &mut evicted);
        }
        state.count_use(class.bytes);
        Ok(evicted)
    }

    fn give_back(&self, block: HostBlock) {
        let bytes = block.size();
        let mut evicted = Vec::new();
        let mut state = self.state();
        state.stats.bytes_in_use -= bytes;
        match SizeClass::of(bytes) {
            Some(class) if bytes <= self.0.limits.retained && self.0.dirtied.is_none() => {
                state.evict_to(self.0.limits.retained - bytes, &mut evicted);
                state.keep(class, block);
            }
            Some(_) | None => evicted.push(block),
        }
        drop(state);
        drop(evicted);
    }

    fn exhausted(&self, size: usize) -> Error {
        let stats = self.stats();
        let limit = stats.bytes_limit.map_or("no limit is set".to_string(), |l| format!("the limit is {l} bytes"));
        Error::resource_exhausted(format!(
            "no host memory for {size} more bytes: {} are in use, {limit}",
            stats.bytes_in_use
        ))
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        // No code panics while the lock is held; even then the free lists would be consistent.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryPool {
    fn default() -> Self {
        MemoryPool::new(PoolLimits::default())
    }
}

impl PoolState {
    fn count_use(&mut self, bytes: usize) {
        self.stats.allocations += 1;
        self.stats.bytes_in_use += bytes;
        self.stats.peak_bytes_in_use = self.stats.peak_bytes_in_use.max(self.stats.bytes_in_use);
    }

    fn keep(&mut self, class: SizeClass, block: HostBlock) {
        if self.classes.len() <= class.index {
            self.classes.resize_with(class.index + 1, FreeList::default);
        }
        self.clock += 1;
        self.stats.bytes_pooled += block.size();
        let list = &mut self.classes[class.index];
        list.last_used = self.clock;
        list.blocks.push(block);
    }

    /// Evicts blocks until at most `limit` bytes are pooled, from the least recently used class first.
    fn evict_to(&mut self, limit: usize, evicted: &mut Vec<HostBlock>) {
        while self.stats.bytes_pooled > limit {
            let oldest = self.classes.iter_mut().filter(|l| !l.blocks.is_empty()).min_by_key(|l| l.last_used);
            let Some(block) = oldest.and_then(|list| list.blocks.pop()) else { return };
            self.stats.bytes_pooled -= block.size();
            evicted.push(block);
        }
    }
}

/// Size class. Sizes are rounded up to multiples of 64 bytes up to 256, then to four steps per power of two. Rounding
/// adds at most 25 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SizeClass {
    index: usize,
    bytes: usize,
}

impl SizeClass {
    const FINE_LIMIT: usize = 4 * MEMORY_ALIGNMENT;

    /// The size alone, in a pool that keeps nothing.
    fn exact(size: usize) -> Option<SizeClass> {
        Some(SizeClass { index: 0, bytes: size.max(1).checked_next_multiple_of(MEMORY_ALIGNMENT)? })
    }

    fn of(size: usize) -> Option<SizeClass> {
        let size = size.max(1);
        if size <= Self::FINE_LIMIT {
            let steps = size.div_ceil(MEMORY_ALIGNMENT);
            return Some(SizeClass { index: steps - 1, bytes: steps * MEMORY_ALIGNMENT });
        }
        // 2^log < size <= 2^(log+1), in steps of a quarter of 2^log.
        let log = (size - 1).ilog2() as usize;
        let step = 1usize << (log - 2);
        let bytes = size.div_ceil(step).checked_mul(step)?;
        let sub = (bytes - (1 << log)) / step - 1;
        let doublings = log - Self::FINE_LIMIT.ilog2() as usize;
        Some(SizeClass { index: 4 + 4 * doublings + sub, bytes })
    }
}

impl HostMemory {
    /// Wraps external memory.
    pub(super) fn outside(memory: ExternalMemory) -> HostMemory {
        HostMemory { size: memory.bytes().len(), origin: Origin::Outside(memory) }
    }

    /// Returns all bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.origin {
            Origin::Pool(block, _) => block.as_ref().map_or(&[], |block| &block.bytes()[..self.size]),
            Origin::Outside(memory) => memory.bytes(),
        }
    }

    /// Returns all bytes, for writing; empty for read-only memory.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.origin {
            Origin::Pool(block, _) => block.as_mut().map_or(&mut [], |block| &mut block.bytes_mut()[..self.size]),
            Origin::Outside(_) => &mut [],
        }
    }

    /// Returns the first byte for compiled code, which may read while this value is borrowed, and may write while it is
    /// borrowed mutably and is not read-only.
    pub fn as_ptr(&self) -> *mut u8 {
        match &self.origin {
            Origin::Pool(block, _) => block.as_ref().map_or(std::ptr::null_mut(), |block| block.start().as_ptr()),
            Origin::Outside(memory) => memory.start().as_ptr(),
        }
    }
}

impl Allocation for HostMemory {
    fn byte_size(&self) -> usize {
        self.size
    }

    fn host_bytes(&self) -> Option<&[u8]> {
        Some(self.bytes())
    }

    fn host_bytes_mut(&mut self) -> Option<&mut [u8]> {
        (!self.is_read_only()).then(|| self.bytes_mut())
    }

    fn is_read_only(&self) -> bool {
        matches!(self.origin, Origin::Outside(_))
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if let Origin::Pool(block, pool) = &mut self.origin {
            block.take().into_iter().for_each(|block| pool.give_back(block));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(in_use: usize, retained: usize) -> MemoryPool {
        MemoryPool::new(PoolLimits { in_use: Some(in_use), retained })
    }

    #[test]
    fn size_classes_are_ordered_tight_and_without_gaps() {
        let mut last = SizeClass::of(0).unwrap();
        assert_eq!(last, SizeClass { index: 0, bytes: 64 });
        for size in 1..100_000 {
            let class = SizeClass::of(size).unwrap();
            assert!(class.bytes >= size, "{size}: {class:?}");
            assert!(class.bytes <= size.div_ceil(64) * 64 || class.bytes <= size + size / 4, "{size}: {class:?}");
            assert_eq!(class.bytes % 64, 0);
            assert!(class.index == last.index || class.index == last.index + 1, "{size}: {last:?} {class:?}");
            assert_eq!(class.index == last.index, class.bytes == last.bytes);
            assert_eq!(SizeClass::of(class.bytes), Some(class), "a class holds its own size");
            last = class;
        }
        assert_eq!(SizeClass::of(usize::MAX), None);
    }

    #[test]
    fn freed_memory_is_handed_out_again() {
        let pool = pool(1 << 20, 1 << 20);
        let first = pool.allocate(5000).unwrap();
        let address = first.as_ptr();
        drop(first);
        let second = pool.allocate(4900).unwrap();
        assert_eq!(second.as_ptr(), address);
        assert_eq!(second.byte_size(), 4900);
        let stats = pool.stats();
        assert_eq!((stats.allocations, stats.pool_hits, stats.bytes_pooled), (2, 1, 0));
        assert_eq!(stats.bytes_in_use, 5120);
    }

    #[test]
    fn the_class_used_longest_ago_is_evicted() {
        let pool = pool(1 << 20, 1024);
        let (old, new) = (pool.allocate(512).unwrap(), pool.allocate(640).unwrap());
        drop(old);
        drop(new);
        assert_eq!(pool.stats().bytes_pooled, 640);
        let _warm = pool.allocate(640).unwrap();
        assert_eq!(pool.stats().pool_hits, 1);
    }

    #[test]
    fn limits_hold() {
        let pool = pool(1024, 1024);
        let error = pool.allocate(2000).unwrap_err();
        assert!(matches!(error, Error::ResourceExhausted(_)));
        assert_eq!(error.message(), "no host memory for 2000 more bytes: 0 are in use, the limit is 1024 bytes");
        assert!(pool.allocate(usize::MAX).is_err());
        drop(pool.allocate(1024).unwrap());
        // Pooled blocks do not count against a new request of another size.
        let _other = pool.allocate(512).unwrap();
        assert_eq!(pool.stats().bytes_pooled, 0);
        assert_eq!(pool.stats().bytes_in_use, 512);
        drop(pool.allocate(64).unwrap());
        pool.trim();
        assert_eq!(pool.stats().bytes_pooled, 0);
    }

    #[test]
    fn dirty_memory_holds_something_else_each_time() {
        let pool = MemoryPool::dirty(PoolLimits { in_use: Some(1 << 20), retained: 1 << 20 });
        let held = |pool: &MemoryPool| {
            let memory = pool.allocate(100).unwrap();
            let first = memory.bytes()[0];
            assert!(first != 0 && memory.bytes().iter().all(|&byte| byte == first));
            first
        };
        let bytes: Vec<u8> = (0..8).map(|_| held(&pool)).collect();
        assert!(bytes.windows(2).filter(|pair| pair[0] != pair[1]).count() >= 4, "{bytes:?}");
        // Blocks are as large as they must be, and none of them is handed out again.
        let _held = pool.allocate(300).unwrap();
        let stats = pool.stats();
        assert_eq!((stats.bytes_in_use, stats.bytes_pooled, stats.pool_hits), (320, 0, 0));
    }

    #[test]
    fn many_threads_share_a_pool() {
        let pool = pool(1 << 24, 1 << 20);
        std::thread::scope(|scope| {
            for t in 0..8u8 {
                let pool = &pool;
                scope.spawn(move || {
                    for i in 0..500usize {
                        let mut memory = pool.allocate(i * 37 % 3000).unwrap();
                        memory.bytes_mut().fill(t);
                        assert!(memory.bytes().iter().all(|&b| b == t));
                    }
                });
            }
        });
        let stats = pool.stats();
        assert_eq!((stats.bytes_in_use, stats.allocations), (0, 4000));
        assert!(stats.bytes_pooled <= 1 << 20);
    }
}
