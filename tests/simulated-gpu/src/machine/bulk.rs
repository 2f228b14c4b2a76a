//! `cp.async.bulk.tensor`: copies of boxes of tensors to shared memory. A copy is executed as late as possible: when a
//! thread waits for the mbarrier that receives its bytes.
//!
//! From the start of a copy its destination counts as written by the copy, with uninitialised content, as for
//! `cp.async`.

use std::ops::Range;

use super::access::Who;
use super::block::{Block, Fault};
use super::boxes::BulkCopy;
use super::knowledge::Actor;
use super::mbarrier::BARRIER_BYTES;
use super::reach::{described, resolved};
use super::tensor_map::{MAP_BYTES, TensorMap};
use crate::code::MemoryOperand;
use crate::finding::Class;
use crate::ptx::Space;

/// Alignment of a box's destination, and of a tensor map.
const BOX_ALIGNMENT: u64 = 128;
const MAP_ALIGNMENT: u64 = 64;

fn place(space: Space) -> MemoryOperand {
    MemoryOperand { space, bytes: 4, is_signed: false, is_strong: false, base: 0, offset: 0 }
}

impl Block<'_> {
    /// Returns the tensor map at a generic address.
    pub(super) fn tensor_map(&mut self, thread: usize, address: u64) -> Result<TensorMap, Fault> {
        if !address.is_multiple_of(MAP_ALIGNMENT) {
            let message = format!("the tensor map at {address:#x} is not aligned to {MAP_ALIGNMENT} bytes");
            return Err(Fault::new(thread, Class::Alignment, message));
        }
        let bytes = match resolved(address) {
            (Space::Param, at) => self.parameters(at as usize, MAP_BYTES).map(<[u8]>::to_vec),
            (Space::Global, at) => {
                Some(self.memory.read(at, MAP_BYTES).map_err(|problem| Fault::of(thread, problem))?.to_vec())
            }
            _ => None,
        };
        let map = bytes.and_then(|bytes| TensorMap::decode(&bytes));
        map.ok_or_else(|| {
            Fault::new(
                thread,
                Class::Launch,
                format!("the bytes at the generic address {address:#x} are no tensor map"),
            )
        })
    }

    /// Starts a copy of a box, with the addresses of destination and map, its mbarrier, and the coordinates in the
    /// tensor.
    pub(super) fn begin_bulk_copy(
        &mut self,
        thread: usize,
        (to, map, barrier): (u64, u64, usize),
        coordinates: &[i32],
    ) -> Result<(), Fault> {
        let map = self.tensor_map(thread, map)?;
        if map.rank != coordinates.len() {
            let message = format!("a box is copied from {} coordinates of a tensor of {}", coordinates.len(), map.rank);
            return Err(Fault::new(thread, Class::Launch, message));
        }
        if !to.is_multiple_of(BOX_ALIGNMENT) {
            let message = format!("a box is copied to {to:#x}, which is not aligned to {BOX_ALIGNMENT} bytes");
            return Err(Fault::new(thread, Class::Alignment, message));
        }
        let size = self.shared.len() as u64;
        if to.checked_add(map.box_bytes() as u64).is_none_or(|end| end > size) {
            let bytes = map.box_bytes();
            let message = format!("{bytes} bytes at {to:#x} are outside of the {size} bytes of shared memory");
            return Err(Fault::new(thread, Class::Bounds, message));
        }
        let copy = BulkCopy { thread, to: to as usize, map, coordinates: coordinates.to_vec() };
        let range = copy.range().start..copy.range().end.min(self.shared.len());
        let around = range.start.saturating_sub(BARRIER_BYTES - 1)..range.end;
        if let Some((at, _)) = self.barriers.at.range(around).next() {
            let message = format!("a box is copied to {to:#x}, over the mbarrier at {at:#x}");
            return Err(Fault::new(thread, Class::Race, message));
        }
        let Some(found) = self.barriers.at.get(&barrier) else { return Ok(()) };
        let (agent, clock) = (found.agent, found.clock());
        self.renounce(range, thread, Some((agent, clock)))?;
        self.read_sources(&copy)?;
        if let Some(barrier) = self.barriers.at.get_mut(&barrier) {
            barrier.copies.push(copy);
        }
        Ok(())
    }

    /// Marks a range of shared memory as uninitialised and written, by a thread or by a copy of an agent with a clock.
    pub(super) fn renounce(
        &mut self,
        range: Range<usize>,
        thread: usize,
        copy: Option<(usize, u32)>,
    ) -> Result<(), Fault> {
        let stamp = self.barriers.stamp();
        let checked = self.memory.checks_written();
        let (segment, first, count) = (self.memory.segments, self.first, self.threads.len());
        let Block { shared, threads, kernel, .. } = self;
        let mut actor = Actor::thread(thread, count, &threads[thread].knows);
        if let Some((agent, clock)) = copy {
            actor = Actor { agent, clock, stamp, ..actor };
        }
        let who = Who::agent(actor, segment, first);
        let (at, bytes) = (range.start, range.len());
        shared.renounce(range, checked, Some((&who, kernel.granules.shared))).map_err(|wrong| {
            Fault::from_access(thread, described(wrong, &place(Space::Shared), at as u64, bytes, "writes"))
        })
    }

    /// Checks the elements of a tensor that a copy will read, as accesses of the copy's thread.
    fn read_sources(&mut self, copy: &BulkCopy) -> Result<(), Fault> {
        let who = self.who(copy.thread);
        let granule = self.kernel.granules.global;
        for row in copy.rows() {
            let bytes = row.within.len();
            let located = self.memory.locate(row.address, bytes);
            let (store, at) = located.map_err(|problem| Fault::of(copy.thread, problem))?;
            store.take(at..at + bytes, Some((&who, granule))).map_err(|wrong| {
                let problem = described(wrong, &place(Space::Global), row.address, bytes, "reads");
                Fault::from_access(copy.thread, problem)
            })?;
        }
        Ok(())
    }

    /// Executes a pending copy. Uninitialised elements of the tensor are uninitialised in the box.
    pub(super) fn finish_bulk_copy(&mut self, copy: &BulkCopy) -> Result<(), Fault> {
        let range = copy.range().start..copy.range().end.min(self.shared.len());
        let bytes = copy.map.box_bytes();
        let (mut content, mut written) = (vec![0; bytes], vec![1; bytes]);
        for row in copy.rows() {
            let located = self.memory.locate(row.address, row.within.len());
            let (store, at) = located.map_err(|problem| Fault::of(copy.thread, problem))?;
            let into = row.at + row.within.start..row.at + row.within.end;
            let (from, known) = store.raw(at..at + row.within.len());
            content[into.clone()].copy_from_slice(from);
            written[into].copy_from_slice(known);
        }
        for (number, (content, written)) in content.chunks(16).zip(written.chunks(16)).enumerate() {
            let at = copy.map.swizzle.place(copy.to + number * 16);
            if at + content.len() > range.end {
                let message = format!("a box at {:#x} ends beyond shared memory when its chunks are swizzled", copy.to);
                return Err(Fault::new(copy.thread, Class::Bounds, message));
            }
            self.shared.set_raw(at, content, written);
        }
        Ok(())
    }
}
