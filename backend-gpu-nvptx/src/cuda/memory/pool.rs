//! Pool of device memory: best-fit allocation from large chunks, freed in stream order.
//!
//! One driver call for each array would be too slow: `cuMemFree` waits for the device. The driver's stream-ordered
//! allocator requires the stream at allocation, which is not known yet here. So the pool allocates chunks from the
//! driver and splits them. An allocation takes the smallest sufficient free block, the rest of which stays free.
//! Adjacent free blocks are merged.
//!
//! Memory is free as soon as it is dropped, even while queued work uses it. It keeps a list of that work
//! ([`PendingWork`]). If the next user is another queue, that queue waits for the work first; on the same queue, stream
//! order suffices. So neither allocating nor dropping waits. The logic is independent of CUDA: see [`ChunkSource`] and
//! [`PoolQueue`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use xla_hlo::{Error, Result};
use xla_service::MemoryStats;

/// Alignment in bytes of the addresses and sizes of blocks.
pub(crate) const ALIGNMENT: usize = 256;

/// Granularity of chunk sizes in bytes: the driver allocates no less.
const CHUNK_UNIT: usize = 2 << 20;
/// Minimum size of a chunk in bytes, if there is room.
const SMALLEST_CHUNK: usize = 32 << 20;
/// Maximum size of a chunk in bytes, except for a larger block.
const GREATEST_CHUNK: usize = 1 << 30;

/// Source of chunks.
pub(crate) trait ChunkSource: Send + Sync + 'static {
    /// Queue that work is sent to.
    type PoolQueue: PoolQueue;

    /// Allocates a chunk, aligned to [`ALIGNMENT`]; `None` if there is not enough memory.
    fn take(&self, bytes: usize) -> Result<Option<u64>>;

    /// Returns a chunk to the source, which waits until no work uses it. Errors are ignored: they mean that the device
    /// and its memory are lost.
    fn give_back(&self, address: u64);
}

/// Queue of work that is numbered from 1.
pub(crate) trait PoolQueue: Clone + Send + Sync + 'static {
    /// Returns the number of the last work that was sent.
    fn sent(&self) -> u64;

    /// Whether work up to `number` is known to be done.
    fn is_done(&self, number: u64) -> bool;

    /// Whether both are the same queue.
    fn is_same(&self, other: &Self) -> bool;
}

/// Work that used a memory: for each queue the number of the last work, which includes all work before it.
pub(crate) type PendingWork<L> = Vec<(L, u64)>;

/// Pool, shared by handle.
pub(crate) struct Pool<S: ChunkSource>(Arc<PoolShared<S>>);

struct PoolShared<S: ChunkSource> {
    source: S,
    limit: usize,
    state: Mutex<PoolState<S::PoolQueue>>,
}

struct PoolState<L> {
    /// Size of each chunk in bytes, by address.
    chunks: BTreeMap<u64, usize>,
    /// Free blocks by address; no two blocks of a chunk are adjacent.
    free: BTreeMap<u64, FreeBlock<L>>,
    /// Free blocks by size: the first sufficient one is the best fit.
    by_size: BTreeSet<(usize, u64)>,
    stats: MemoryStats,
}

struct FreeBlock<L> {
    bytes: usize,
    work: PendingWork<L>,
}

/// Block of a pool's memory, which returns to the pool when dropped.
pub(crate) struct PoolBlock<S: ChunkSource> {
    pool: Pool<S>,
    address: u64,
    /// Requested size in bytes.
    size: usize,
    /// Size in the pool in bytes.
    reserved: usize,
    uses: Mutex<BlockUses<S::PoolQueue>>,
}

struct BlockUses<L> {
    /// Work on the earlier contents of the memory.
    before: PendingWork<L>,
    /// Queues that have used this block, all of them after that work.
    lanes: Vec<L>,
}

impl<S: ChunkSource> Clone for Pool<S> {
    fn clone(&self) -> Self {
        Pool(self.0.clone())
    }
}

