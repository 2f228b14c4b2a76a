//! Pool of device memory: best fit over big chunks, freed in the order of the work that uses it.
//!
//! The driver's own calls are too slow to make one for each array (`cuMemFree` waits for the device), and its
//! stream-ordered pool wants to be told the stream at allocation, which nobody knows yet here. So chunks are taken from
//! the driver and cut up: the smallest free block that suffices, the rest of which stays free; neighbours that are
//! free become one again.
//!
//! Memory is free as soon as it is dropped, also while queued work uses it. It keeps a list of that work
//! ([`PendingWork`]); whoever gets the memory next and uses it on another queue lets that queue wait first, and on the
//! same queue the order is right anyway. So neither allocating nor dropping ever waits. The logic knows no CUDA: see
//! [`ChunkSource`] and [`PoolQueue`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use xla_hlo::{Error, Result};
use xla_service::MemoryStats;

/// Every block starts at a multiple of this, and its size is one.
pub(crate) const ALIGNMENT: usize = 256;

/// Chunks are multiples of this: the driver hands out no less.
const CHUNK_UNIT: usize = 2 << 20;
/// A chunk is not smaller than this, if there is room,
const SMALLEST_CHUNK: usize = 32 << 20;
/// nor, but for a block that needs it, greater than this.
const GREATEST_CHUNK: usize = 1 << 30;

/// Source of chunks.
pub(crate) trait ChunkSource: Send + Sync + 'static {
    /// The queues that work is sent to.
    type PoolQueue: PoolQueue;

    /// A chunk, aligned to [`ALIGNMENT`]; `None` if there is not enough memory.
    fn take(&self, bytes: usize) -> Result<Option<u64>>;

    /// Returns a chunk; waits until no work uses it. Errors mean that the device is lost, and its
    /// memory with it.
    fn give_back(&self, address: u64);
}

/// A queue of work, which is numbered from 1.
pub(crate) trait PoolQueue: Clone + Send + Sync + 'static {
    /// The number of the last work that was sent.
    fn sent(&self) -> u64;

    /// Whether work up to that number is known to be done.
    fn is_done(&self, number: u64) -> bool;

    /// Whether both are the same queue.
    fn is_same(&self, other: &Self) -> bool;
}

/// Work that used a memory, at most one number a queue: everything up to it.
pub(crate) type PendingWork<L> = Vec<(L, u64)>;

/// A pool, shared by handle.
pub(crate) struct Pool<S: ChunkSource>(Arc<PoolShared<S>>);

struct PoolShared<S: ChunkSource> {
    source: S,
    limit: usize,
    state: Mutex<PoolState<S::PoolQueue>>,
}

struct PoolState<L> {
    /// Chunks: address and bytes.
    chunks: BTreeMap<u64, usize>,
    /// Free blocks by address; no two of a chunk are adjacent.
    free: BTreeMap<u64, FreeBlock<L>>,
    /// The same by size: the first one that suffices is the best.
    by_size: BTreeSet<(usize, u64)>,
    stats: MemoryStats,
}

struct FreeBlock<L> {
    bytes: usize,
    work: PendingWork<L>,
}

/// A block of a pool's memory; returns to it when dropped.
pub(crate) struct PoolBlock<S: ChunkSource> {
    pool: Pool<S>,
    address: u64,
    /// Bytes that were requested.
    size: usize,
    /// Bytes that it takes of the pool.
    reserved: usize,
    uses: Mutex<BlockUses<S::PoolQueue>>,
}

struct BlockUses<L> {
    /// Work on earlier contents.
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
    /// An empty pool, of which at most `limit` bytes may be in use.
    pub fn new(source: S, limit: usize) -> Pool<S> {
        let state = PoolState {
            chunks: BTreeMap::new(),
            free: BTreeMap::new(),
            by_size: BTreeSet::new(),
            stats: MemoryStats { bytes_limit: Some(limit), ..MemoryStats::default() },
        };
        Pool(Arc::new(PoolShared { source, limit, state: Mutex::new(state) }))
    }

    /// Memory of `size` bytes with any contents; a size of 0 has an address too. Never waits for work, but when the
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

    /// Bytes in use and pooled.
    pub fn stats(&self) -> MemoryStats {
        let state = self.state();
        let chunks: usize = state.chunks.values().sum();
        MemoryStats { bytes_pooled: chunks - state.stats.bytes_in_use, ..state.stats }
    }

    /// Returns chunks of which nothing is in use.
    #[cfg(test)]
    pub fn trim(&self) {
        self.trim_locked(&mut self.state());
    }

    /// A chunk for a block of that size; none if the source has none.
    fn grow(&self, state: &mut PoolState<S::PoolQueue>, bytes: usize) -> Result<()> {
        let held: usize = state.chunks.values().sum();
        let Some(least) = bytes.checked_next_multiple_of(CHUNK_UNIT) else { return Ok(()) };
        // As much as there is already, so that the number of chunks stays small; the exact size when memory is short.
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
    /// Takes a block of that size out of the smallest free one that suffices.
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

/// Adds work to work: the later number of each queue.
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
        "no GPU memory for {size} more bytes: {} are in use, {} may be",
        stats.bytes_in_use,
        stats.bytes_limit.unwrap_or(usize::MAX)
    ))
}

impl<S: ChunkSource> PoolBlock<S> {
    /// Bytes, as they were requested.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Address for work on `lane`, which must first wait for the returned work: that on the previous user of the
    /// memory. It is empty for all but the first use on each queue.
    pub fn enter(&self, lane: &S::PoolQueue) -> (u64, PendingWork<S::PoolQueue>) {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        if uses.lanes.iter().any(|other| other.is_same(lane)) {
            return (self.address, Vec::new());
        }
        uses.lanes.push(lane.clone());
        let other = |(l, number): &&(S::PoolQueue, u64)| !l.is_same(lane) && !l.is_done(*number);
        (self.address, uses.before.iter().filter(other).cloned().collect())
    }

    /// Whether it is a block of that pool.
    pub fn is_of(&self, pool: &Pool<S>) -> bool {
        Arc::ptr_eq(&self.pool.0, &pool.0)
    }
}

impl<S: ChunkSource> Drop for PoolBlock<S> {
    fn drop(&mut self) {
        let uses = self.uses.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut work = std::mem::take(&mut uses.before);
        // All work that used it has been sent: it borrowed this block. Work of a queue here is after the work before.
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
