//! Lock set of one command: the memory blocks that it accesses.

use std::sync::MutexGuard;

use super::memory::{Contents, Region, SharedError};

/// Locked blocks of one command. All queues lock blocks in the order of their ids, which prevents deadlocks.
pub(super) struct Locked<'a>(Vec<(u64, MutexGuard<'a, Contents>)>);

impl<'a> Locked<'a> {
    pub fn new(regions: impl Iterator<Item = &'a Region>) -> Locked<'a> {
        let mut blocks: Vec<_> = regions.map(|region| &region.block).collect();
        blocks.sort_by_key(|block| block.id());
        blocks.dedup_by_key(|block| block.id());
        Locked(blocks.into_iter().map(|block| (block.id(), block.lock())).collect())
    }

    /// Returns the bytes of a region.
    pub fn bytes(&self, region: &Region) -> &[u8] {
        &self.0[self.place(region)].1.bytes[region.range.clone()]
    }

    /// Returns the bytes of a region, for writing.
    pub fn bytes_mut(&mut self, region: &Region) -> &mut [u8] {
        let place = self.place(region);
        &mut self.0[place].1.bytes[region.range.clone()]
    }

    pub fn copy(&mut self, from: &Region, to: &Region) {
        let places = [self.place(from), self.place(to)];
        match self.0.get_disjoint_mut(places) {
            Ok([(_, source), (_, target)]) => {
                target.bytes[to.range.clone()].copy_from_slice(&source.bytes[from.range.clone()]);
            }
            // Both regions belong to the same block.
            Err(_) => self.0[places[1]].1.bytes.copy_within(from.range.clone(), to.range.start),
        }
    }

    pub fn poison_in(&self, region: &Region) -> Option<SharedError> {
        self.0[self.place(region)].1.poison_in(&region.range).cloned()
    }

    pub fn cleanse(&mut self, region: &Region) {
        let place = self.place(region);
        self.0[place].1.cleanse(&region.range);
    }

    /// Returns the index of the region's block. A linear search suffices, since one command accesses few blocks.
    fn place(&self, region: &Region) -> usize {
        let id = region.block.id();
        self.0.iter().position(|(known, _)| *known == id).unwrap_or_default()
    }
}