impl<S: ChunkSource> Pool<S> {
    /// Creates an empty pool. At most `limit` bytes of it may be in use.
    pub fn new(source: S, limit: usize) -> Pool<S> {
        let state = PoolState {
            chunks: BTreeMap::new(),
            free: BTreeMap::new(),
            by_size: BTreeSet::new(),
            stats: MemoryStats { bytes_limit: Some(limit), ..MemoryStats::default() },
        };
        Pool(Arc::new(PoolShared { source, limit, state: Mutex::new(state) }))
    }

    /// Allocates `size` bytes with arbitrary contents; a size of 0 has an address, too. Waits for work only if the
    /// device is full.
    pub fn allocate(&self, size: usize) -> Result<PoolBlock<S>> {
        let reserved = size.max(1).checked_next_multiple_of(ALIGNMENT);
        let mut state = self.state();
        let fits = |bytes: &usize| state.stats.bytes_in_use.checked_add(*bytes).is_some_and(|sum| sum <= self.0.limit);
        let reserved = reserved.filter(fits).ok_or_else(|| exhausted(size, &state.stats))?;
        let found = match state.carve(reserved) {
            Some(found) => {
                state.stats.pool_hits += 1;
                Some(found)
            }
            None => {
                self.grow(&mut state, reserved)?;
                state.carve(reserved)
            }
        };
        let (address, before) = found.ok_or_else(|| exhausted(size, &state.stats))?;
        state.stats.allocations += 1;
        state.stats.bytes_in_use += reserved;
        state.stats.peak_bytes_in_use = state.stats.peak_bytes_in_use.max(state.stats.bytes_in_use);
        let uses = Mutex::new(BlockUses { before, lanes: Vec::new() });
        Ok(PoolBlock { pool: self.clone(), address, size, reserved, uses })
    }

    /// Returns the numbers of bytes in use and pooled.
    pub fn stats(&self) -> MemoryStats {
        let state = self.state();
        let chunks: usize = state.chunks.values().sum();
        MemoryStats { bytes_pooled: chunks - state.stats.bytes_in_use, ..state.stats }
    }

    /// Returns chunks without blocks in use to the source.
    #[cfg(test)]
    pub fn trim(&self) {
        self.trim_locked(&mut self.state());
    }

    /// Adds a chunk for a block of this size, if the source has one.
    fn grow(&self, state: &mut PoolState<S::PoolQueue>, bytes: usize) -> Result<()> {
        let held: usize = state.chunks.values().sum();
        let Some(least) = bytes.checked_next_multiple_of(CHUNK_UNIT) else { return Ok(()) };
        // Double the pool, so that the number of chunks stays small; use the exact size if memory is short.
        let wanted = least.max(held.clamp(SMALLEST_CHUNK, GREATEST_CHUNK));
        for attempt in [Some(wanted), Some(least), None] {
            let size = attempt.unwrap_or_else(|| {
                self.trim_locked(state);
                least
            });
            if let Some(address) = self.0.source.take(size)? {
                state.chunks.insert(address, size);
                state.insert(address, FreeBlock { bytes: size, work: Vec::new() });
                return Ok(());
            }
        }
        Ok(())
    }

    fn trim_locked(&self, state: &mut PoolState<S::PoolQueue>) {
        let whole = |(address, bytes): (&u64, &usize)| {
            state.free.get(address).is_some_and(|free| free.bytes == *bytes).then_some(*address)
        };
        for address in state.chunks.iter().filter_map(whole).collect::<Vec<_>>() {
            state.chunks.remove(&address);
            state.remove(address);
            self.0.source.give_back(address);
        }
    }

    fn state(&self) -> MutexGuard<'_, PoolState<S::PoolQueue>> {
        // Nothing panics while the lock is held.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: ChunkSource> Drop for PoolShared<S> {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.chunks.keys().for_each(|&address| self.source.give_back(address));
    }
}

