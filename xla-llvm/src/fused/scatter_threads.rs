//! Scatter with a thread for each element of the updates, where the order of what meets at one place does not matter or can be found.
//!
//! Elements that meet are combined atomically: by an operation of the memory where there is one, by exchanging the element until no
//! other thread came between elsewhere. Where the last update wins, updates first claim their place with their numbers.

use inkwell::values::PointerValue;
use xla_hlo::ops::{BinaryOp, Op, Scatter, simple_combiner};
use xla_hlo::{ArrayShape, Computation, ElementKind, ElementType, Error, InstrId, Module, Result};

use super::FusedEmitter;
use super::frame::Units;
use super::index::Coord;
use super::kernel::Kernel;
use super::scalar_call::is_scalar_computation;
use super::scatter_plan::ScatterPlan;
use crate::elemental::{self, Value, stored_scalar};
use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};
use crate::simt::Atomic;

/// A scatter into one array.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadedScatter {
    op: Scatter,
    input: ArrayShape,
    indices: ArrayShape,
    update: ArrayShape,
    way: Way,
}

/// How updates that meet are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// They do not meet.
    Apart,
    /// By an operation of the memory, on each part of an element.
    Atomic(Atomic),
    /// By exchanges.
    Exchange,
    /// The one of the last window wins.
    Last,
}

/// What one launch does. The words of each: addresses of the indices, the updates and the result, which holds the input; then, where
/// [`ThreadedScatter::claim_bytes`] says so, that of memory for claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScatterPhase {
    /// Forgets older claims on the places that are updated.
    Forget,
    /// Claims them, each for the last window that updates it.
    Claim,
    /// Combines the updates, those that have claimed their places where there are claims.
    Combine,
}

impl ThreadedScatter {
    /// The scatter of operands with these shapes. `None` where it must go in order, or is none into one array by a combiner of scalars.
    pub fn new(module: &Module, op: &Scatter, operands: &[&ArrayShape]) -> Option<ThreadedScatter> {
        let &[input, indices, update] = operands else { return None };
        if !is_scalar_computation(module, op.computation) || !operands.iter().all(|shape| shape.is_static()) {
            return None;
        }
        let (input, indices, update) = (input.clone(), indices.clone(), update.clone());
        let is_batch = |d: &usize| !op.update_window_dims.contains(d);
        let windows: usize = (0..update.rank()).filter(is_batch).map(|d| update.dims()[d]).product();
        let way = match way(&module[op.computation], input.element_type()) {
            _ if op.unique_indices || windows <= 1 => Way::Apart,
            way => way?,
        };
        Some(ThreadedScatter { op: op.clone(), input, indices, update, way })
    }

