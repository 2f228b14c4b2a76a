//! Memory of all members of a collective.
#![expect(unsafe_code, reason = "a thread accesses the memory of members that wait for it")]

use std::ptr::NonNull;

use crate::collective::CollectiveCall;

/// Addresses and sizes of the operands and results of all members.
#[derive(Debug)]
pub(super) struct Memory {
    members: Vec<MemberMemory>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a span is an address; only `Access` dereferences it, under the contract of `Memory::access`.
unsafe impl Send for Span {}
// SAFETY: as above.
unsafe impl Sync for Span {}

/// Position in the memory of a member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub rank: usize,
    /// Index of the operand or result.
    pub array: usize,
    /// Offset in bytes.
    pub at: usize,
}

impl Memory {
    /// Combines the memory of the members, in the order of their ranks.
    pub fn new(members: Vec<MemberMemory>) -> Memory {
        Memory { members }
    }

    /// Returns access to the memory of all members.
    ///
    /// # Safety
    ///
    /// During the life of the access
    /// - every member waits in the call that its memory was taken from, so that the borrows of operands
    ///   and results are live, and
    /// - no two threads access a byte at the same time if one of them writes it, and
    /// - no slice that [`Access::operand`] returned is used after a write to its bytes.
    pub unsafe fn access(&self) -> Access<'_> {
        Access(self)
    }
}

/// Addresses and sizes of one member's operands and results.
#[derive(Debug)]
pub(super) struct MemberMemory([Vec<Span>; 2]);

impl MemberMemory {
    pub fn of(call: &CollectiveCall<'_>) -> MemberMemory {
        let operands = call.operands.iter().map(|source| Span { start: source.start(), bytes: source.bytes() });
        let results = call.results.iter().map(|target| Span { start: target.start(), bytes: target.bytes() });
        MemberMemory([operands.collect(), results.collect()])
    }
}

/// Permission to access the memory of all members. Accesses out of bounds panic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access<'m>(&'m Memory);

impl<'m> Access<'m> {
    fn pointer(self, kind: usize, place: Place, bytes: usize) -> NonNull<u8> {
        let span = self.0.members[place.rank].0[kind][place.array];
        let is_inside = place.at.checked_add(bytes).is_some_and(|end| end <= span.bytes);
        assert!(is_inside, "{bytes} bytes at {place:?} are out of bounds of {} bytes", span.bytes);
        // SAFETY: the offset is inside of the memory of the operand or result.
        unsafe { span.start.add(place.at) }
    }

    /// Returns bytes of an operand. They must not be used after a write to the same bytes.
    pub fn operand(self, place: Place, bytes: usize) -> &'m [u8] {
        // SAFETY: the range is in bounds, and the operand is borrowed while the access exists. The slice is not used
        // after a write to its bytes, and no other thread writes them meanwhile (all by `Memory::access`).
        unsafe { std::slice::from_raw_parts(self.pointer(0, place, bytes).as_ptr(), bytes) }
    }

    /// Copies bytes of an operand to a result; nothing if they are the same bytes.
    pub fn copy(self, operand: Place, result: Place, bytes: usize) {
        let (from, to) = (self.pointer(0, operand, bytes), self.pointer(1, result, bytes));
        if from != to {
            // SAFETY: both ranges are in bounds and borrowed while the access exists (`Memory::access`). `copy` permits
            // them to overlap.
            unsafe { std::ptr::copy(from.as_ptr(), to.as_ptr(), bytes) };
        }
    }

    /// Writes bytes to a result.
    pub fn write(self, result: Place, bytes: &[u8]) {
        let to = self.pointer(1, result, bytes.len());
        // SAFETY: the range is in bounds and borrowed while the access exists (`Memory::access`). `bytes` is disjoint
        // from it: only slices of `Access::operand` can share memory with a result, and they may not be used after a
        // write to their bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) };
    }

    /// Writes zero bytes to a result.
    pub fn clear(self, result: Place, bytes: usize) {
        let to = self.pointer(1, result, bytes);
        // SAFETY: the range is in bounds and borrowed while the access exists (`Memory::access`).
        unsafe { std::ptr::write_bytes(to.as_ptr(), 0, bytes) };
    }
}
