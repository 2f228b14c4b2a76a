//! All-reduce of large arrays, divided among processes.
//!
//! ```text
//! slots     0 1 2 | 3 4 5 | 6 7         block b has one slot for each of the processes 0, 1, 2
//! block 0   send operands of slots 1, 2 ── receive those of slot 0, reduce ── send the sum ── receive sums of 1, 2
//! block 1                                  send operands of slots 4, 5 (before the sums of block 0 are awaited) ...
//! ```
//!
//! Each process sends and receives each element of an operand once, and each element of the result once, per other
//! process that needs it. Messages of two blocks are under way at the same time.
#![expect(unsafe_code, reason = "accesses the memory of members that wait for it")]

use std::sync::Arc;

use xla_hlo::{Error, Result};

use super::exchange::Exchange;
use super::route::Process;
use super::slots::{Slot, slots};
use super::waiting::Waiting;
use crate::collective::MemberArguments;
use crate::collective::in_process::{Access, MemberMemory, Place, Work};

/// Operands of one slot from the members of a process.
struct Received<'a> {
    members: &'a [usize],
    /// Concatenated segments of the slot, member by member.
    bytes: Vec<u8>,
}

impl Received<'_> {
    /// Returns the segments of a member.
    fn of(&self, rank: usize) -> Option<&[u8]> {
        let i = self.members.binary_search(&rank).ok()?;
        let bytes = self.bytes.len() / self.members.len();
        Some(&self.bytes[i * bytes..(i + 1) * bytes])
    }
}

impl Exchange<'_> {
    /// Executes an all-reduce whose processes reduce some slots each.
    ///
    /// # Safety
    ///
    /// All local members wait, and no other thread accesses their memory. `access` is to the memory of the local
    /// members.
    pub(super) unsafe fn all_reduce(&self, arguments: &[MemberArguments], access: Access<'_>) -> Result<()> {
        let processes = self.route.processes.len();
        let slots = slots(self.spec, processes);
        let blocks: Vec<&[Slot]> = slots.chunks(processes).collect();
        for step in 0..blocks.len() + 2 {
            if let Some(block) = blocks.get(step) {
                self.send_operands(block, 2 * step as u64 + 1, access)?;
            }
            if let Some((block, number)) = step.checked_sub(1).and_then(|b| Some((blocks.get(b)?, b))) {
                // SAFETY: as the caller guarantees.
                unsafe { self.reduce_slot(block, number, arguments, access) }?;
            }
            if let Some((block, number)) = step.checked_sub(2).and_then(|b| Some((blocks.get(b)?, b))) {
                self.receive_sums(block, 2 * number as u64 + 2, access)?;
            }
        }
        Ok(())
    }

    /// Sends the operands of the local members to the processes that reduce them.
    fn send_operands(&self, block: &[Slot], part: u64, access: Access<'_>) -> Result<()> {
        for (slot, process) in self.of_others(block) {
            let mut bytes = Vec::with_capacity(bytes_of(slot) * self.route.local().len());
            for &rank in self.route.local() {
                for segment in slot {
                    let place = Place { rank, array: segment.array, at: segment.at };
                    bytes.extend(access.operand(place, segment.bytes));
                }
            }
            self.send(process, part, Arc::new(bytes))?;
        }
        Ok(())
    }

    /// Reduces the slot of this process, and sends the sum to the others.
    ///
    /// # Safety
    ///
    /// As of [`Exchange::all_reduce`].
    unsafe fn reduce_slot(
        &self,
        block: &[Slot],
        number: usize,
        arguments: &[MemberArguments],
        local: Access<'_>,
    ) -> Result<()> {
        let Some(slot) = block.get(self.route.own) else { return Ok(()) };
        self.cancel.check()?;
        let received = self.receive_slot(slot, 2 * number as u64 + 1)?;
        let memory = self.all_memory(|rank| match received.iter().find_map(|received| received.of(rank)) {
            Some(bytes) => MemberMemory::remote(spans(self.spec.arrays().len(), slot, bytes)),
            None => MemberMemory::default(),
        });
        // SAFETY: all local members wait, and only this thread accesses their memory, as the caller guarantees. The
        // operands of the others are borrowed until the end of this function. Each element is reduced once, after the
        // last read of an operand at its place: others receive only slots of theirs.
        let work = Work { spec: self.spec, arguments, access: unsafe { memory.access() } };
        for segment in slot {
            let width = self.spec.arrays()[segment.array].element_type.byte_width();
            work.execute(segment.array, segment.at / width..(segment.at + segment.bytes) / width)?;
        }
        let mut sum = Vec::with_capacity(bytes_of(slot));
        for segment in slot {
            let place = Place { rank: self.route.local()[0], array: segment.array, at: segment.at };
            sum.extend(local.result(place, segment.bytes));
        }
        let sum = Arc::new(sum);
        self.route.others().try_for_each(|process| self.send(process, 2 * number as u64 + 2, sum.clone()))
    }

    fn receive_slot(&self, slot: &Slot, part: u64) -> Result<Vec<Received<'_>>> {
        let receive = |process: &'_ Process| self.receive(process, part, bytes_of(slot) * process.members.len());
        let others = self.route.others();
        others.map(|process| Ok(Received { members: &process.members, bytes: receive(process)? })).collect()
    }

    /// Receives the sums of the other processes.
    fn receive_sums(&self, block: &[Slot], part: u64, access: Access<'_>) -> Result<()> {
        for (slot, process) in self.of_others(block) {
            let bytes = self.receive(process, part, bytes_of(slot))?;
            let mut bytes = &bytes[..];
            for segment in slot {
                let (own, rest) = bytes.split_at(segment.bytes);
                bytes = rest;
                for &rank in self.route.local() {
                    access.write(Place { rank, array: segment.array, at: segment.at }, own);
                }
            }
        }
        Ok(())
    }

    /// Receives a message of this number of bytes.
    fn receive(&self, process: &Process, part: u64, expected: usize) -> Result<Vec<u8>> {
        let bytes = Waiting::new(self).receive(process, part)?;
        match bytes.len() == expected {
            true => Ok(bytes),
            false => Err(Error::internal(format!("a process sent {} bytes, expected {expected}", bytes.len()))),
        }
    }

    /// Returns the slots of a block that other processes reduce.
    fn of_others<'b>(&'b self, block: &'b [Slot]) -> impl Iterator<Item = (&'b Slot, &'b Process)> {
        let slots = block.iter().zip(&self.route.processes).enumerate();
        slots.filter(|(i, _)| *i != self.route.own).map(|(_, pair)| pair)
    }
}

fn bytes_of(slot: &Slot) -> usize {
    slot.iter().map(|segment| segment.bytes).sum()
}

/// Returns the offset and the bytes of each array in the concatenated segments of a slot; nothing for arrays without.
fn spans<'a>(arrays: usize, slot: &Slot, mut bytes: &'a [u8]) -> impl Iterator<Item = (usize, &'a [u8])> {
    let mut spans: Vec<(usize, &[u8])> = vec![(0, &[]); arrays];
    for segment in slot {
        let (own, rest) = bytes.split_at(segment.bytes);
        (spans[segment.array], bytes) = ((segment.at, own), rest);
    }
    spans.into_iter()
}