    /// The launches.
    pub fn phases(&self) -> &'static [ScatterPhase] {
        match self.way {
            Way::Last => &[ScatterPhase::Forget, ScatterPhase::Claim, ScatterPhase::Combine],
            Way::Apart | Way::Atomic(_) | Way::Exchange => &[ScatterPhase::Combine],
        }
    }

    /// Bytes of memory for claims, where they are made.
    pub fn claim_bytes(&self) -> Option<usize> {
        let bytes = self.claim().bits() as usize / 8;
        (self.way == Way::Last).then(|| self.input.element_count() * bytes)
    }

    /// How many 64-bit words the kernels take.
    pub fn words(&self) -> usize {
        if self.way == Way::Last { 4 } else { 3 }
    }

    /// The type of a claim: a number of windows, and 0 for none.
    fn claim(&self) -> Scalar {
        if self.update.element_count() < u32::MAX as usize { Scalar::Int(32) } else { Scalar::Int(64) }
    }

    /// Writes the function of a launch into the emitter's module, which is for a target with threads.
    pub fn emit(&self, module: &Module, phase: ScatterPhase, emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        let frame = emitter.simt_kernel(name, self.words(), 0)?;
        let [indices, updates, result, claims @ ..] = &frame.pointers[..] else {
            return Err(Error::internal("a scatter lacks its arrays"));
        };
        let elements = self.update.element_count() as u64;
        let units = if self.input.element_count() == 0 { 0 } else { elements };
        let plan = ScatterPlan::new(&self.op, &self.input, &self.indices, &self.update);
        let mut fused = FusedEmitter::new(emitter, module, self.op.computation)?;
        if units > 0 {
            fused.for_units(Units::Thread, units, &mut |s, unit| {
                let number = s.number_of(&Coord::symbol(unit))?;
                let place = self.place(s, &plan, *indices, s.lanes_of(number))?;
                s.when(place.fits, &[], |s| {
                    match (phase, claims) {
                        (ScatterPhase::Forget, &[claims]) => {
                            emitter.store_lanes(place.claim.int(0), claims, place.into, None);
                        }
                        (ScatterPhase::Claim, &[claims]) => {
                            emitter.atomic_update(Atomic::MaximumUnsigned, claims, place.into, place.claim)?;
                        }
                        (ScatterPhase::Combine, &[claims]) => {
                            let claim = emitter.load_lanes(claims, place.into, self.claim(), 1, None);
                            let is_last = claim.eq(place.claim);
                            s.when(is_last, &[], |s| self.combine(s, *updates, *result, &place).map(|()| Vec::new()))?;
                        }
                        (ScatterPhase::Combine, []) => self.combine(s, *updates, *result, &place)?,
                        _ => return Err(Error::internal("a scatter without claims makes some")),
                    }
                    Ok(Vec::new())
                })?;
                Ok(())
            })?;
        }
        emitter.end_kernel()?;
        Ok(Kernel { name: name.to_string(), units, block: None, shared_bytes: 0, work: elements as f64 })
    }

    /// Where an element of the updates goes.
    fn place<'e, 'ctx>(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        plan: &ScatterPlan,
        indices: PointerValue<'ctx>,
        from: Lanes<'e, 'ctx>,
    ) -> Result<Place<'e, 'ctx>> {
        let elements = self.update.element_count();
        let narrow = i32::try_from(elements).is_ok();
        let number = if narrow { from.trunc(32) } else { from };
        // A dimension's counter, as 64 bits.
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
            // Numbers below the first become larger than any place.
            fits = fits & number.ult(component.places as i64);
            into = into + number * component.inputs as i64;
        }
        let claim = window + 1;
        Ok(Place { from, into, fits, claim: if self.claim().bits() == 32 { claim.trunc(32) } else { claim } })
    }

    /// A number of the indices as 64 bits, a negative one larger than any place.
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
                return Err(Error::internal("indices of a scatter are no integers"));
            }
        };
        Ok(elemental::convert(emitter, number, wide)?.lanes())
    }

    /// Combines an element of the updates into its place.
    fn combine<'e, 'ctx>(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        updates: PointerValue<'ctx>,
        result: PointerValue<'ctx>,
        place: &Place<'e, 'ctx>,
    ) -> Result<()> {
        let emitter = s.emitter;
        let ty = self.input.element_type();
        let update = elemental::load(emitter, updates, place.from, self.update.element_type(), 1, None);
        match self.way {
            Way::Apart | Way::Last => {
                let before = elemental::load(emitter, result, place.into, ty, 1, None);
                elemental::store(emitter, self.combined(s, before, update)?, result, place.into, None);
            }
            Way::Atomic(op) => {
                let update = elemental::convert(emitter, update, ty)?;
                let Some(imaginary) = update.imaginary() else {
                    return emitter.atomic_update(op, result, place.into, update.stored_lanes());
                };
                let real = place.into + place.into;
                emitter.atomic_update(op, result, real, update.lanes())?;
                emitter.atomic_update(op, result, real + 1, imaginary)?;
            }
            Way::Exchange => {
                let word = word_of(elemental::load(emitter, result, place.into, ty, 1, None));
                let exchanged = |held: Lanes<'e, 'ctx>| {
                    let after = self.combined(s, value_of(ty, held), update)?;
                    emitter.compare_exchange(result, place.into, held, word_of(after))
                };
                emitter.repeat_while(
                    [word, word.mask(false)],
                    |[_, done]| done.eq(0),
                    |[held, done]| {
                        exchanged(held).unwrap_or_else(|error| {
                            emitter.fail(error);
                            [held, done]
                        })
                    },
                );
            }
        }
        Ok(())
    }

    /// What the combiner gives, as an element of the array.
    fn combined<'e, 'ctx>(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        before: Value<'e, 'ctx>,
        update: Value<'e, 'ctx>,
    ) -> Result<Value<'e, 'ctx>> {
        let after = s.call(self.op.computation, &[before, update])?;
        let after = after.first().ok_or_else(|| Error::internal("a combiner without a result"))?;
        elemental::convert(s.emitter, *after, self.input.element_type())
    }
}

