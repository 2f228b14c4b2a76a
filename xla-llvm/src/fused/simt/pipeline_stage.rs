//! Stages of a ring buffer in shared memory that TMA fills.

use inkwell::values::BasicValueEnum;

use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};

/// PipelineStage of the ring buffer, and the parity of the mbarrier phase that fills it.
#[derive(Clone, Copy)]
pub(crate) struct PipelineStage<'e, 'ctx> {
    /// Index of the stage, a 64-bit integer.
    pub number: Lanes<'e, 'ctx>,
    /// Parity of the phase, a 32-bit integer.
    pub parity: Lanes<'e, 'ctx>,
}

impl<'e, 'ctx> PipelineStage<'e, 'ctx> {
    /// Number of values that a loop carries for a stage.
    pub const RAWS: usize = 2;

    /// Returns the stage that is filled first.
    pub fn first(emitter: &'e Emitter<'ctx>) -> PipelineStage<'e, 'ctx> {
        let zero = |bits: u32| emitter.lanes(emitter.int_type(bits).const_zero());
        PipelineStage { number: zero(64), parity: zero(Scalar::Int(32).bits()) }
    }

    /// Returns the values that a loop carries.
    pub fn raws(self) -> [BasicValueEnum<'ctx>; PipelineStage::RAWS] {
        [self.number.raw(), self.parity.raw()]
    }

    /// Splits the carried values of a loop into the stage, which comes first, and the others.
    pub fn split_off<'a>(
        emitter: &'e Emitter<'ctx>,
        carried: &'a [BasicValueEnum<'ctx>],
    ) -> (PipelineStage<'e, 'ctx>, &'a [BasicValueEnum<'ctx>]) {
        let (own, others) = carried.split_at(PipelineStage::RAWS);
        (PipelineStage { number: emitter.lanes(own[0]), parity: emitter.lanes(own[1]) }, others)
    }

    /// Returns the next of `stages` stages; the parity flips when the index wraps around.
    pub fn next(self, stages: u64) -> PipelineStage<'e, 'ctx> {
        let number = self.number + 1;
        let is_last = number.eq(stages as i64);
        PipelineStage {
            number: is_last.select(number.int(0), number),
            parity: is_last.select(self.parity ^ 1, self.parity),
        }
    }

    /// Returns the index of the previous stage.
    pub fn before(self, stages: u64) -> Lanes<'e, 'ctx> {
        self.number.eq(0).select(self.number.int(stages as i64), self.number) - 1
    }
}
