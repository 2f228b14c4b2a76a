//! Rows in registers: the loops of a group over its row written out, so that what one of them computes the next find.
//!
//! A kernel that reduces rows has a loop for each reduction and one for the results. Where a thread has few elements of
//! the row, all loops are code one after the other over the same symbols: an element has one place in the table of
//! values, whichever loop asks for it. So it is loaded once and computed once, an exponential that a sum and the result
//! both need included, and the loads of all turns are under way at the same time. A last turn that only some threads
//! have is read by all of them, at the end of the row where they have none, and neither reduced nor stored by those.

use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::Symbol;
use crate::fused::mode::{GroupKind, RowTurns, ThreadGroup};
use crate::fused::tuning::row_reduce::{MOST_CODE, REGISTER_BITS};
use crate::fused::value::SymbolValue;

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Begins a row of `extent` elements, computed in up to `bits` bits each by so many instructions, and loaded
    /// `width` at a time. Its turns are written out if each thread has few elements.
    pub(crate) fn enter_row(
        &mut self,
        group: ThreadGroup<'e, 'ctx>,
        extent: u64,
        (bits, width): (u32, u32),
        instructions: usize,
    ) {
        if extent == 0 {
            return;
        }
        let width = width_of_turns(extent, group.threads, width);
        let turns = self.group_turns(group, extent, width);
        let of_thread = (turns.count + u64::from(turns.last.is_some())) * u64::from(width);
        let fits = of_thread * u64::from(bits) <= REGISTER_BITS
            && of_thread * instructions as u64 <= MOST_CODE
            && !matches!(group.kind, GroupKind::Column(_));
        if !fits {
            return;
        }
        let level = self.depth();
        // Where a thread has no such turn it reads what is there, and others store.
        let place = |number: u64| {
            let place = turns.first + (number * turns.step) as i64;
            if number < turns.count { place } else { place.smin(extent as i64 - i64::from(width)) }
        };
        let symbols = (0..of_thread / u64::from(width)).map(|number| {
            let value = match width {
                1 => SymbolValue::Uniform(place(number)),
                _ => SymbolValue::Lane { base: place(number), width, mask: None },
            };
            self.define(Symbol { extent: Some(extent), level }, value)
        });
        let symbols = symbols.collect();
        if let Some(mode) = self.mode.threads() {
            mode.row = Some(RowTurns { extent, width, level, symbols, last: turns.last });
        }
    }

    /// Leaves the row: symbols of its turns mean nothing in the next one.
    pub(crate) fn leave_row(&mut self) {
        if let Some(mode) = self.mode.threads() {
            mode.row = None;
        }
    }

    /// The turns of a loop over so many elements, if it is one over the row.
    pub(crate) fn row_turns(&mut self, extent: u64) -> Option<RowTurns<'e, 'ctx>> {
        let depth = self.depth();
        let row = self.mode.threads()?.row.as_ref()?;
        (row.extent == extent && depth >= row.level).then(|| row.clone())
    }
}

/// Neighbours of a turn, `width` at most: so many that all threads have as many elements, or that no turn has a part of
/// its neighbours.
fn width_of_turns(extent: u64, threads: u32, mut width: u32) -> u32 {
    let threads = u64::from(threads);
    let of_thread = if extent.is_multiple_of(threads) { extent / threads } else { extent };
    while !of_thread.is_multiple_of(width.into()) || u64::from(width) * threads > extent.next_multiple_of(threads) {
        width /= 2;
    }
    width
}
