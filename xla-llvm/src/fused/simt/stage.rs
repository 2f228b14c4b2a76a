//! Stages of shared memory that are filled in bulk, one after the other and again from the first on.

use inkwell::values::BasicValueEnum;

use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};

/// A stage, and the parity of the phase in which it is filled.
#[derive(Clone, Copy)]
pub(crate) struct Stage<'e, 'ctx> {
    /// Its number, an integer of 64 bits.
    pub number: Lanes<'e, 'ctx>,
    /// An integer of 32 bits.
    pub parity: Lanes<'e, 'ctx>,
}

impl<'e, 'ctx> Stage<'e, 'ctx> {
    /// Values that a loop carries for it.
    pub const RAWS: usize = 2;

    /// The one that is filled first.
    pub fn first(emitter: &'e Emitter<'ctx>) -> Stage<'e, 'ctx> {
        let zero = |bits: u32| emitter.lanes(emitter.int_type(bits).const_zero());
        Stage { number: zero(64), parity: zero(Scalar::Int(32).bits()) }
    }

    /// The values that a loop carries.
    pub fn raws(self) -> [BasicValueEnum<'ctx>; Stage::RAWS] {
        [self.number.raw(), self.parity.raw()]
    }

    /// The stage that a loop carries in its first values, and the others.
    pub fn split_off<'a>(
        emitter: &'e Emitter<'ctx>,
        carried: &'a [BasicValueEnum<'ctx>],
    ) -> (Stage<'e, 'ctx>, &'a [BasicValueEnum<'ctx>]) {
        let (own, others) = carried.split_at(Stage::RAWS);
        (Stage { number: emitter.lanes(own[0]), parity: emitter.lanes(own[1]) }, others)
    }

    /// The next one, of so many.
    pub fn next(self, stages: u64) -> Stage<'e, 'ctx> {
        let number = self.number + 1;
        let is_last = number.eq(stages as i64);
        Stage { number: is_last.select(number.int(0), number), parity: is_last.select(self.parity ^ 1, self.parity) }
    }

    /// The number of the one before.
    pub fn before(self, stages: u64) -> Lanes<'e, 'ctx> {
        self.number.eq(0).select(self.number.int(stages as i64), self.number) - 1
    }
}