/// Where an element of the updates goes.
struct Place<'e, 'ctx> {
    /// Its number among the updates.
    from: Lanes<'e, 'ctx>,
    /// That of the element of the array.
    into: Lanes<'e, 'ctx>,
    /// Whether its window is inside of the array.
    fits: Lanes<'e, 'ctx>,
    /// What it claims its place with: larger for later windows, and more than 0.
    claim: Lanes<'e, 'ctx>,
}

/// An element as one integer of its size.
fn word_of<'e, 'ctx>(value: Value<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let low = value.stored_lanes().bits();
    match value.imaginary() {
        None => low,
        Some(high) => {
            let (low, high, bits) = (low.zext(64), high.bits().zext(64), i64::from(low.scalar().bits()));
            low | (high << bits)
        }
    }
}

/// Inverse of [`word_of`].
fn value_of<'e, 'ctx>(ty: ElementType, word: Lanes<'e, 'ctx>) -> Value<'e, 'ctx> {
    let scalar = stored_scalar(ty);
    match ty.is_complex() {
        false => Value::stored(ty, word.cast_bits(scalar)),
        true => {
            let part = |word: Lanes<'e, 'ctx>| word.trunc(scalar.bits()).cast_bits(scalar);
            Value::complex(ty, part(word), part(word.lshr(i64::from(scalar.bits()))))
        }
    }
}

/// How a combiner can be applied by many threads to elements of that type.
fn way(combiner: &Computation, ty: ElementType) -> Option<Way> {
    let &[_, update] = combiner.parameters() else { return None };
    if passed(combiner, combiner.root()) == update {
        return Some(Way::Last);
    }
    let is_hardwares = matches!(ty.real_part().bit_width(), 32 | 64);
    let is_signed = ty.kind() == ElementKind::Signed;
    let is_integer = is_signed || ty.kind() == ElementKind::Unsigned;
    let atomic = match simple_combiner(combiner).filter(|_| is_hardwares) {
        Some(BinaryOp::Add) => Some(Atomic::Add),
        Some(BinaryOp::And) if is_integer => Some(Atomic::And),
        Some(BinaryOp::Or) if is_integer => Some(Atomic::Or),
        Some(BinaryOp::Xor) if is_integer => Some(Atomic::Xor),
        Some(BinaryOp::Maximum) if is_signed => Some(Atomic::Maximum),
        Some(BinaryOp::Minimum) if is_signed => Some(Atomic::Minimum),
        Some(BinaryOp::Maximum) if is_integer => Some(Atomic::MaximumUnsigned),
        Some(BinaryOp::Minimum) if is_integer => Some(Atomic::MinimumUnsigned),
        _ => None,
    };
    match atomic {
        Some(atomic) => Some(Way::Atomic(atomic)),
        None => (is_order_free(combiner) && ty.byte_width() <= 8).then_some(Way::Exchange),
    }
}

/// Whether a combiner is one associative and commutative operation, perhaps on wider numbers.
fn is_order_free(combiner: &Computation) -> bool {
    let root = &combiner[passed(combiner, combiner.root())];
    let operands: Vec<InstrId> = root.operands().iter().map(|&id| passed(combiner, id)).collect();
    let is_one = matches!(
        root.op(),
        Op::Binary(binary) if matches!(
            binary.op,
            BinaryOp::Add | BinaryOp::Multiply | BinaryOp::Maximum | BinaryOp::Minimum | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor
        )
    );
    let mut parameters = combiner.parameters().to_vec();
    let takes_each = operands.iter().all(|id| {
        let found = parameters.iter().position(|parameter| parameter == id);
        found.map(|found| parameters.remove(found)).is_some()
    });
    is_one && takes_each && parameters.is_empty()
}

/// The instruction whose value an instruction passes on, perhaps as a float of another type.
pub(super) fn passed(graph: &Computation, mut id: InstrId) -> InstrId {
    let is_float = |id: InstrId| graph[id].shape().element_type().is_some_and(|ty| ty.kind() == ElementKind::Float);
    loop {
        let instruction = &graph[id];
        match (instruction.op(), instruction.operands()) {
            (Op::Copy(_) | Op::Reshape(_), &[operand]) => id = operand,
            (Op::Convert(_), &[operand]) if is_float(id) && is_float(operand) => id = operand,
            _ => return id,
        }
    }
}
