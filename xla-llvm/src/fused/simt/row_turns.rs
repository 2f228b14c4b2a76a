//! Rows in registers: the loops of a group over its row written out, so that what one of them computes the next find.
//!
//! A kernel that reduces rows has a loop for each reduction and one for the results. Where a thread has few elements of
//! the row, all loops are code one after the other over the same symbols: an element has one place in the table of
//! values, whichever loop asks for it. So it is loaded once and computed once, an exponential that a sum and the result
//! both need included, and the loads of all turns are under way at the same time.

use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{Symbol, SymbolId};
use crate::fused::mode::{GroupKind, RowTurns, ThreadGroup};
use crate::fused::tuning::row_reduce::{MOST_CODE, REGISTER_BITS};
use crate::fused::value::SymbolValue;

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Begins a row of `extent` elements, computed in up to `bits` bits each by so many instructions, and loaded
    /// `width` at a time. Its turns are written out if each thread has the same number of elements, and few.
    pub(crate) fn enter_row(
        &mut self,
        group: ThreadGroup<'e, 'ctx>,
        extent: u64,
        (bits, mut width): (u32, u32),
        instructions: usize,
    ) {
        let threads = u64::from(group.threads);
        let of_thread = extent / threads;
        let fits = extent.is_multiple_of(threads)
            && of_thread * u64::from(bits) <= REGISTER_BITS
            && of_thread * instructions as u64 <= MOST_CODE
            && !matches!(group.kind, GroupKind::Column(_));
        if !fits || of_thread == 0 {
            return;
        }
        while !of_thread.is_multiple_of(width.into()) {
            width /= 2;
        }
        let level = self.depth();
        let first = group.member * i64::from(width);
        let turn = |number: u64| first + (number * u64::from(width) * threads) as i64;
        let symbols = (0..of_thread / u64::from(width)).map(|number| {
            let value = match width {
                1 => SymbolValue::Uniform(turn(number)),
                _ => SymbolValue::Lane { base: turn(number), width, mask: None },
            };
            self.define(Symbol { extent: Some(extent), level }, value)
        });
        let symbols = symbols.collect();
        if let Some(mode) = self.mode.threads() {
            mode.row = Some(RowTurns { extent, width, level, symbols });
        }
    }

    /// Leaves the row: symbols of its turns mean nothing in the next one.
    pub(crate) fn leave_row(&mut self) {
        if let Some(mode) = self.mode.threads() {
            mode.row = None;
        }
    }

    /// The turns of a loop over so many elements, if it is one over the row, with the lanes of each.
    pub(crate) fn row_turns(&mut self, extent: u64) -> Option<(Vec<SymbolId>, u32)> {
        let depth = self.depth();
        let row = self.mode.threads()?.row.as_ref()?;
        (row.extent == extent && depth >= row.level).then(|| (row.symbols.clone(), row.width))
    }
}
