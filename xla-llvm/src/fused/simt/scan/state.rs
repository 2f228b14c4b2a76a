//! State words through which the blocks of a scan exchange totals.
//!
//! The first word is the ticket counter of the blocks. Each other one is 0, or holds 32 bits of a value in its low half
//! and a flag that it is valid above them. Reads and writes of a word are atomic, so that no other memory access needs
//! to be ordered with them.

use inkwell::values::PointerValue;
use xla_hlo::{ElementType, Result};

use crate::elemental::Value;
use crate::emitter::Emitter;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::SymbolId;
use crate::lanes::{Lanes, Scalar};
use crate::simt::{Atomic, Register};

const WORD: Scalar = Scalar::Int(64);
/// Number of bits of a value in a word.
const HALF: u32 = 32;

/// Layout of the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScanState {
    /// Number of words per value.
    parts: u64,
    fibers: u64,
    /// Tiles of a fiber (`tiles`), and of a group (`group`).
    pub tiles: u64,
    pub group: u64,
}

impl ScanState {
    pub fn new(ty: ElementType, group: u64, [fibers, tiles]: [u64; 2]) -> ScanState {
        let real = (ty.real_part().bit_width() as u64).div_ceil(HALF.into());
        ScanState { parts: if ty.is_complex() { 2 * real } else { real }, fibers, tiles, group }
    }

    pub fn words(&self) -> u64 {
        1 + self.parts * self.fibers * (self.tiles + self.groups())
    }

    pub fn bytes(&self) -> u64 {
        self.words() * u64::from(WORD.bits() / 8)
    }

    fn groups(&self) -> u64 {
        self.tiles.div_ceil(self.group)
    }

    /// Returns the index of the first word of a tile's total.
    pub fn total_at<'e, 'ctx>(&self, fiber: Lanes<'e, 'ctx>, tile: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        (fiber * self.tiles as i64 + tile) * self.parts as i64 + 1
    }

    /// Returns the index of the first word of a group's exclusive prefix.
    pub fn group_at<'e, 'ctx>(&self, fiber: Lanes<'e, 'ctx>, group: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        let first = 1 + self.parts * self.fibers * self.tiles;
        (fiber * self.groups() as i64 + group) * self.parts as i64 + first as i64
    }

    /// Returns the block's ticket: its index in the order of the blocks' start.
    pub fn ticket<'e, 'ctx>(&self, s: &mut FusedEmitter<'e, 'ctx, '_>, words: PointerValue<'ctx>) -> Result<SymbolId> {
        let emitter = s.emitter;
        let shared = emitter.shared_array(WORD, 1)?;
        let zero = s.number(0);
        s.when(emitter.register(Register::Thread)?.eq(0), &[], |_| {
            let ticket = emitter.atomic_fetch(Atomic::Add, words, zero, zero.int(1))?;
            emitter.store_lanes(ticket, shared, zero, None);
            Ok(Vec::new())
        })?;
        emitter.barrier()?;
        let ticket = emitter.load_lanes(shared, zero, WORD, 1, None);
        Ok(s.uniform_symbol(ticket, Some(self.fibers * self.tiles)))
    }

    /// Publishes a value of one lane to other blocks.
    pub fn tell<'e, 'ctx>(
        &self,
        emitter: &'e Emitter<'ctx>,
        words: PointerValue<'ctx>,
        at: Lanes<'e, 'ctx>,
        value: Value<'e, 'ctx>,
    ) -> Result<()> {
        for (part, half) in halves(emitter, value).into_iter().enumerate() {
            let word = half | (1 << HALF);
            emitter.atomic_store(words, at + part as i64, word)?;
        }
        Ok(())
    }

    /// Waits for the value that another block publishes if `is_wanted`; otherwise returns an arbitrary value. The type
    /// is that of `like`.
    pub fn wait<'e, 'ctx>(
        &self,
        emitter: &'e Emitter<'ctx>,
        (words, at): (PointerValue<'ctx>, Lanes<'e, 'ctx>),
        is_wanted: Lanes<'e, 'ctx>,
        like: Value<'e, 'ctx>,
    ) -> Value<'e, 'ctx> {
        let mut part = 0;
        let mut next = || {
            part += 1;
            wait_for_word(emitter, (words, at + (part - 1)), is_wanted)
        };
        let raws = like.raws().into_iter().map(|raw| {
            let scalar = emitter.lanes(raw).scalar();
            let low = next();
            let bits = if scalar.bits() == 64 { low | (next() << i64::from(HALF)) } else { low.trunc(scalar.bits()) };
            bits.cast_bits(scalar).raw()
        });
        Value::from_raws(emitter, like.element_type(), &raws.collect::<Vec<_>>())
    }
}

/// Waits for a word of another block, and returns its 32 bits of the value, zero-extended to 64 bits.
fn wait_for_word<'e, 'ctx>(
    emitter: &'e Emitter<'ctx>,
    (words, at): (PointerValue<'ctx>, Lanes<'e, 'ctx>),
    is_wanted: Lanes<'e, 'ctx>,
) -> Lanes<'e, 'ctx> {
    let is_missing = |[word]: [Lanes<'e, 'ctx>; 1]| is_wanted & word.lshr(i64::from(HALF)).eq(0);
    let read = |[word]: [Lanes<'e, 'ctx>; 1]| {
        [emitter.atomic_load(words, at, WORD).unwrap_or_else(|error| {
            emitter.fail(error);
            word
        })]
    };
    let [word] = emitter.repeat_while([at.int(0)], is_missing, read);
    word & i64::from(u32::MAX)
}

/// Splits a value into 32-bit halves, zero-extended to 64 bits each.
fn halves<'e, 'ctx>(emitter: &'e Emitter<'ctx>, value: Value<'e, 'ctx>) -> Vec<Lanes<'e, 'ctx>> {
    let parts = value.raws().into_iter().map(|raw| emitter.lanes(raw).bits());
    let halves = parts.flat_map(|bits| match bits.scalar().bits() {
        64 => vec![bits & i64::from(u32::MAX), bits.lshr(i64::from(HALF))],
        _ => vec![bits.zext(64)],
    });
    halves.collect()
}