impl<L: PoolQueue> PoolState<L> {
    /// Takes a block of this size from the smallest sufficient free block.
    fn carve(&mut self, bytes: usize) -> Option<(u64, PendingWork<L>)> {
        let (_, address) = *self.by_size.range((bytes, 0)..).next()?;
        let mut free = self.remove(address)?;
        free.work.retain(|(lane, number)| !lane.is_done(*number));
        if free.bytes > bytes {
            let rest = FreeBlock { bytes: free.bytes - bytes, work: free.work.clone() };
            self.insert(address + bytes as u64, rest);
        }
        Some((address, free.work))
    }

    /// Frees a block, and merges it with free neighbours of the same chunk.
    fn release(&mut self, mut address: u64, mut bytes: usize, mut work: PendingWork<L>) {
        self.stats.bytes_in_use -= bytes;
        let next = address + bytes as u64;
        if !self.chunks.contains_key(&next)
            && let Some(free) = self.remove(next)
        {
            bytes += free.bytes;
            merge(&mut work, free.work);
        }
        let before = self.free.range(..address).next_back().map(|(at, free)| (*at, at + free.bytes as u64));
        if let Some((at, end)) = before
            && end == address
            && !self.chunks.contains_key(&address)
            && let Some(free) = self.remove(at)
        {
            address = at;
            bytes += free.bytes;
            merge(&mut work, free.work);
        }
        self.insert(address, FreeBlock { bytes, work });
    }

    fn insert(&mut self, address: u64, free: FreeBlock<L>) {
        self.by_size.insert((free.bytes, address));
        self.free.insert(address, free);
    }

    fn remove(&mut self, address: u64) -> Option<FreeBlock<L>> {
        let free = self.free.remove(&address)?;
        self.by_size.remove(&(free.bytes, address));
        Some(free)
    }
}

/// Merges pending work: the later number of each queue.
fn merge<L: PoolQueue>(work: &mut PendingWork<L>, more: PendingWork<L>) {
    for (lane, number) in more {
        match work.iter_mut().find(|(other, _)| other.is_same(&lane)) {
            Some((_, last)) => *last = number.max(*last),
            None => work.push((lane, number)),
        }
    }
}

fn exhausted(size: usize, stats: &MemoryStats) -> Error {
    Error::resource_exhausted(format!(
        "GPU memory for {size} more bytes is not available: {} are in use, the limit is {}",
        stats.bytes_in_use,
        stats.bytes_limit.unwrap_or(usize::MAX)
    ))
}

impl<S: ChunkSource> PoolBlock<S> {
    /// Returns the requested size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the address for work on `lane`, and the work of the previous user of the memory, for which `lane` must
    /// wait first. The list is empty for all but the first use on each queue.
    pub fn enter(&self, lane: &S::PoolQueue) -> (u64, PendingWork<S::PoolQueue>) {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        if uses.lanes.iter().any(|other| other.is_same(lane)) {
            return (self.address, Vec::new());
        }
        uses.lanes.push(lane.clone());
        let other = |(l, number): &&(S::PoolQueue, u64)| !l.is_same(lane) && !l.is_done(*number);
        (self.address, uses.before.iter().filter(other).cloned().collect())
    }

    /// Whether the block belongs to `pool`.
    pub fn is_of(&self, pool: &Pool<S>) -> bool {
        Arc::ptr_eq(&self.pool.0, &pool.0)
    }
}

impl<S: ChunkSource> Drop for PoolBlock<S> {
    fn drop(&mut self) {
        let uses = self.uses.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut work = std::mem::take(&mut uses.before);
        // All work that used the block has been sent, since it borrowed the block. Work of these queues follows the
        // work before.
        if !uses.lanes.is_empty() {
            work = uses.lanes.drain(..).map(|lane| (lane.sent(), lane)).map(|(number, lane)| (lane, number)).collect();
        }
        work.retain(|(lane, number)| !lane.is_done(*number));
        self.pool.state().release(self.address, self.reserved, work);
    }
}

impl<S: ChunkSource> std::fmt::Debug for PoolBlock<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes of GPU memory at {:#x}", self.size, self.address)
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
