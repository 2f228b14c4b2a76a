//! Rows in registers: the loops of a group over its row are unrolled, so that later loops reuse values of earlier ones.
//!
//! A kernel that reduces rows has a loop for each reduction and one for the results. If a thread has few elements of
//! the row, all loops are unrolled over shared symbols, so that an element has one entry in the table of values in all
//! of them. It is loaded once and computed once, including an exponential that a sum and the result both need, and the
//! loads of all iterations are in flight at the same time. All threads load in a partial last iteration; those without
//! elements load the end of the row, and neither reduce nor store it.

use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::Symbol;
use crate::fused::mode::{GroupKind, RegisterRow, ThreadGroup};
use crate::fused::tuning::row_reduce::{MOST_CODE, REGISTER_BITS};
use crate::fused::value::SymbolValue;

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Enters a row of `extent` elements. `instructions` instructions compute each one in up to `bits` bits; a load
    /// reads `width` elements. The loops are unrolled if each thread has few elements.
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
        let turns = self.load_batch(group, extent, width);
        let of_thread = (turns.count + u64::from(turns.last.is_some())) * u64::from(width);
        let fits = of_thread * u64::from(bits) <= REGISTER_BITS
            && of_thread * instructions as u64 <= MOST_CODE
            && !matches!(group.kind, GroupKind::Column(_));
        if !fits {
            return;
        }
        let level = self.depth();
        // In the partial iteration, threads without elements load the end of the row; the store is predicated.
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
            mode.row = Some(RegisterRow { extent, width, level, symbols, last: turns.last });
        }
    }

    /// Leaves the row: the symbols of its iterations are not valid in the next one.
    pub(crate) fn leave_row(&mut self) {
        if let Some(mode) = self.mode.threads() {
            mode.row = None;
        }
    }

    /// Returns the unrolled iterations of a loop over `extent` elements, if that is the row.
    pub(crate) fn register_row(&mut self, extent: u64) -> Option<RegisterRow<'e, 'ctx>> {
        let depth = self.depth();
        let row = self.mode.threads()?.row.as_ref()?;
        (row.extent == extent && depth >= row.level).then(|| row.clone())
    }
}

/// Returns the largest width, at most `width`, such that all threads have the same number of elements or no iteration
/// has a partial vector.
fn width_of_turns(extent: u64, threads: u32, mut width: u32) -> u32 {
    let threads = u64::from(threads);
    let of_thread = if extent.is_multiple_of(threads) { extent / threads } else { extent };
    while !of_thread.is_multiple_of(width.into()) || u64::from(width) * threads > extent.next_multiple_of(threads) {
        width /= 2;
    }
    width
}
