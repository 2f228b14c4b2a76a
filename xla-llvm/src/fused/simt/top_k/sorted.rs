//! Items of a block in shared memory, and their bitonic sort.

use inkwell::values::PointerValue;
use xla_hlo::{Error, Result};

use crate::emitter::Emitter;
use crate::fused::emitter::FusedEmitter;
use crate::fused::simt::block_thread::BlockThread;
use crate::lanes::{Lanes, Scalar};

/// Word of an item: all of it, or one half.
const WORD: Scalar = Scalar::Int(64);

/// Items in shared memory; their number is a power of two.
pub(super) struct Slots<'ctx> {
    /// The low words, then the high ones if items have 128 bits.
    words: Vec<PointerValue<'ctx>>,
    pub count: u64,
}

impl<'ctx> Slots<'ctx> {
    pub fn new(emitter: &Emitter<'ctx>, item_bits: u32, count: u64) -> Result<Self> {
        let words = (0..item_bits / WORD.bits()).map(|_| emitter.shared_array(WORD, count));
        Ok(Slots { words: words.collect::<Result<_>>()?, count })
    }

    pub fn get<'e>(&self, emitter: &'e Emitter<'ctx>, at: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        let mut words = self.words.iter().map(|&words| emitter.load_lanes(words, at, WORD, 1, None));
        match (words.next(), words.next()) {
            (Some(low), Some(high)) => joined([low, high]),
            (low, _) => low.unwrap_or(at),
        }
    }

    pub fn set<'e>(&self, emitter: &'e Emitter<'ctx>, at: Lanes<'e, 'ctx>, item: Lanes<'e, 'ctx>) {
        for (&words, word) in self.words.iter().zip(words(item)) {
            emitter.store_lanes(word, words, at, None);
        }
    }

    /// Sorts all items in ascending order. A barrier must precede it; it ends with one.
    pub fn sort<'e>(&self, s: &mut FusedEmitter<'e, 'ctx, '_>, member: BlockThread<'e, 'ctx>) -> Result<()> {
        let levels = u64::from(self.count.ilog2());
        let steps = s.full_range(levels * (levels + 1) / 2, 1);
        let first = [2, 1].map(|number| member.thread.int(number).raw());
        s.for_each(steps, first.to_vec(), &mut |s, _, carried| {
            let &[size, stride] = carried else {
                return Err(Error::internal(format!("loop carries {} values instead of 2", carried.len())));
            };
            let (size, stride) = (s.emitter.lanes(size), s.emitter.lanes(stride));
            member.each(s, self.count / 2, &mut |s, pair| {
                let low = pair + pair - (pair & (stride - 1));
                let high = low + stride;
                let is_ascending = (low & size).eq(0);
                let (a, b) = (self.get(s.emitter, low), self.get(s.emitter, high));
                s.when(a.ugt(b).eq(is_ascending), &[], |s| {
                    self.set(s.emitter, low, b);
                    self.set(s.emitter, high, a);
                    Ok(Vec::new())
                })?;
                Ok(())
            })?;
            s.emitter.barrier()?;
            let next = stride.lshr(1);
            let is_last = next.eq(0);
            Ok(vec![is_last.select(size + size, size).raw(), is_last.select(size, next).raw()])
        })?;
        Ok(())
    }
}

/// Splits an item into words, the low one first.
pub(super) fn words<'e, 'ctx>(item: Lanes<'e, 'ctx>) -> Vec<Lanes<'e, 'ctx>> {
    match item.scalar().bits() {
        128 => vec![item.trunc(64), item.lshr(64).trunc(64)],
        _ => vec![item],
    }
}

/// Joins two words to an item.
pub(super) fn joined<'e, 'ctx>([low, high]: [Lanes<'e, 'ctx>; 2]) -> Lanes<'e, 'ctx> {
    low.zext(128) | (high.zext(128) << 64)
}
