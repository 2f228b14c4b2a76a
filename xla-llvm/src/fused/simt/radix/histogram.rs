//! Histogram of digits in shared memory.

use inkwell::values::PointerValue;
use xla_hlo::Result;

use crate::emitter::Emitter;
use crate::fused::emitter::FusedEmitter;
use crate::fused::simt::block_thread::BlockThread;
use crate::fused::simt::radix::DIGITS;
use crate::lanes::{Lanes, Scalar};
use crate::simt::{Atomic, WARP};

/// Copies of each counter: adjacent threads use different ones, since atomics on the same counter serialize.
const COPIES: u64 = 4;
/// Counters between copies. Padding of one counter after each warp's worth of counters and one after each copy avoids
/// bank conflicts when a thread adds up adjacent digits.
const COPY: u64 = DIGITS + DIGITS / WARP as u64 + 1;
const COUNTER: Scalar = Scalar::Int(32);

/// Histogram of digits in shared memory.
#[derive(Clone, Copy)]
pub(crate) struct Histogram<'ctx> {
    counters: PointerValue<'ctx>,
}

impl<'ctx> Histogram<'ctx> {
    pub fn new(emitter: &Emitter<'ctx>) -> Result<Self> {
        Ok(Histogram { counters: emitter.shared_array(COUNTER, COPIES * COPY)? })
    }

    /// Clears the counters. A barrier must follow before the first count.
    pub fn clear<'e>(&self, s: &mut FusedEmitter<'e, 'ctx, '_>, member: BlockThread<'e, 'ctx>) -> Result<()> {
        member.each(s, COPIES * COPY, &mut |s, at| {
            s.emitter.store_lanes(at.int(0), self.counters, at, None);
            Ok(())
        })
    }

    /// Counts a 32-bit digit.
    pub fn count<'e>(
        &self,
        emitter: &Emitter<'ctx>,
        member: BlockThread<'e, 'ctx>,
        digit: Lanes<'e, 'ctx>,
    ) -> Result<()> {
        let copy = (member.lane & (COPIES - 1) as i64) * COPY as i64;
        emitter.atomic_update(Atomic::Add, self.counters, Self::place(digit) + copy, digit.int(1))
    }

    /// Returns the count of a digit. A barrier must precede it.
    pub fn total<'e>(&self, emitter: &'e Emitter<'ctx>, digit: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        let place = Self::place(digit);
        let copies =
            (0..COPIES).map(|copy| emitter.load_lanes(self.counters, place + (copy * COPY) as i64, COUNTER, 1, None));
        copies.reduce(|a, b| a + b).unwrap_or(place)
    }

    fn place<'e>(digit: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        digit + digit.lshr(i64::from(WARP.ilog2()))
    }
}
