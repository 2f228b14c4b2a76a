//! Scatters with one thread per element of the updates.
//!
//! If the order of colliding updates does not matter, they are combined atomically: by an atomic operation if there is
//! one, otherwise by a compare-and-swap loop. Many collisions are combined in copies: see `copies.rs`. If the last
//! update wins, updates first claim their destination with the number of their window. If the order matters in another
//! manner, updates are sorted by destination first: see `order.rs`.

use inkwell::values::PointerValue;
use xla_hlo::{ElementKind, ElementType, Error, Module, Result};

use crate::elemental::{self, Value};
use crate::emitter::Emitter;
use crate::fused::core::convolution::zero;
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::{Kernel, Launch};
use crate::fused::kernel_plan::KernelPlan;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::frame::WorkItems;
use crate::fused::scatter_plan::ScatterPlan;
use crate::fused::simt::scatter::means::Means;
use crate::fused::simt::scatter::order;
use crate::fused::simt::scatter::plan::{Arrays, Meeting, Place, ScatterPhase, ThreadedScatter};
use crate::lanes::Lanes;
use crate::simt::Atomic;

impl ThreadedScatter {
    /// Emits the function of a launch other than a sort.
    pub(super) fn emit_phase(
        &self,
        module: &Module,
        phase: ScatterPhase,
        emitter: &Emitter<'_>,
        name: &str,
    ) -> Result<Kernel> {
        let frame = emitter.simt_kernel(name, self.words(), 0)?;
        let (arrays, scratch) = frame.pointers.split_at(1 + self.updates.len() + self.inputs.len());
        let (indices, arrays) = arrays
            .split_first()
            .ok_or_else(|| Error::internal(format!("kernel {name} of a scatter has no pointers")))?;
        let (updates, results) = arrays.split_at(self.updates.len());
        let arrays = Arrays { updates, results };
        let elements = self.elements();
        let work_items = if self.inputs[0].element_count() == 0 { 0 } else { elements };
        let plan = ScatterPlan::new(&self.op, &self.inputs[0], &self.indices, &self.updates[0]);
        let mut fused = FusedEmitter::new(emitter, module, self.op.computation)?;
        if let Meeting::InCopies(means, copies) = &self.meeting {
            self.combine_in_copies(&mut fused, &plan, *indices, arrays, (means, *copies))?;
            return Kernel::end(emitter, name, copies.launch(), self.describe(phase));
        }
        if work_items > 0 {
            fused.for_work_items(WorkItems::Thread, work_items, &mut |s, item| {
                let number = s.number_of(&AffineExpr::symbol(item))?;
                let number = s.lanes_of(number);
                match (phase, scratch) {
                    (ScatterPhase::Keys, &[keys]) => {
                        let place = self.place(s, &plan, *indices, plan.in_order(number))?;
                        order::store_key(emitter, keys, number, &place);
                        Ok(())
                    }
                    (ScatterPhase::InOrder, &[keys]) => self.combine_in_order(s, &plan, arrays, keys, number),
                    (ScatterPhase::Keys | ScatterPhase::InOrder | ScatterPhase::Sort(_), _) => {
                        Err(Error::internal(format!("scatter phase {phase:?} has no memory for its keys")))
                    }
                    (ScatterPhase::Forget | ScatterPhase::Claim | ScatterPhase::Combine, claims) => {
                        let place = self.place(s, &plan, *indices, number)?;
                        s.when(place.fits, &[], |s| {
                            self.emit_at(s, phase, arrays, claims, &place).map(|()| Vec::new())
                        })?;
                        Ok(())
                    }
                }
            })?;
        }
        Kernel::end(emitter, name, Launch::alone(work_items), self.describe(phase))
    }

