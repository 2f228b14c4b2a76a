//! Bytes of memory with their state: initialised flags, and last accesses.

use std::ops::Range;

use super::access::{Conflict, Touch, Who};
use super::order::Order;
use super::shadow::Shadow;

/// Content of fresh memory if initialisation is not checked.
const POISON: u8 = 0xa5;

/// Memory that kernels access.
#[derive(Debug, Default)]
pub(super) struct Store {
    bytes: Vec<u8>,
    /// 1 for each initialised byte, otherwise 0.
    written: Vec<u8>,
    shadow: Shadow,
    order: Order,
}

/// Error of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreError {
    /// Offset of an uninitialised byte that is read.
    Unwritten(usize),
    /// Unordered conflicting access.
    Race(Conflict),
}

/// Accessor of memory, and the granularity; `None` for memory of a single thread.
pub(super) type Watched<'a> = Option<(&'a Who<'a>, u32)>;

impl Store {
    /// Creates uninitialised memory. If `checked`, reads of it are detected; otherwise it holds poison bytes.
    pub fn new(size: usize, checked: bool) -> Store {
        match checked {
            // Zeroed pages are allocated lazily by the operating system.
            true => Store { bytes: vec![0; size], written: vec![0; size], ..Store::default() },
            false => Store { bytes: vec![POISON; size], written: vec![1; size], ..Store::default() },
        }
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Resets the memory to uninitialised memory of a size. The shadow is kept: segments separate old accesses from new
    /// ones.
    pub fn renew(&mut self, size: usize, checked: bool) {
        self.bytes.clear();
        self.bytes.resize(size, POISON);
        self.written.clear();
        self.written.resize(size, u8::from(!checked));
        self.order.reset();
    }

    /// Loads an element of 1, 2, 4 or 8 bytes, which must be in range.
    #[inline]
    pub fn load(&mut self, at: usize, bytes: usize, strong: bool, watched: Watched<'_>) -> Result<u64, StoreError> {
        let value = read(&self.bytes, at, bytes);
        if read(&self.written, at, bytes) != ONES >> (64 - 8 * bytes) {
            let first = (at..at + bytes).find(|&byte| self.written[byte] == 0);
            return Err(StoreError::Unwritten(first.unwrap_or(at)));
        }
        self.touch(at, bytes, Touch::Read { strong }, watched)?;
        Ok(value)
    }

    /// Returns the content of an element without checks.
    pub fn peek(&self, at: usize, bytes: usize) -> u64 {
        read(&self.bytes, at, bytes)
    }

    /// Stores an element.
    #[inline]
    pub fn store(
        &mut self,
        at: usize,
        bytes: usize,
        value: u64,
        strong: bool,
        watched: Watched<'_>,
    ) -> Result<(), StoreError> {
        let mask = u64::MAX >> (64 - 8 * bytes);
        let is_same =
            !strong && read(&self.bytes, at, bytes) == value & mask && read(&self.written, at, bytes) == ONES & mask;
        let touch = if is_same { Touch::Rewrite } else { Touch::Write { strong } };
        write(&mut self.bytes, at, bytes, value);
        write(&mut self.written, at, bytes, ONES);
        self.touch(at, bytes, touch, watched)
    }

    #[inline]
    fn touch(&mut self, at: usize, bytes: usize, touch: Touch, watched: Watched<'_>) -> Result<(), StoreError> {
        let Some((who, granule)) = watched else { return Ok(()) };
        if let Some(actor) = &who.actor {
            let granules = at >> granule..((at + bytes - 1) >> granule) + 1;
            let conflict = self.order.touch(granules, touch, actor);
            return conflict
                .map_or(Ok(()), |conflict| Err(StoreError::Race(Conflict { segment: who.segment, ..conflict })));
        }
        for granule in at >> granule..=(at + bytes - 1) >> granule {
            if let Some(conflict) = self.shadow.touch(granule, touch, who) {
                return Err(StoreError::Race(conflict));
            }
        }
        Ok(())
    }

    /// Returns a range of bytes if all are initialised, otherwise the first one that is not.
    pub fn bytes(&self, range: Range<usize>) -> Result<&[u8], usize> {
        match self.written[range.clone()].iter().position(|written| *written == 0) {
            Some(first) => Err(range.start + first),
            None => Ok(&self.bytes[range]),
        }
    }

    /// Returns a range of bytes and their initialised flags.
    pub fn raw(&self, range: Range<usize>) -> (&[u8], &[u8]) {
        (&self.bytes[range.clone()], &self.written[range])
    }

    /// Sets a range of bytes and their initialised flags.
    pub fn set_raw(&mut self, at: usize, bytes: &[u8], written: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self.written[at..at + written.len()].copy_from_slice(written);
    }

    /// Reads a range of bytes as a thread; all must be initialised.
    pub fn view(&mut self, range: Range<usize>, watched: Watched<'_>) -> Result<&[u8], StoreError> {
        self.bytes(range.clone()).map_err(StoreError::Unwritten)?;
        self.touch(range.start, range.len(), Touch::Read { strong: false }, watched)?;
        Ok(&self.bytes[range])
    }

    /// Reads a range of bytes and their initialised flags as a thread.
    pub fn take(&mut self, range: Range<usize>, watched: Watched<'_>) -> Result<(Vec<u8>, Vec<u8>), StoreError> {
        self.touch(range.start, range.len(), Touch::Read { strong: false }, watched)?;
        let (bytes, written) = self.raw(range);
        Ok((bytes.to_vec(), written.to_vec()))
    }

    /// Writes a range of bytes and their initialised flags as a thread.
    pub fn put(&mut self, at: usize, bytes: &[u8], written: &[u8], watched: Watched<'_>) -> Result<(), StoreError> {
        self.set_raw(at, bytes, written);
        self.touch(at, bytes.len(), Touch::Write { strong: false }, watched)
    }

    /// Marks a range as written by a thread, but uninitialised.
    pub fn renounce(&mut self, range: Range<usize>, checked: bool, watched: Watched<'_>) -> Result<(), StoreError> {
        self.forget(range.clone(), checked);
        self.touch(range.start, range.len(), Touch::Write { strong: false }, watched)
    }

    /// Sets bytes.
    pub fn set(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self.written[at..at + bytes.len()].fill(1);
    }

    /// Fills a range with poison and, if `checked`, marks it as uninitialised.
    pub fn forget(&mut self, range: Range<usize>, checked: bool) {
        self.bytes[range.clone()].fill(POISON);
        self.written[range].fill(u8::from(!checked));
    }

    /// Fills a range with one byte.
    pub fn fill(&mut self, range: Range<usize>, byte: u8) {
        self.bytes[range.clone()].fill(byte);
        self.written[range].fill(1);
    }
}

/// Word whose bytes are all one.
const ONES: u64 = 0x0101_0101_0101_0101;

#[inline]
fn read(from: &[u8], at: usize, bytes: usize) -> u64 {
    let part = &from[at..at + bytes];
    match *part {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => part.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)),
    }
}

#[inline]
fn write(into: &mut [u8], at: usize, bytes: usize, value: u64) {
    match bytes {
        4 => into[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes()),
        8 => into[at..at + 8].copy_from_slice(&value.to_le_bytes()),
        _ => into[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]),
    }
}
