//! Memory of operands and results, shared with the other members of a collective.
#![expect(unsafe_code, reason = "members of a collective access each other's memory while they wait")]

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;

/// Memory of an operand. It is read until [`Communicator::run`](super::Communicator::run) returns.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    start: NonNull<u8>,
    bytes: usize,
    memory: PhantomData<&'a [u8]>,
}

/// Memory of a result. It is written until [`Communicator::run`](super::Communicator::run) returns.
#[derive(Debug)]
pub struct Target<'a> {
    start: NonNull<u8>,
    bytes: usize,
    memory: PhantomData<&'a mut [u8]>,
}

// SAFETY: a source is a shared borrow of bytes, which other threads may read too.
unsafe impl Send for Source<'_> {}
// SAFETY: as above.
unsafe impl Sync for Source<'_> {}
// SAFETY: a target is a unique borrow of bytes, which another thread may write instead.
unsafe impl Send for Target<'_> {}
// SAFETY: a shared reference to a target exposes only its address and size.
unsafe impl Sync for Target<'_> {}

impl<'a> From<&'a [u8]> for Source<'a> {
    fn from(bytes: &'a [u8]) -> Source<'a> {
        Source { start: NonNull::from(bytes).cast(), bytes: bytes.len(), memory: PhantomData }
    }
}

impl<'a> From<&'a mut [u8]> for Target<'a> {
    fn from(bytes: &'a mut [u8]) -> Target<'a> {
        Target { bytes: bytes.len(), start: NonNull::from(bytes).cast(), memory: PhantomData }
    }
}

impl<'a> Source<'a> {
    /// Describes an operand in memory that the engine can access: host memory for engines on the host.
    ///
    /// # Safety
    ///
    /// The memory is initialised and valid for reads of `bytes` bytes during `'a`. Nothing writes to it in that time,
    /// except the call's own results where [`CollectiveCall`](super::CollectiveCall) permits the overlap.
    pub unsafe fn from_raw(start: NonNull<u8>, bytes: usize) -> Source<'a> {
        Source { start, bytes, memory: PhantomData }
    }

    /// Returns the address.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the range of addresses.
    pub(super) fn addresses(&self) -> Range<usize> {
        addresses(self.start, self.bytes)
    }
}

impl<'a> Target<'a> {
    /// Describes a result in memory that the engine can access: host memory for engines on the host.
    ///
    /// # Safety
    ///
    /// The memory is initialised and valid for reads and writes of `bytes` bytes during `'a`. Nothing else accesses it
    /// in that time, except the call's own operands where [`CollectiveCall`](super::CollectiveCall) permits the
    /// overlap.
    pub unsafe fn from_raw(start: NonNull<u8>, bytes: usize) -> Target<'a> {
        Target { start, bytes, memory: PhantomData }
    }

    /// Returns the address.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the same memory as an operand, for operations that store a result over an operand.
    ///
    /// # Safety
    ///
    /// The source is an operand only of the call that has this target as a result.
    pub unsafe fn as_source(&self) -> Source<'a> {
        Source { start: self.start, bytes: self.bytes, memory: PhantomData }
    }

    /// Returns the range of addresses.
    pub(super) fn addresses(&self) -> Range<usize> {
        addresses(self.start, self.bytes)
    }
}

fn addresses(start: NonNull<u8>, bytes: usize) -> Range<usize> {
    let start = start.addr().get();
    start..start.saturating_add(bytes)
}
