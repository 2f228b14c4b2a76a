//! Scatters of many updates to few elements: each block combines its updates in a private copy in shared memory.
//!
//! A copy is initialised with the combiner's identity. At the end, elements that differ from it are combined with the
//! array, by one atomic operation each. If arrays are small, a block has several copies, and adjacent threads use
//! different ones.

use inkwell::values::PointerValue;
use xla_hlo::ops::combiner_identity;
use xla_hlo::{Error, Module, Result};

use crate::elemental::{self, Value, stored_scalar};
use crate::emitter::Emitter;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::frame::WorkItems;
use crate::fused::scatter_plan::ScatterPlan;
use crate::fused::simt::block_thread::BlockThread;
use crate::fused::simt::scatter::block_copies::BlockCopies;
use crate::fused::simt::scatter::means::{Means, lossless_operations};
use crate::fused::simt::scatter::plan::{Arrays, Place, ThreadedScatter};
use crate::fused::tuning::scatter::{AT_ONCE, THREADS};
use crate::lanes::Lanes;

/// Copies of a block, during emission.
struct Shared<'a, 'e, 'ctx> {
    plan: BlockCopies,
    means: &'a [Means],
    /// Shared memory of each array.
    memory: Vec<PointerValue<'ctx>>,
    identities: Vec<Value<'e, 'ctx>>,
    member: BlockThread<'e, 'ctx>,
}

impl ThreadedScatter {
    /// Returns whether copies can begin with an identity and be applied as updates, for all arrays.
    pub(crate) fn has_identities(&self, module: &Module, means: &[Means]) -> bool {
        let types: Vec<_> = self.inputs.iter().map(|input| input.element_type()).collect();
        !means.contains(&Means::Last)
            && self.updates.iter().map(|update| update.element_type()).eq(types.iter().copied())
            && lossless_operations(&module[self.op.computation], &types).is_some_and(|operations| {
                operations.iter().zip(&types).all(|(&op, &ty)| combiner_identity(op, ty).is_some())
            })
    }

