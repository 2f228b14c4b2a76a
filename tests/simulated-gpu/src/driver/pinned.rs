//! Pinned host memory, which the device accesses directly.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};

/// All pinned allocations. The program accesses them at any time, so every byte is an atomic.
#[derive(Debug, Default)]
pub(crate) struct Pinned {
    /// Allocations by their address.
    parts: BTreeMap<usize, Box<[AtomicU8]>>,
}

impl Pinned {
    /// Allocates memory and returns its address.
    pub fn allocate(&mut self, bytes: usize) -> usize {
        let part: Box<[AtomicU8]> = (0..bytes.max(1)).map(|_| AtomicU8::new(0xa5)).collect();
        let address = part.as_ptr().addr();
        self.parts.insert(address, part);
        address
    }

    /// Frees an allocation; false if none begins at the address.
    pub fn free(&mut self, address: usize) -> bool {
        self.parts.remove(&address).is_some()
    }

    /// Returns the bytes of a range within one allocation.
    pub fn find(&self, address: usize, bytes: usize) -> Option<&[AtomicU8]> {
        let (start, part) = self.parts.range(..=address).next_back()?;
        part.get(address - start..)?.get(..bytes)
    }

    /// Whether an address is within the allocation that begins at `start`.
    pub fn is_within(&self, start: usize, address: usize) -> bool {
        self.parts.get(&start).is_some_and(|part| (start..start + part.len()).contains(&address))
    }

    /// Reads a range.
    pub fn read(&self, address: usize, bytes: usize) -> Option<Vec<u8>> {
        Some(self.find(address, bytes)?.iter().map(|byte| byte.load(Ordering::Relaxed)).collect())
    }

    /// Writes a range; false if it is not pinned memory.
    pub fn write(&self, address: usize, content: &[u8]) -> bool {
        let Some(part) = self.find(address, content.len()) else { return false };
        part.iter().zip(content).for_each(|(byte, value)| byte.store(*value, Ordering::Relaxed));
        true
    }
}
