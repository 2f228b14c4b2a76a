//! Device memory: reference-counted blocks that only commands can access, and the poison that failed commands leave.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use xla_hlo::{Error, Result};

use super::spec::ALIGNMENT;

/// Fill byte of fresh memory, whose contents are arbitrary.
const SCRIBBLE: u8 = 0xa5;

/// Block of device memory. It is freed when the last handle is dropped; queued commands hold handles too.
#[derive(Debug)]
pub struct Block {
    /// Identifier, unique on the device. Commands lock blocks in increasing order of it.
    id: u64,
    size: usize,
    charge: Charge,
    contents: Mutex<Contents>,
}

/// Contents of a block.
#[derive(Debug)]
pub(super) struct Contents {
    pub bytes: Vec<u8>,
    poison: Vec<(Range<usize>, SharedError)>,
}

/// Error that several readers receive.
#[derive(Clone, Debug)]
pub(super) struct SharedError(Arc<Error>);

impl SharedError {
    pub fn new(error: Error) -> SharedError {
        SharedError(Arc::new(error))
    }

    pub fn again(&self) -> Error {
        self.0.again()
    }
}

impl Block {
    pub(super) fn new(ledger: &Arc<Ledger>, size: usize) -> Result<Arc<Block>> {
        let too_much = || Error::resource_exhausted(format!("{size} bytes are more than the device can address"));
        let charge = ledger.charge(size)?;
        let mut bytes = Vec::new();
        xla_hlo::out_of_memory::fallible(|| bytes.try_reserve_exact(size)).map_err(|_| too_much())?;
        bytes.resize(size, SCRIBBLE);
        let contents = Mutex::new(Contents { bytes, poison: Vec::new() });
        Ok(Arc::new(Block { id: ledger.next_id(), size, charge, contents }))
    }

    /// Returns the requested size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the size on the device in bytes, rounded up to the alignment.
    pub fn charged(&self) -> usize {
        self.charge.bytes
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    /// Returns the error that poisons part of the range.
    pub fn poison_in(&self, range: &Range<usize>) -> Option<&SharedError> {
        let overlaps = |bad: &Range<usize>| bad.start < range.end && range.start < bad.end;
        self.poison.iter().find(|(bad, _)| overlaps(bad)).map(|(_, failure)| failure)
    }

    /// Removes poison from the range.
    pub fn cleanse(&mut self, range: &Range<usize>) {
        if self.poison.is_empty() {
            return;
        }
        let split = |(bad, failure): (Range<usize>, SharedError)| {
            let before = bad.start..bad.end.min(range.start);
            let after = bad.start.max(range.end)..bad.end;
            [before, after].into_iter().filter(|rest| !rest.is_empty()).map(move |rest| (rest, failure.clone()))
        };
        self.poison = std::mem::take(&mut self.poison).into_iter().flat_map(split).collect();
    }

    /// Poisons the range with an error.
    pub fn poison(&mut self, range: Range<usize>, failure: &SharedError) {
        self.cleanse(&range);
        if !range.is_empty() {
            self.poison.push((range, failure.clone()));
        }
    }
}

/// Range of bytes in a block.
#[derive(Clone, Debug)]
pub struct Region {
    pub(super) block: Arc<Block>,
    pub(super) range: Range<usize>,
}

impl Region {
    /// Returns `size` bytes of a block from `offset` on; [`Error::Internal`] if they are out of bounds.
    pub fn new(block: &Arc<Block>, offset: usize, size: usize) -> Result<Region> {
        let end = offset.checked_add(size).filter(|&end| end <= block.size());
        let end = end.ok_or_else(|| {
            let has = block.size();
            Error::internal(format!("{size} bytes at offset {offset} are not inside a memory of {has} bytes"))
        })?;
        Ok(Region { block: block.clone(), range: offset..end })
    }

    /// Returns the number of bytes.
    pub fn size(&self) -> usize {
        self.range.len()
    }
}

/// Memory usage of a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Bytes in live blocks.
    pub in_use: usize,
    /// Peak of `in_use`.
    pub peak: usize,
    /// Capacity of the device.
    pub limit: usize,
    /// Number of blocks allocated so far.
    pub allocations: u64,
}

/// Accounting of the device's memory.
#[derive(Debug)]
pub(super) struct Ledger(Mutex<Usage>);

impl Ledger {
    pub fn new(limit: usize) -> Ledger {
        Ledger(Mutex::new(Usage { in_use: 0, peak: 0, limit, allocations: 0 }))
    }

    pub fn usage(&self) -> Usage {
        *self.entries()
    }

    fn next_id(&self) -> u64 {
        let mut usage = self.entries();
        usage.allocations += 1;
        usage.allocations
    }

    /// Reserves `size` bytes, rounded up to the alignment.
    fn charge(self: &Arc<Self>, size: usize) -> Result<Charge> {
        let bytes = size.checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX);
        let mut usage = self.entries();
        let free = usage.limit - usage.in_use;
        if bytes > free {
            return Err(Error::resource_exhausted(format!(
                "no device memory for {size} bytes: {free} of {} are free",
                usage.limit
            )));
        }
        usage.in_use += bytes;
        usage.peak = usage.peak.max(usage.in_use);
        Ok(Charge { ledger: self.clone(), bytes })
    }

    fn entries(&self) -> MutexGuard<'_, Usage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reservation of memory, released when dropped.
#[derive(Debug)]
struct Charge {
    ledger: Arc<Ledger>,
    bytes: usize,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.ledger.entries().in_use -= self.bytes;
    }
}
