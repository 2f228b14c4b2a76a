//! Scatters whose updates must be combined in order. Updates are sorted by destination; one thread per destination
//! applies its updates.
//!
//! A key is a destination with the update's number in the order of windows below it. All keys differ, so that the sort
//! need not be stable.

use inkwell::values::PointerValue;
use xla_hlo::{ElementType, Result};

use crate::emitter::Emitter;
use crate::fused::core::window::{raws_of, values_of};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::range::Range;
use crate::fused::scatter_plan::ScatterPlan;
use crate::fused::simt::scatter::plan::{Arrays, Place, ThreadedScatter};
use crate::lanes::{Lanes, Scalar};

/// Width in bits of the update's number in a key, and of its destination.
const HALF: u32 = 32;
/// Key of an update without a destination; it sorts last.
const NOWHERE: i64 = -1;

/// Stores the key of an update, given its number in the order of updates.
pub(crate) fn store_key<'e, 'ctx>(
    emitter: &'e Emitter<'ctx>,
    keys: PointerValue<'ctx>,
    number: Lanes<'e, 'ctx>,
    place: &Place<'e, 'ctx>,
) {
    let key = (place.into << i64::from(HALF)) | number;
    emitter.store_lanes(place.fits.select(key, key.int(NOWHERE)), keys, number, None);
}

impl ScatterPlan {
    /// Converts an update's number in the order of windows to its index in memory.
    pub(crate) fn in_order<'e, 'ctx>(&self, number: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        let axes = self.batch.iter().map(|axis| (axis.extent, axis.updates));
        let axes = axes.chain(self.window.iter().map(|axis| (axis.extent, axis.updates))).chain([(self.run, 1)]);
        let axes: Vec<(usize, usize)> = axes.filter(|&(extent, _)| extent > 1).collect();
        let inside = |i: usize| axes[i + 1..].iter().map(|&(extent, _)| extent).product::<usize>();
        if (0..axes.len()).all(|i| axes[i].1 == inside(i)) {
            return number;
        }
        let (mut rest, mut from) = (number, number.int(0));
        for &(extent, step) in axes.iter().rev() {
            let next = rest.udiv(extent as i64);
            from = from + (rest - next * extent as i64) * step as i64;
            rest = next;
        }
        from
    }
}

impl ThreadedScatter {
    /// Combines all updates of a sorted key's destination, if `number` is the first key of that destination.
    pub(crate) fn combine_in_order<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        plan: &ScatterPlan,
        arrays: Arrays<'_, 'ctx>,
        keys: PointerValue<'ctx>,
        number: Lanes<'e, 'ctx>,
    ) -> Result<()> {
        let (emitter, count) = (s.emitter, self.elements());
        let key_at = |at: Lanes<'e, 'ctx>| emitter.load_lanes(keys, at, Scalar::Int(64), 1, None);
        let place_at = |at: Lanes<'e, 'ctx>| key_at(at).lshr(i64::from(HALF));
        let own = key_at(number);
        let place = own.lshr(i64::from(HALF));
        let is_first = number.eq(0) | place_at((number - 1).smax(0)).ne(place);
        s.when(is_first & own.ne(NOWHERE), &[], |s| {
            let is_there = |at: Lanes<'e, 'ctx>| at.lt(count as i64) & place_at(at.smin(count as i64 - 1)).eq(place);
            let [end] = emitter.repeat_while([number + 1], |[at]| is_there(at), |[at]| [at + 1]);
            let types: Vec<ElementType> = self.inputs.iter().map(|input| input.element_type()).collect();
            let before = self.load_all(s, arrays.results, place);
            let range = Range { start: number, end, extent: Some(count), width: 1, step: 1, whole: true };
            let after = s.for_each(range, raws_of(&before), &mut |s, at, carried| {
                let at = s.number_of(&crate::fused::loops::affine::AffineExpr::symbol(at))?;
                let key = key_at(s.lanes_of(at));
                let updates = self.load_updates(s, arrays.updates, plan.in_order(key & i64::from(u32::MAX)));
                let before = values_of(s, &types, carried);
                Ok(raws_of(&self.combined(s, &before, &updates)?))
            })?;
            self.store_all(s, arrays.results, place, &values_of(s, &types, &after));
            Ok(Vec::new())
        })?;
        Ok(())
    }
}