    /// Emits the work of a launch for an element of the updates whose window is within the array.
    fn emit_at<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        phase: ScatterPhase,
        arrays: Arrays<'_, 'ctx>,
        claims: &[PointerValue<'ctx>],
        place: &Place<'e, 'ctx>,
    ) -> Result<()> {
        match (phase, claims) {
            (ScatterPhase::Forget, &[claims]) => {
                s.emitter.store_lanes(place.claim.int(0), claims, place.into, None);
                Ok(())
            }
            (ScatterPhase::Claim, &[claims]) => {
                s.emitter.atomic_update(Atomic::MaximumUnsigned, claims, place.into, place.claim)
            }
            (ScatterPhase::Combine, _) => match &self.meeting {
                Meeting::Apart => {
                    let before = self.load_all(s, arrays.results, place.into);
                    let updates = self.load_updates(s, arrays.updates, place.from);
                    let after = self.combined(s, &before, &updates)?;
                    self.store_all(s, arrays.results, place.into, &after);
                    Ok(())
                }
                Meeting::Each(means) => self.combine_each(s, means, arrays, claims, place),
                Meeting::InCopies(..) | Meeting::InOrder => {
                    Err(Error::internal(format!("scatter that combines in copies or in order has no phase {phase:?}")))
                }
            },
            _ => Err(Error::internal(format!("scatter phase {phase:?} has no memory for its claims"))),
        }
    }

    /// Computes the destination of an element of the updates.
    pub(crate) fn place<'e, 'ctx>(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        plan: &ScatterPlan,
        indices: PointerValue<'ctx>,
        from: Lanes<'e, 'ctx>,
    ) -> Result<Place<'e, 'ctx>> {
        let elements = self.updates[0].element_count();
        let narrow = i32::try_from(elements).is_ok();
        let number = if narrow { from.trunc(32) } else { from };
        // Index along a dimension, as 64 bits.
        let counter = |step: usize, extent: usize| {
            let all = number.udiv(step as i64);
            let counter = if step * extent == elements { all } else { all.urem(extent as i64) };
            if narrow { counter.zext(64) } else { counter }
        };
        let zero = s.number(0);
        let (mut into, mut at, mut window) = (zero, zero, zero);
        for axis in &plan.batch {
            let counter = counter(axis.updates, axis.extent);
            into = into + counter * axis.inputs as i64;
            at = at + counter * axis.indices as i64;
            window = window * axis.extent as i64 + counter;
        }
        for axis in &plan.window {
            into = into + counter(axis.updates, axis.extent) * axis.inputs as i64;
        }
        if plan.run > 1 {
            into = into + counter(1, plan.run);
        }
        let mut fits = zero.eq(0);
        for component in &plan.components {
            let number = self.index(s.emitter, indices, at + component.offset as i64)?;
            // As unsigned numbers, negative indices are out of range.
            fits = fits & number.ult(component.places as i64);
            into = into + number * component.inputs as i64;
        }
        let claim = window + 1;
        Ok(Place { from, into, fits, claim: if self.claim().bits() == 32 { claim.trunc(32) } else { claim } })
    }

    /// Loads an index as 64 bits; a negative one is out of range as an unsigned number.
    fn index<'e, 'ctx>(
        &self,
        emitter: &'e Emitter<'ctx>,
        indices: PointerValue<'ctx>,
        at: Lanes<'e, 'ctx>,
    ) -> Result<Lanes<'e, 'ctx>> {
        let number = elemental::load(emitter, indices, at, self.indices.element_type(), 1, None);
        let wide = match number.element_type().kind() {
            ElementKind::Signed => ElementType::S64,
            ElementKind::Unsigned => ElementType::U64,
            ElementKind::Pred | ElementKind::Float | ElementKind::Complex => {
                return Err(Error::internal(format!("scatter indices are {}, not integers", number.element_type())));
            }
        };
        Ok(elemental::convert(emitter, number, wide)?.lanes())
    }

