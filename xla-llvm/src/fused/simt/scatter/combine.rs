//! Atomic combination of an update with an element that other threads may update concurrently.

use inkwell::values::PointerValue;
use xla_hlo::{ElementType, Error, Result};

use crate::elemental::{self, Value, stored_scalar};
use crate::fused::emitter::FusedEmitter;
use crate::fused::simt::scatter::means::Means;
use crate::fused::simt::scatter::plan::ThreadedScatter;
use crate::lanes::Lanes;
use crate::simt::Atomic;

impl ThreadedScatter {
    /// Combines an update with element `at` in memory, by the means chosen for the array.
    pub(crate) fn combine_at<'e, 'ctx>(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        (array, means): (usize, Means),
        at: (PointerValue<'ctx>, Lanes<'e, 'ctx>),
        update: Value<'e, 'ctx>,
    ) -> Result<()> {
        match means {
            Means::Atomic(op) => self.combine_by_memory(s, (array, op), at, update),
            Means::Exchange => self.combine_by_exchange(s, array, at, update),
            Means::Last => Err(Error::internal(format!(
                "updates of scatter array {array} cannot be combined, because the last one wins"
            ))),
        }
    }

    /// Combines by an atomic read-modify-write operation.
    fn combine_by_memory<'e, 'ctx>(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        (array, op): (usize, Atomic),
        (memory, at): (PointerValue<'ctx>, Lanes<'e, 'ctx>),
        update: Value<'e, 'ctx>,
    ) -> Result<()> {
        let emitter = s.emitter;
        let update = elemental::convert(emitter, update, self.inputs[array].element_type())?;
        let Some(imaginary) = update.imaginary() else {
            return emitter.atomic_update(op, memory, at, update.stored_lanes());
        };
        let real = at + at;
        emitter.atomic_update(op, memory, real, update.lanes())?;
        emitter.atomic_update(op, memory, real + 1, imaginary)
    }

    /// Combines by a compare-and-swap loop.
    fn combine_by_exchange<'e, 'ctx>(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        array: usize,
        (memory, at): (PointerValue<'ctx>, Lanes<'e, 'ctx>),
        update: Value<'e, 'ctx>,
    ) -> Result<()> {
        let (emitter, ty) = (s.emitter, self.inputs[array].element_type());
        let word = word_of(elemental::load(emitter, memory, at, ty, 1, None));
        let exchanged = |held: Lanes<'e, 'ctx>| {
            let after = self.combined_alone(s, array, value_of(ty, held), update)?;
            emitter.compare_exchange(memory, at, held, word_of(after))
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
        Ok(())
    }
}

/// Converts an element to one integer of its size.
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

/// Converts an integer back to an element, the inverse of [`word_of`].
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
