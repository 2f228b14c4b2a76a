//! Thread of a block: its indices, its share of a block-wide loop, and prefix sums over threads.

use inkwell::values::PointerValue;
use xla_hlo::Result;

use crate::emitter::Emitter;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::lanes::{Lanes, Scalar};
use crate::simt::{Register, Shuffle, WARP};

/// Thread of a block; its indices have 32 bits.
#[derive(Clone, Copy)]
pub(crate) struct BlockThread<'e, 'ctx> {
    pub thread: Lanes<'e, 'ctx>,
    pub lane: Lanes<'e, 'ctx>,
    pub warp: Lanes<'e, 'ctx>,
    /// Number of threads in the block.
    pub threads: u64,
}

impl<'e, 'ctx> BlockThread<'e, 'ctx> {
    pub fn new(emitter: &'e Emitter<'ctx>, threads: u64) -> Result<Self> {
        let thread = emitter.register(Register::Thread)?;
        let (lane, warp) = (thread & i64::from(WARP - 1), thread.lshr(i64::from(WARP.ilog2())));
        Ok(BlockThread { thread, lane, warp, threads })
    }

    /// Emits `body` for the thread's numbers below `count`: a block-stride loop.
    pub fn each<'m>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        count: u64,
        body: &mut dyn FnMut(&mut FusedEmitter<'e, 'ctx, 'm>, Lanes<'e, 'ctx>) -> Result<()>,
    ) -> Result<()> {
        let turns = s.full_range(count.div_ceil(self.threads), 1);
        s.for_each(turns, Vec::new(), &mut |s, turn, _| {
            let turn = s.number_of(&AffineExpr::symbol(turn))?;
            let number = s.lanes_of(turn).trunc(32) * self.threads as i64 + self.thread;
            if count.is_multiple_of(self.threads) {
                return body(s, number).map(|()| Vec::new());
            }
            s.when(number.ult(count as i64), &[], |s| body(s, number).map(|()| Vec::new()))
        })?;
        Ok(())
    }

    /// Returns the exclusive prefix sum of a 64-bit number per thread, and the sum of all. All threads must execute it;
    /// `shared` has an element for each warp.
    pub fn sums<'m>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        own: Lanes<'e, 'ctx>,
        shared: PointerValue<'ctx>,
    ) -> Result<[Lanes<'e, 'ctx>; 2]> {
        let emitter = s.emitter;
        let through = self.warp_sums(emitter, own)?;
        s.when(self.lane.eq(i64::from(WARP - 1)), &[], |_| {
            emitter.store_lanes(through, shared, self.warp, None);
            Ok(Vec::new())
        })?;
        emitter.barrier()?;
        let (mut all, mut before) = (own.int(0), own.int(0));
        for warp in 0..self.threads / u64::from(WARP) {
            let sum = emitter.load_lanes(shared, self.warp.int(warp as i64), Scalar::Int(64), 1, None);
            before = self.warp.ugt(warp as i64).select(before + sum, before);
            all = all + sum;
        }
        // Later code may overwrite shared memory that other threads still read.
        emitter.barrier()?;
        Ok([before + through - own, all])
    }

    /// Returns the inclusive prefix sum over the warp's lanes.
    pub fn warp_sums(&self, emitter: &'e Emitter<'ctx>, own: Lanes<'e, 'ctx>) -> Result<Lanes<'e, 'ctx>> {
        let mut through = own;
        for distance in (0..WARP.ilog2()).map(|bit| 1 << bit) {
            let before = emitter.shuffle(through, Shuffle::Up(distance))?;
            through = self.lane.uge(i64::from(distance)).select(through + before, through);
        }
        Ok(through)
    }
}
