//! A thread of a block: its numbers, its share of what all go through, and sums of those before it.

use inkwell::values::PointerValue;
use xla_hlo::Result;

use crate::emitter::Emitter;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::lanes::{Lanes, Scalar};
use crate::simt::{Register, Shuffle, WARP};

/// A thread of a block; numbers of 32 bits.
#[derive(Clone, Copy)]
pub(crate) struct Member<'e, 'ctx> {
    pub thread: Lanes<'e, 'ctx>,
    pub lane: Lanes<'e, 'ctx>,
    pub warp: Lanes<'e, 'ctx>,
    /// Threads of the block.
    pub threads: u64,
}

impl<'e, 'ctx> Member<'e, 'ctx> {
    pub fn new(emitter: &'e Emitter<'ctx>, threads: u64) -> Result<Self> {
        let thread = emitter.register(Register::Thread)?;
        let (lane, warp) = (thread & i64::from(WARP - 1), thread.lshr(i64::from(WARP.ilog2())));
        Ok(Member { thread, lane, warp, threads })
    }

    /// Runs `body` for each number of the thread below `count`, in turns of all threads.
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

    /// The sum of the numbers, 64 bits each, of the threads before this one, and that of all. All threads must be here;
    /// shared memory has an element for each warp.
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
        // What follows may write where others still read.
        emitter.barrier()?;
        Ok([before + through - own, all])
    }

    /// The sum of the numbers of the warp's lanes up to this one.
    pub fn warp_sums(&self, emitter: &'e Emitter<'ctx>, own: Lanes<'e, 'ctx>) -> Result<Lanes<'e, 'ctx>> {
        let mut through = own;
        for distance in (0..WARP.ilog2()).map(|bit| 1 << bit) {
            let before = emitter.shuffle(through, Shuffle::Up(distance))?;
            through = self.lane.uge(i64::from(distance)).select(through + before, through);
        }
        Ok(through)
    }
}