    /// Emits a kernel whose blocks combine the updates in copies.
    pub(crate) fn combine_in_copies<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        plan: &ScatterPlan,
        indices: PointerValue<'ctx>,
        arrays: Arrays<'_, 'ctx>,
        (means, copies): (&[Means], BlockCopies),
    ) -> Result<()> {
        let shared = Shared {
            plan: copies,
            means,
            memory: self.shared_copies(s.emitter, copies)?,
            identities: self.identities(s)?,
            member: BlockThread::new(s.emitter, THREADS)?,
        };
        let entries = self.inputs[0].element_count() as u64;
        let group = WorkItems::Group { threads: THREADS as u32 };
        s.for_work_items(group, copies.blocks, &mut |s, block| {
            shared.member.each(s, copies.cells(entries), &mut |s, at| {
                for (&memory, &identity) in shared.memory.iter().zip(&shared.identities) {
                    elemental::store(s.emitter, identity, memory, at, None);
                }
                Ok(())
            })?;
            s.emitter.barrier()?;
            let block = s.number_of(&AffineExpr::symbol(block).scaled(copies.chunk as i64))?;
            let first = s.lanes_of(block) + shared.member.thread.zext(64);
            self.update_copies(s, plan, indices, arrays, &shared, first)?;
            s.emitter.barrier()?;
            shared.member.each(s, entries, &mut |s, place| self.bring_copies(s, arrays, &shared, place))
        })
    }

    fn shared_copies<'ctx>(&self, emitter: &Emitter<'ctx>, copies: BlockCopies) -> Result<Vec<PointerValue<'ctx>>> {
        let count = copies.cells(self.inputs[0].element_count() as u64);
        let arrays = self.inputs.iter().map(|input| {
            let ty = input.element_type();
            emitter.shared_array(stored_scalar(ty), count * if ty.is_complex() { 2 } else { 1 })
        });
        arrays.collect()
    }

    fn identities<'e, 'ctx>(&self, s: &FusedEmitter<'e, 'ctx, '_>) -> Result<Vec<Value<'e, 'ctx>>> {
        let types: Vec<_> = self.inputs.iter().map(|input| input.element_type()).collect();
        let missing = || Error::internal("combiner of a scatter has no identity");
        let operations = lossless_operations(&s.module[self.op.computation], &types).ok_or_else(missing)?;
        let identities = operations
            .iter()
            .zip(types)
            .map(|(&op, ty)| Ok(elemental::constant(s.emitter, ty, combiner_identity(op, ty).ok_or_else(missing)?)));
        identities.collect()
    }

    /// Combines the updates of the block into its copies; `first` is the thread's first update.
    fn update_copies<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        plan: &ScatterPlan,
        indices: PointerValue<'ctx>,
        arrays: Arrays<'_, 'ctx>,
        shared: &Shared<'_, 'e, 'ctx>,
        first: Lanes<'e, 'ctx>,
    ) -> Result<()> {
        let copies = shared.plan;
        let count = self.elements();
        let is_whole = copies.blocks * copies.chunk == count;
        let turns = s.full_range(copies.chunk / (THREADS * AT_ONCE), 1);
        s.for_each(turns, Vec::new(), &mut |s, turn, _| {
            let turn = s.number_of(&AffineExpr::symbol(turn).scaled((THREADS * AT_ONCE) as i64))?;
            let first = first + s.lanes_of(turn);
            // All loads are issued before the first update waits for its data.
            let read = (0..AT_ONCE).map(|i| {
                let number = first + (i * THREADS) as i64;
                let there = if is_whole { number } else { number.smin(count as i64 - 1) };
                let mut place = self.place(s, plan, indices, there)?;
                if !is_whole {
                    place.fits = place.fits & number.lt(count as i64);
                }
                let updates = self.load_updates(s, arrays.updates, place.from);
                Ok((place, updates))
            });
            let read: Vec<(Place<'e, 'ctx>, Vec<Value<'e, 'ctx>>)> = read.collect::<Result<_>>()?;
            for (place, updates) in read {
                s.when(place.fits, &[], |s| {
                    let copy = shared.member.lane & (copies.copies - 1) as i64;
                    let at = place.into.trunc(32) * copies.copies as i64 + copy;
                    for (array, update) in updates.into_iter().enumerate() {
                        self.combine_at(s, (array, shared.means[array]), (shared.memory[array], at), update)?;
                    }
                    Ok(Vec::new())
                })?;
            }
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// Merges the block's copies of an element, and combines the result with the arrays.
    fn bring_copies<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        arrays: Arrays<'_, 'ctx>,
        shared: &Shared<'_, 'e, 'ctx>,
        place: Lanes<'e, 'ctx>,
    ) -> Result<()> {
        let copies = shared.plan.copies as i64;
        for (array, &identity) in shared.identities.iter().enumerate() {
            let (ty, memory) = (self.inputs[array].element_type(), shared.memory[array]);
            let held = |copy: i64| elemental::load(s.emitter, memory, place * copies + copy, ty, 1, None);
            let mut all = held(0);
            for copy in 1..copies {
                all = self.combined_alone(s, array, all, held(copy))?;
            }
            // An identity changes nothing, and after sparse updates most elements are identities.
            s.when(differs(all, identity), &[], |s| {
                self.combine_at(s, (array, shared.means[array]), (arrays.results[array], place.zext(64)), all)?;
                Ok(Vec::new())
            })?;
        }
        Ok(())
    }
}

/// Compares two values bitwise for inequality.
fn differs<'e, 'ctx>(a: Value<'e, 'ctx>, b: Value<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let differs = a.stored_lanes().bits().ne(b.stored_lanes().bits());
    match (a.imaginary(), b.imaginary()) {
        (Some(x), Some(y)) => differs | x.bits().ne(y.bits()),
        _ => differs,
    }
}