    /// Combines an element of the updates of each array with its destination, which other threads may update
    /// concurrently.
    fn combine_each<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        means: &[Means],
        arrays: Arrays<'_, 'ctx>,
        claims: &[PointerValue<'ctx>],
        place: &Place<'e, 'ctx>,
    ) -> Result<()> {
        let claims = claims.first().map(|&claims| s.emitter.load_lanes(claims, place.into, self.claim(), 1, None));
        let is_last = claims.map(|claim| claim.eq(place.claim));
        for (array, means) in means.iter().enumerate() {
            match (means, is_last) {
                (Means::Last, Some(is_last)) => {
                    s.when(is_last, &[], |s| {
                        let update = self.update(s, arrays, array, place);
                        let after = self.combined_alone(s, array, self.nothing(s, array), update)?;
                        elemental::store(s.emitter, after, arrays.results[array], place.into, None);
                        Ok(Vec::new())
                    })?;
                }
                (Means::Last, None) => {
                    return Err(Error::internal(format!(
                        "scatter array {array} takes its last update but has no claims"
                    )));
                }
                (Means::Atomic(_) | Means::Exchange, _) => {
                    let update = self.update(s, arrays, array, place);
                    self.combine_at(s, (array, *means), (arrays.results[array], place.into), update)?;
                }
            }
        }
        Ok(())
    }

    /// Loads an array's update for a destination.
    fn update<'e, 'ctx>(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        arrays: Arrays<'_, 'ctx>,
        array: usize,
        place: &Place<'e, 'ctx>,
    ) -> Value<'e, 'ctx> {
        elemental::load(s.emitter, arrays.updates[array], place.from, self.updates[array].element_type(), 1, None)
    }

    /// Returns a placeholder value for an array.
    pub(crate) fn nothing<'e, 'ctx>(&self, s: &FusedEmitter<'e, 'ctx, '_>, array: usize) -> Value<'e, 'ctx> {
        zero(s.emitter, self.inputs[array].element_type())
    }

    /// Loads an element of each result.
    pub(crate) fn load_all<'e, 'ctx>(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        results: &[PointerValue<'ctx>],
        at: Lanes<'e, 'ctx>,
    ) -> Vec<Value<'e, 'ctx>> {
        let arrays = results.iter().zip(&self.inputs);
        arrays.map(|(&array, shape)| elemental::load(s.emitter, array, at, shape.element_type(), 1, None)).collect()
    }

    /// Loads an element of the updates of each array.
    pub(crate) fn load_updates<'e, 'ctx>(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        updates: &[PointerValue<'ctx>],
        at: Lanes<'e, 'ctx>,
    ) -> Vec<Value<'e, 'ctx>> {
        let arrays = updates.iter().zip(&self.updates);
        arrays.map(|(&array, shape)| elemental::load(s.emitter, array, at, shape.element_type(), 1, None)).collect()
    }

    /// Stores an element of each result.
    pub(crate) fn store_all<'e, 'ctx>(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        results: &[PointerValue<'ctx>],
        at: Lanes<'e, 'ctx>,
        values: &[Value<'e, 'ctx>],
    ) {
        for (&array, &value) in results.iter().zip(values) {
            elemental::store(s.emitter, value, array, at, None);
        }
    }

    /// Applies the combiner, and converts its results to the element types of the arrays.
    pub(crate) fn combined<'e, 'ctx>(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        before: &[Value<'e, 'ctx>],
        updates: &[Value<'e, 'ctx>],
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let after = s.call(self.op.computation, &[before, updates].concat())?;
        if after.len() != self.inputs.len() {
            return Err(Error::internal(format!(
                "combiner of a scatter of {} arrays returns {} values",
                self.inputs.len(),
                after.len()
            )));
        }
        after.into_iter().zip(&self.inputs).map(|(x, to)| elemental::convert(s.emitter, x, to.element_type())).collect()
    }

    /// Applies the combiner for one array whose result does not depend on other arrays.
    pub(crate) fn combined_alone<'e, 'ctx>(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        array: usize,
        before: Value<'e, 'ctx>,
        update: Value<'e, 'ctx>,
    ) -> Result<Value<'e, 'ctx>> {
        let all = |one: Value<'e, 'ctx>| {
            let others = |other| if other == array { one } else { self.nothing(s, other) };
            (0..self.inputs.len()).map(others).collect::<Vec<_>>()
        };
        Ok(self.combined(s, &all(before), &all(update))?[array])
    }
}
