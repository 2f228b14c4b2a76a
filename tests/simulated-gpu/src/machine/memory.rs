//! Device memory. Addresses of allocations are never reused.

use std::ops::Range;

use super::store::Store;
use crate::finding::{Class, Problem};

/// log2 of the address range of an allocation; the addresses next to an allocation are never valid.
pub const REGION_BITS: u32 = 33;

/// Index of the first region for allocations; earlier ones are address windows and the surroundings of null pointers.
const FIRST_REGION: u64 = 16;

/// Number of regions of a device. They are never reused.
const REGIONS_OF_A_DEVICE: u64 = 1 << 24;

/// Alignment of allocations. No allocation is aligned to more, so that kernels that depend on more are detected.
const ALIGNMENT: u64 = 512;

/// Device memory.
#[derive(Debug)]
pub struct Memory {
    regions: Vec<Option<Store>>,
    used: usize,
    limit: usize,
    checks_written: bool,
    /// Number of the first region of this device: devices share one address space.
    first_region: u64,
    /// Number of segments of launches so far: see [`super::shadow`].
    pub(super) segments: u64,
    /// Number of instructions that kernels have executed, over all threads.
    pub(super) instructions: u64,
}

impl Memory {
    /// Creates memory of `limit` bytes. If `checks_written`, reads of uninitialised memory are reported.
    pub fn new(limit: usize, checks_written: bool) -> Memory {
        Memory::of_device(0, limit, checks_written)
    }

    /// Creates the memory of a device. No address of one device is an address of another.
    pub fn of_device(device: usize, limit: usize, checks_written: bool) -> Memory {
        let first_region = FIRST_REGION + device as u64 * REGIONS_OF_A_DEVICE;
        Memory { regions: Vec::new(), used: 0, limit, checks_written, first_region, segments: 1, instructions: 0 }
    }

    /// Returns the free and the total number of bytes.
    pub fn free_and_total(&self) -> (usize, usize) {
        (self.limit - self.used, self.limit)
    }

    /// Returns the number of instructions that kernels have executed so far, over all threads.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    pub(super) fn checks_written(&self) -> bool {
        self.checks_written
    }

    /// Allocates memory and returns its address; `None` if there is not enough.
    pub fn allocate(&mut self, bytes: usize) -> Option<u64> {
        let is_full = self.regions.len() as u64 == REGIONS_OF_A_DEVICE;
        if is_full || bytes > self.limit - self.used || bytes as u64 > (1 << REGION_BITS) - ALIGNMENT {
            return None;
        }
        self.used += bytes;
        self.regions.push(Some(Store::new(bytes, self.checks_written)));
        Some(self.base(self.regions.len() - 1))
    }

    /// Frees an allocation; false if no allocation begins at the address.
    pub fn free(&mut self, address: u64) -> bool {
        let Some(number) = self.number(address) else { return false };
        let base = self.base(number);
        let Some(found) = self.regions.get_mut(number).filter(|_| base == address) else { return false };
        match found.take() {
            Some(store) => {
                self.used -= store.len();
                true
            }
            None => false,
        }
    }

    /// Returns the allocation that contains a range of bytes, and the offset of the range in it.
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
        let number = self.number(address)?;
        let store = self.regions.get(number)?.as_ref()?;
        let at = address.checked_sub(self.base(number))? as usize;
        (at.checked_add(bytes)? <= store.len()).then_some((number, at))
    }

    #[cold]
    fn outside(&self, address: u64, bytes: usize) -> Problem {
        let near = self.number(address).and_then(|number| Some((number, self.regions.get(number)?)));
        let what = match near {
            None => "no allocation is near it".to_owned(),
            Some((number, None)) => format!("the allocation at {:#x} has been freed", self.base(number)),
            Some((number, Some(store))) => {
                let (base, bytes) = (self.base(number), store.len());
                let at = address.wrapping_sub(base) as i64;
                format!("that is at offset {at} of the allocation of {bytes} bytes at {base:#x}")
            }
        };
        Problem::new(Class::Bounds, format!("{bytes} bytes at {address:#x} are outside of the device's memory: {what}"))
    }

    /// Whether a range of bytes is within one allocation.
    pub fn has(&self, address: u64, bytes: usize) -> bool {
        self.place(address, bytes).is_some()
    }

    /// Writes bytes.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Problem> {
        let (store, at) = self.locate(address, bytes.len())?;
        store.set(at, bytes);
        Ok(())
    }

    /// Fills a range with one byte.
    pub fn fill(&mut self, address: u64, byte: u8, bytes: usize) -> Result<(), Problem> {
        let (store, at) = self.locate(address, bytes)?;
        store.fill(at..at + bytes, byte);
        Ok(())
    }

    /// Reads bytes for the host or a library; all of them must be initialised.
    pub fn read(&mut self, address: u64, bytes: usize) -> Result<&[u8], Problem> {
        let (store, at) = self.locate(address, bytes)?;
        store.bytes(at..at + bytes).map_err(|first| {
            let message =
                format!("{bytes} bytes at {address:#x} are read as one, and nobody wrote byte {}", first - at);
            Problem::new(Class::Unwritten, message)
        })
    }

    /// Marks bytes as uninitialised.
    pub fn forget(&mut self, address: u64, bytes: usize) -> Result<(), Problem> {
        let checks_written = self.checks_written;
        let (store, at) = self.locate(address, bytes)?;
        store.forget(at..at + bytes, checks_written);
        Ok(())
    }

    /// Copies within the device; uninitialised bytes stay uninitialised.
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

    /// Returns the address of an allocation by its index.
    fn base(&self, number: usize) -> u64 {
        ((number as u64 + self.first_region) << REGION_BITS) + ALIGNMENT
    }

    /// Returns the index of the allocation whose region contains an address.
    fn number(&self, address: u64) -> Option<usize> {
        (address >> REGION_BITS).checked_sub(self.first_region).map(|number| number as usize)
    }
}
