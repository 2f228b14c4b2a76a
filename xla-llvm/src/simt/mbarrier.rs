//! mbarriers (`mbarrier` of the PTX ISA). A phase completes when all threads that it expects have arrived and all bytes
//! of its TMA copies have been written. Unlike a block barrier, arriving does not imply waiting.

use inkwell::values::{BasicValue, PointerValue};
use xla_hlo::{Error, Result};

use super::WAIT_FOR_PHASE;
use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};
use crate::target::Simt;

/// Bit fields of a barrier word on the host: pending arrivals, expected arrivals of a phase, and the phase (0 or 1).
const MISSING: i64 = 0xffff_ffff;
const EXPECTED: i64 = 32;
const PHASE: i64 = 63;

/// Returns whether the phase with the given parity is complete, for a barrier on the host that holds `word`.
pub fn host_mbarrier_is_complete(word: u64, parity: u32) -> bool {
    word >> PHASE != u64::from(parity & 1)
}

/// Array of mbarriers in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Mbarriers<'ctx> {
    pub(super) array: PointerValue<'ctx>,
}

impl<'ctx> Emitter<'ctx> {
    /// Allocates `count` mbarriers in shared memory. Before use, one thread [initialises](Self::init_mbarrier) them and
    /// the block passes a barrier.
    pub fn mbarriers(&self, count: u64) -> Result<Mbarriers<'ctx>> {
        Ok(Mbarriers { array: self.shared_array(Scalar::Int(64), count)? })
    }

    /// `mbarrier.init`: initialises a barrier that expects `arrivals` arrivals per phase. Its first phase has parity 0.
    pub fn init_mbarrier<'e>(
        &'e self,
        barriers: Mbarriers<'ctx>,
        number: Lanes<'e, 'ctx>,
        arrivals: u32,
    ) -> Result<()> {
        let address = self.element_address(barriers.array, number, Scalar::Int(64));
        match self.simt()? {
            Simt::Nvptx => {
                let arrivals = self.context.i32_type().const_int(arrivals.into(), false).into();
                self.effect("mbarrier.init.shared::cta.b64 [$0], $1;", "l,r", &[address, arrivals]);
            }
            Simt::Host => {
                let arrivals = i64::from(arrivals);
                let word = number.zext(64).int(arrivals << EXPECTED | arrivals);
                self.store_lanes(word, barriers.array, number, None);
            }
        }
        Ok(())
    }

    /// `fence.mbarrier_init`, `fence.proxy.async`: makes mbarriers that this thread has initialised visible to the
    /// async proxy (TMA).
    pub fn fence_mbarrier_init(&self) -> Result<()> {
        if self.simt()? == Simt::Nvptx {
            self.effect("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;", "", &[]);
        }
        Ok(())
    }

    /// `mbarrier.arrive` (release): orders this thread's prior writes before the waiters of the phase.
    pub fn arrive<'e>(&'e self, barriers: Mbarriers<'ctx>, number: Lanes<'e, 'ctx>) -> Result<()> {
        match self.simt()? {
            Simt::Nvptx => {
                let address = self.element_address(barriers.array, number, Scalar::Int(64));
                self.effect("mbarrier.arrive.shared::cta.b64 _, [$0];", "l", &[address]);
            }
            Simt::Host => self.arrive_on_host(barriers, number),
        }
        Ok(())
    }

    /// `mbarrier.arrive.expect_tx`: arrives as [`arrive`](Self::arrive) does; the phase also waits for `bytes` bytes of
    /// TMA copies.
    pub fn arrive_expecting<'e>(
        &'e self,
        barriers: Mbarriers<'ctx>,
        number: Lanes<'e, 'ctx>,
        bytes: u64,
    ) -> Result<()> {
        match self.simt()? {
            Simt::Nvptx => {
                let address = self.element_address(barriers.array, number, Scalar::Int(64));
                let bytes = self.context.i32_type().const_int(bytes, false).into();
                let text = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;";
                self.effect(text, "l,r", &[address, bytes]);
            }
            // Copies on the host are synchronous: this thread finishes them before another one runs.
            Simt::Host => self.arrive_on_host(barriers, number),
        }
        Ok(())
    }

    /// `mbarrier.try_wait.parity`: waits until the phase with the given parity (a 32-bit integer) is complete. The
    /// phase before the first one counts as complete and has parity 1.
    pub fn wait_mbarrier<'e>(
        &'e self,
        barriers: Mbarriers<'ctx>,
        number: Lanes<'e, 'ctx>,
        parity: Lanes<'e, 'ctx>,
    ) -> Result<()> {
        let address = self.element_address(barriers.array, number, Scalar::Int(64));
        match self.simt()? {
            Simt::Nvptx => {
                let word = self.context.i32_type();
                let text =
                    "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [$1], $2; selp.b32 $0, 1, 0, p; }";
                let mut missing = false;
                self.repeat_while(
                    [],
                    |[]| {
                        let statement = (text.to_owned(), "=r,l,r,~{memory}".to_owned());
                        let is_complete = self.assembly(statement, word.into(), &[address, parity.raw()]);
                        missing = is_complete.is_none();
                        self.lanes(is_complete.unwrap_or(word.const_zero().into())).eq(0)
                    },
                    |[]| [],
                );
                if missing { Err(Error::internal("LLVM cannot emit mbarrier.try_wait")) } else { Ok(()) }
            }
            Simt::Host => {
                let pointer = address.get_type().into();
                let types = [pointer, pointer, self.context.i32_type().into()];
                let ty = self.context.void_type().fn_type(&types, false);
                let function = self.module.get_function(WAIT_FOR_PHASE);
                let function = function.unwrap_or_else(|| self.module.add_function(WAIT_FOR_PHASE, ty, None));
                let thread = self.host_thread()?.as_basic_value_enum();
                let arguments = [thread, address, parity.raw()].map(Into::into);
                self.record(self.builder.build_call(function, &arguments, ""));
                Ok(())
            }
        }
    }

    fn arrive_on_host<'e>(&'e self, barriers: Mbarriers<'ctx>, number: Lanes<'e, 'ctx>) {
        let word = self.load_lanes(barriers.array, number, Scalar::Int(64), 1, None);
        let expected = word.lshr(EXPECTED) & (i64::MAX >> EXPECTED);
        let next_phase = (word ^ i64::MIN) & !MISSING | expected;
        let next = (word & MISSING).eq(1).select(next_phase, word - 1);
        self.store_lanes(next, barriers.array, number, None);
    }
}
