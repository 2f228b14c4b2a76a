//! Device memory: allocations, each at an address that no other one ever had.

use std::ops::Range;

use super::store::Store;
use crate::finding::{Class, Problem};

/// Bits of the address range of an allocation, so that the addresses next to it are nobody's.
pub const REGION_BITS: u32 = 33;

/// The first region of allocations: those before are windows, and what null pointers reach.
const FIRST_REGION: u64 = 16;

/// Allocations are aligned to this and to nothing greater.
const ALIGNMENT: u64 = 512;

/// The device's memory.
#[derive(Debug)]
pub struct Memory {
    regions: Vec<Option<Store>>,
    used: usize,
    limit: usize,
    checks_written: bool,
    /// Of launches: see [`super::shadow`].
    pub(super) segments: u64,
    /// Instructions that kernels have executed in it, of all their threads.
    pub(super) instructions: u64,
}

impl Memory {
    /// Memory of `limit` bytes. Reads of uninitialised memory are reported if `checks_written`.
    pub fn new(limit: usize, checks_written: bool) -> Memory {
        Memory { regions: Vec::new(), used: 0, limit, checks_written, segments: 1, instructions: 0 }
    }

    /// Bytes that are not allocated, and all.
    pub fn free_and_total(&self) -> (usize, usize) {
        (self.limit - self.used, self.limit)
    }

    /// Instructions that kernels have executed so far, of all their threads.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    pub(super) fn checks_written(&self) -> bool {
        self.checks_written
    }

    /// The address of fresh memory; `None` if there is not so much.
    pub fn allocate(&mut self, bytes: usize) -> Option<u64> {
        if bytes > self.limit - self.used || bytes as u64 > (1 << REGION_BITS) - ALIGNMENT {
            return None;
        }
        self.used += bytes;
        self.regions.push(Some(Store::new(bytes, self.checks_written)));
        Some(base(self.regions.len() - 1))
    }

    /// Frees an allocation; false if there is none at that address.
    pub fn free(&mut self, address: u64) -> bool {
        let Some(number) = number(address) else { return false };
        let Some(found) = self.regions.get_mut(number).filter(|_| base(number) == address) else { return false };
        match found.take() {
            Some(store) => {
                self.used -= store.len();
                true
            }
            None => false,
        }
    }

    /// The allocation that has all of these bytes, and where they are in it.
    #[inline]
    pub(super) fn locate(&mut self, address: u64, bytes: usize) -> Result<(&mut Store, usize), Problem> {
        let Some((number, at)) = self.place(address, bytes) else { return Err(self.outside(address, bytes)) };
        match self.regions.get_mut(number) {
            Some(Some(store)) => Ok((store, at)),
            _ => Err(Problem::new(Class::Bounds, "no such allocation")),
        }
    }

    #[inline]
    fn place(&self, address: u64, bytes: usize) -> Option<(usize, usize)> {
        let number = number(address)?;
        let store = self.regions.get(number)?.as_ref()?;
        let at = address.checked_sub(base(number))? as usize;
        (at.checked_add(bytes)? <= store.len()).then_some((number, at))
    }

    #[cold]
    fn outside(&self, address: u64, bytes: usize) -> Problem {
        let near = number(address).and_then(|number| Some((number, self.regions.get(number)?)));
        let what = match near {
            None => "no allocation is near it".to_owned(),
            Some((number, None)) => format!("the allocation at {:#x} has been freed", base(number)),
            Some((number, Some(store))) => {
                let at = address.wrapping_sub(base(number)) as i64;
                format!("that is at offset {at} of the allocation of {} bytes at {:#x}", store.len(), base(number))
            }
        };
        Problem::new(Class::Bounds, format!("{bytes} bytes at {address:#x} are outside of the device's memory: {what}"))
    }

    /// Whether all of these bytes are of one allocation.
    pub fn has(&self, address: u64, bytes: usize) -> bool {
        self.place(address, bytes).is_some()
    }

    /// Writes bytes.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Problem> {
        let (store, at) = self.locate(address, bytes.len())?;
        store.set(at, bytes);
        Ok(())
    }

    /// Writes one byte many times.
    pub fn fill(&mut self, address: u64, byte: u8, bytes: usize) -> Result<(), Problem> {
        let (store, at) = self.locate(address, bytes)?;
        store.fill(at..at + bytes, byte);
        Ok(())
    }

    /// Bytes for the host or a library, all of which must have been written.
    pub fn read(&mut self, address: u64, bytes: usize) -> Result<&[u8], Problem> {
        let (store, at) = self.locate(address, bytes)?;
        store.bytes(at..at + bytes).map_err(|first| {
            let message =
                format!("{bytes} bytes at {address:#x} are read as one, and nobody wrote byte {}", first - at);
            Problem::new(Class::Unwritten, message)
        })
    }

    /// Makes bytes ones that nobody has written.
    pub fn forget(&mut self, address: u64, bytes: usize) -> Result<(), Problem> {
        let checks_written = self.checks_written;
        let (store, at) = self.locate(address, bytes)?;
        store.forget(at..at + bytes, checks_written);
        Ok(())
    }

    /// Copies within the device; what was not written stays so.
    pub fn copy(&mut self, from: u64, to: u64, bytes: usize) -> Result<(), Problem> {
        let overlaps = |a: Range<u64>, b: Range<u64>| a.start < b.end && b.start < a.end;
        if overlaps(from..from.saturating_add(bytes as u64), to..to.saturating_add(bytes as u64)) {
            let message = format!("a copy of {bytes} bytes from {from:#x} to {to:#x} overlaps with itself");
            return Err(Problem::new(Class::Race, message));
        }
        let (store, at) = self.locate(from, bytes)?;
        let (content, written) = store.raw(at..at + bytes);
        let (content, written) = (content.to_vec(), written.to_vec());
        let (store, at) = self.locate(to, bytes)?;
        store.set_raw(at, &content, &written);
        Ok(())
    }
}

/// The address of an allocation by its number.
fn base(number: usize) -> u64 {
    ((number as u64 + FIRST_REGION) << REGION_BITS) + ALIGNMENT
}

/// The number of the allocation whose region an address is in.
fn number(address: u64) -> Option<usize> {
    (address >> REGION_BITS).checked_sub(FIRST_REGION).map(|number| number as usize)
}
