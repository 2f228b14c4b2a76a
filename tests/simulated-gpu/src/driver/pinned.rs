//! Pinned host memory, which the device copies from and to by itself.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};

/// All of it. The program writes and reads it as it likes, so here every byte is an atomic.
#[derive(Debug, Default)]
pub(crate) struct Pinned {
    /// By the address.
    parts: BTreeMap<usize, Box<[AtomicU8]>>,
}

impl Pinned {
    /// Fresh memory; its address.
    pub fn allocate(&mut self, bytes: usize) -> usize {
        let part: Box<[AtomicU8]> = (0..bytes.max(1)).map(|_| AtomicU8::new(0xa5)).collect();
        let address = part.as_ptr().addr();
        self.parts.insert(address, part);
        address
    }

    /// Frees memory; false if there is none at that address.
    pub fn free(&mut self, address: usize) -> bool {
        self.parts.remove(&address).is_some()
    }

    /// The bytes of a range that is all of one part.
    pub fn find(&self, address: usize, bytes: usize) -> Option<&[AtomicU8]> {
        let (start, part) = self.parts.range(..=address).next_back()?;
        part.get(address - start..)?.get(..bytes)
    }

    /// Whether a range lies in the part at `start`.
    pub fn is_within(&self, start: usize, address: usize) -> bool {
        self.parts.get(&start).is_some_and(|part| (start..start + part.len()).contains(&address))
    }

    /// Content of a range.
    pub fn read(&self, address: usize, bytes: usize) -> Option<Vec<u8>> {
        Some(self.find(address, bytes)?.iter().map(|byte| byte.load(Ordering::Relaxed)).collect())
    }

    /// Writes a range; false if it is none.
    pub fn write(&self, address: usize, content: &[u8]) -> bool {
        let Some(part) = self.find(address, content.len()) else { return false };
        part.iter().zip(content).for_each(|(byte, value)| byte.store(*value, Ordering::Relaxed));
        true
    }
}
