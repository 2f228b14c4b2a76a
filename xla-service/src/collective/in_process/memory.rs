//! Memory of all members of a collective.
#![expect(unsafe_code, reason = "a thread accesses the memory of members that wait for it")]

use std::ptr::NonNull;

use crate::collective::CollectiveCall;

/// Addresses and sizes of the operands and results of all members.
#[derive(Debug)]
pub(in crate::collective) struct Memory {
    members: Vec<MemberMemory>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    start: NonNull<u8>,
    bytes: usize,
    /// Offset of the first byte in the array.
    first: usize,
}

// SAFETY: a span is an address; only `Access` dereferences it, under the contract of `Memory::access`.
unsafe impl Send for Span {}
// SAFETY: as above.
unsafe impl Sync for Span {}

/// Position in the memory of a member.
#[derive(Clone, Copy, Debug)]
pub(in crate::collective) struct Place {
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
    /// - no slice that [`Access::operand`] or [`Access::result`] returned is used after a write to its bytes.
    pub unsafe fn access(&self) -> Access<'_> {
        Access(self)
    }
}

/// Addresses and sizes of one member's operands and results.
#[derive(Clone, Debug, Default)]
pub(in crate::collective) struct MemberMemory([Vec<Span>; 2]);

impl MemberMemory {
    pub fn of(call: &CollectiveCall<'_>) -> MemberMemory {
        let operands =
            call.operands.iter().map(|source| Span { start: source.start(), bytes: source.bytes(), first: 0 });
        let results = call.results.iter().map(|target| Span { start: target.start(), bytes: target.bytes(), first: 0 });
        MemberMemory([operands.collect(), results.collect()])
    }
}

/// Part of an operand that a member of another process has sent: its offset in the operand, and its bytes.
pub(in crate::collective) type Received<'a> = (usize, &'a [u8]);

impl MemberMemory {
    /// Describes the operands of a member of another process. Nothing is written to its results.
    pub fn remote<'a>(operands: impl Iterator<Item = Received<'a>>) -> MemberMemory {
        let span =
            |(first, bytes): Received<'a>| Span { start: NonNull::from(bytes).cast(), bytes: bytes.len(), first };
        MemberMemory([operands.map(span).collect(), vec![]])
    }
}

/// Permission to access the memory of all members. Accesses out of bounds panic.
#[derive(Clone, Copy, Debug)]
pub(in crate::collective) struct Access<'m>(&'m Memory);

impl<'m> Access<'m> {
    fn pointer(self, kind: usize, place: Place, bytes: usize) -> NonNull<u8> {
        let span = self.0.members[place.rank].0[kind][place.array];
        let offset = place.at.checked_sub(span.first);
        let offset = offset.filter(|offset| offset.checked_add(bytes).is_some_and(|end| end <= span.bytes));
        let Some(offset) = offset else {
            panic!("{bytes} bytes at {place:?} are out of bounds of {} bytes from {}", span.bytes, span.first)
        };
        // SAFETY: the offset is inside of the memory of the operand or result.
        unsafe { span.start.add(offset) }
    }

    /// Whether a member receives results here. Members of other processes do not.
    fn receives(self, rank: usize) -> bool {
        !self.0.members[rank].0[1].is_empty()
    }

    /// Returns bytes of a result. They must not be used after a write to the same bytes.
    pub fn result(self, place: Place, bytes: usize) -> &'m [u8] {
        // SAFETY: the range is in bounds, and the result is borrowed while the access exists. The slice is not used
        // after a write to its bytes, and no other thread writes them meanwhile (all by `Memory::access`).
        unsafe { std::slice::from_raw_parts(self.pointer(1, place, bytes).as_ptr(), bytes) }
    }

    /// Returns bytes of an operand. They must not be used after a write to the same bytes.
    pub fn operand(self, place: Place, bytes: usize) -> &'m [u8] {
        // SAFETY: the range is in bounds, and the operand is borrowed while the access exists. The slice is not used
        // after a write to its bytes, and no other thread writes them meanwhile (all by `Memory::access`).
        unsafe { std::slice::from_raw_parts(self.pointer(0, place, bytes).as_ptr(), bytes) }
    }

    /// Copies bytes of an operand to a result; nothing if they are the same bytes, or if the receiver is in another
    /// process.
    pub fn copy(self, operand: Place, result: Place, bytes: usize) {
        if !self.receives(result.rank) {
            return;
        }
        let (from, to) = (self.pointer(0, operand, bytes), self.pointer(1, result, bytes));
        if from != to {
            // SAFETY: both ranges are in bounds and borrowed while the access exists (`Memory::access`). `copy` permits
            // them to overlap.
            unsafe { std::ptr::copy(from.as_ptr(), to.as_ptr(), bytes) };
        }
    }

    /// Writes bytes to a result, unless the receiver is in another process.
    pub fn write(self, result: Place, bytes: &[u8]) {
        if !self.receives(result.rank) {
            return;
        }
        let to = self.pointer(1, result, bytes.len());
        // SAFETY: the range is in bounds and borrowed while the access exists (`Memory::access`). `bytes` is disjoint
        // from it: only slices of the access can share memory with a result, and they may not be used after a write
        // to their bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) };
    }

    /// Writes zero bytes to a result, unless the receiver is in another process.
    pub fn clear(self, result: Place, bytes: usize) {
        if !self.receives(result.rank) {
            return;
        }
        let to = self.pointer(1, result, bytes);
        // SAFETY: the range is in bounds and borrowed while the access exists (`Memory::access`).
        unsafe { std::ptr::write_bytes(to.as_ptr(), 0, bytes) };
    }
}
