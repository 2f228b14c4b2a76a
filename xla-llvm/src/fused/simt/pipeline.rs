//! Software pipeline of a warp-specialized kernel.
//!
//! Shared memory is a ring buffer of stages. One thread of a producer warp (or warp group) fills a stage by TMA, and
//! the consumer warp groups read it with `wgmma`. mbarriers signal that a tile is full, and that all consumers have
//! released a stage. Consumer threads therefore never compute an operand's address or wait for another group. This is
//! the warp specialization of Bauer, Cook and Khailany (CudaDMA: optimizing GPU memory bandwidth via warp
//! specialization, 2011).

use inkwell::values::{BasicValueEnum, PointerValue};
use xla_hlo::{Error, Result};

use crate::emitter::Emitter;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::SymbolId;
use crate::fused::loops::nest::CarriedValues;
use crate::fused::loops::range::Range;
use crate::fused::simt::tma_operand::TmaOperand;
use crate::fused::value::SymbolValue;
use crate::lanes::{Lanes, Scalar};
use crate::mma::GROUP;
use crate::simt::{Arrival, Mbarriers, Register, WARP};

/// Stages of a block, their mbarriers, and the role of a thread.
pub(crate) struct Pipeline<'e, 'ctx> {
    /// Shared memory of all tiles.
    pub array: PointerValue<'ctx>,
    /// Index of the thread in the block; consumers come first.
    pub thread: Lanes<'e, 'ctx>,
    /// Number of consumer warp groups.
    groups: u64,
    stages: u64,
    /// Complete when a tile is full that the whole block loads once, before the stages.
    once: Option<Mbarriers<'ctx>>,
    /// For each tile of a stage, complete per stage when the tile is full. Tiles that are waited for together share
    /// one.
    full: Vec<Mbarriers<'ctx>>,
    /// Complete per stage when all consumer warps have released it.
    empty: Mbarriers<'ctx>,
}

/// Numbers of a [`Pipeline`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stages {
    /// Number of stages.
    pub count: u64,
    /// Number of mbarriers of a stage that signal full tiles.
    pub full: usize,
    /// Whether there is an mbarrier for tiles that are loaded once.
    pub once: bool,
    /// Size in bytes of shared memory: tiles that are loaded once, and all stages.
    pub bytes: u64,
}

/// Stage of the ring buffer in an iteration of a loop.
#[derive(Clone, Copy)]
pub(crate) struct Stage<'e, 'ctx> {
    /// Index of the stage, a 64-bit integer.
    pub number: Lanes<'e, 'ctx>,
    /// Parity of the mbarrier phases, a 32-bit integer.
    parity: Lanes<'e, 'ctx>,
}

/// Number of the loop's iteration, as a symbol and as a 64-bit integer.
#[derive(Clone, Copy)]
pub(crate) struct Iteration<'e, 'ctx> {
    pub symbol: SymbolId,
    pub number: Lanes<'e, 'ctx>,
}

impl<'e, 'ctx> Pipeline<'e, 'ctx> {
    /// Allocates shared memory and mbarriers for `groups` consumer warp groups.
    pub fn new(emitter: &'e Emitter<'ctx>, groups: u64, stages: Stages) -> Result<Self> {
        let array = emitter.dynamic_shared_memory(Scalar::Int(8), stages.bytes)?;
        let once = if stages.once { Some(emitter.mbarriers(1)?) } else { None };
        let full = (0..stages.full).map(|_| emitter.mbarriers(stages.count)).collect::<Result<_>>()?;
        let empty = emitter.mbarriers(stages.count)?;
        let thread = emitter.register(Register::Thread)?;
        Ok(Pipeline { array, thread, groups, stages: stages.count, once, full, empty })
    }

    /// Returns the number of consumer threads.
    fn consumers(&self) -> i64 {
        (self.groups * u64::from(GROUP)) as i64
    }

    /// Returns the index of the thread's warp group, a 64-bit integer.
    pub fn group(&self) -> Lanes<'e, 'ctx> {
        self.thread.lshr(i64::from(GROUP.ilog2())).zext(64)
    }

    /// Emits the kernel: initialisation of the mbarriers, `produce` for one thread, and `consume` for the consumer
    /// groups, to which the producers release their registers.
    pub fn emit<'m>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        produce: impl FnOnce(&mut FusedEmitter<'e, 'ctx, 'm>) -> Result<()>,
        consume: impl FnOnce(&mut FusedEmitter<'e, 'ctx, 'm>) -> Result<()>,
    ) -> Result<()> {
        self.init(s)?;
        let consumers = self.consumers();
        s.when(self.thread.uge(consumers), &[], |s| {
            s.emitter.exchange_registers(self.groups, false)?;
            s.when(self.thread.eq(consumers), &[], |s| produce(s).map(|()| Vec::new()))
        })?;
        s.when(self.thread.ult(consumers), &[], |s| {
            s.emitter.exchange_registers(self.groups, true)?;
            s.item_level = s.depth();
            consume(s).map(|()| Vec::new())
        })?;
        Ok(())
    }

    /// Initialises all mbarriers.
    fn init(&self, s: &mut FusedEmitter<'e, 'ctx, '_>) -> Result<()> {
        s.when(self.thread.eq(0), &[], |s| {
            if let Some(once) = self.once {
                s.emitter.init_mbarrier(once, s.number(0), 1)?;
            }
            for stage in 0..self.stages as i64 {
                for &full in &self.full {
                    s.emitter.init_mbarrier(full, s.number(stage), 1)?;
                }
                s.emitter.init_mbarrier(self.empty, s.number(stage), self.consumers() as u32 / WARP)?;
            }
            s.emitter.fence_mbarrier_init()?;
            Ok(Vec::new())
        })?;
        s.emitter.barrier()
    }

    /// Emits the producer loop; `fill` loads the tiles of a stage, which is empty.
    pub fn produce<'m>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        range: Range<'e, 'ctx>,
        mut fill: impl FnMut(&mut FusedEmitter<'e, 'ctx, 'm>, Iteration<'e, 'ctx>, Stage<'e, 'ctx>) -> Result<()>,
    ) -> Result<()> {
        self.for_each_stage(s, range, Vec::new(), &mut |s, iteration, stage, _| {
            // The first wait for each stage returns at once: the stage is empty.
            s.emitter.wait_mbarrier(self.empty, stage.number, stage.parity ^ 1)?;
            fill(s, iteration, stage)?;
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// Emits a loop over stages that carries values, and returns their final values. A consumer's body
    /// [waits](Self::wait) for the tiles of the stage and [releases](Self::release_previous) the previous stage.
    pub fn for_each_stage<'m>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        range: Range<'e, 'ctx>,
        others: CarriedValues<'ctx>,
        body: &mut StageBody<'_, 'e, 'ctx, 'm>,
    ) -> Result<CarriedValues<'ctx>> {
        let mut carried = Stage::first(s.emitter).raws().to_vec();
        carried.extend(others);
        let raws = s.for_each(range, carried, &mut |s, symbol, carried| {
            s.emitter.keep_loop()?;
            let (own, others) = carried.split_at(Stage::RAWS);
            let stage = Stage { number: s.emitter.lanes(own[0]), parity: s.emitter.lanes(own[1]) };
            let SymbolValue::Uniform(number) = s.symbol_value(symbol) else {
                return Err(Error::internal("the iteration number of a pipeline is a vector"));
            };
            let others = body(s, Iteration { symbol, number }, stage, others)?;
            let mut carried = stage.next(self.stages).raws().to_vec();
            carried.extend(others);
            Ok(carried)
        })?;
        Ok(raws[Stage::RAWS..].to_vec())
    }

    /// Starts to load tiles of a stage that have the mbarrier `full` in common. Each is an operand, a byte offset in
    /// shared memory, and the first row (or column) and first step of K.
    pub fn load(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        (full, stage): (usize, Stage<'e, 'ctx>),
        tiles: &[TileLoad<'_, 'e, 'ctx>],
    ) -> Result<()> {
        self.start(s, Arrival { barriers: self.full[full], number: stage.number }, tiles)
    }

    /// Starts to load tiles once.
    pub fn load_once(&self, s: &FusedEmitter<'e, 'ctx, '_>, tiles: &[TileLoad<'_, 'e, 'ctx>]) -> Result<()> {
        self.start(s, Arrival { barriers: self.once()?, number: s.number(0) }, tiles)
    }

    fn start(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        arrival: Arrival<'e, 'ctx>,
        tiles: &[TileLoad<'_, 'e, 'ctx>],
    ) -> Result<()> {
        let bytes = tiles.iter().map(|(operand, _, _)| operand.tile.all_bytes()).sum();
        s.emitter.arrive_expecting(arrival.barriers, arrival.number, bytes)?;
        for &(operand, to, first) in tiles {
            operand.copy(s, (self.array, to), first, arrival)?;
        }
        Ok(())
    }

    /// Waits until tiles of a stage are full.
    pub fn wait(&self, s: &FusedEmitter<'e, 'ctx, '_>, full: usize, stage: Stage<'e, 'ctx>) -> Result<()> {
        s.emitter.wait_mbarrier(self.full[full], stage.number, stage.parity)
    }

    /// Waits until the tiles that are loaded once are full.
    pub fn wait_once(&self, s: &FusedEmitter<'e, 'ctx, '_>) -> Result<()> {
        s.emitter.wait_mbarrier(self.once()?, s.number(0), self.thread.int(0))
    }

    fn once(&self) -> Result<Mbarriers<'ctx>> {
        self.once.ok_or_else(|| Error::internal("the software pipeline has no tiles that are loaded once"))
    }

    /// Releases the stage of the previous iteration, if there is one. All `wgmma` operations on it must be complete.
    pub fn release_previous(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        stage: Stage<'e, 'ctx>,
        has_previous: Lanes<'e, 'ctx>,
    ) -> Result<()> {
        let arrives = (self.thread & i64::from(WARP - 1)).eq(0) & has_previous;
        s.when(arrives, &[], |s| {
            s.emitter.arrive(self.empty, stage.previous(self.stages))?;
            Ok(Vec::new())
        })?;
        Ok(())
    }
}

/// Body of a loop over stages: takes the values that the loop carries, and returns the next ones.
pub(crate) type StageBody<'a, 'e, 'ctx, 'm> = dyn FnMut(
        &mut FusedEmitter<'e, 'ctx, 'm>,
        Iteration<'e, 'ctx>,
        Stage<'e, 'ctx>,
        &[BasicValueEnum<'ctx>],
    ) -> Result<CarriedValues<'ctx>>
    + 'a;

/// Tile to load: its operand, its byte offset in shared memory, and its first row (or column) and first step of K as
/// 32-bit integers.
pub(crate) type TileLoad<'a, 'e, 'ctx> = (&'a TmaOperand<'e, 'ctx>, Lanes<'e, 'ctx>, [Lanes<'e, 'ctx>; 2]);

impl<'e, 'ctx> Stage<'e, 'ctx> {
    /// Number of values that a loop carries for a stage.
    const RAWS: usize = 2;

    /// Returns the stage that is filled first.
    fn first(emitter: &'e Emitter<'ctx>) -> Stage<'e, 'ctx> {
        let zero = |bits: u32| emitter.lanes(emitter.int_type(bits).const_zero());
        Stage { number: zero(64), parity: zero(32) }
    }

    /// Returns the values that a loop carries.
    fn raws(self) -> [BasicValueEnum<'ctx>; Stage::RAWS] {
        [self.number.raw(), self.parity.raw()]
    }

    /// Returns the next of `stages` stages; the parity flips when the index wraps around.
    fn next(self, stages: u64) -> Stage<'e, 'ctx> {
        let number = self.number + 1;
        let is_last = number.eq(stages as i64);
        Stage { number: is_last.select(number.int(0), number), parity: is_last.select(self.parity ^ 1, self.parity) }
    }

    /// Returns the index of the previous stage.
    fn previous(self, stages: u64) -> Lanes<'e, 'ctx> {
        self.number.eq(0).select(self.number.int(stages as i64), self.number) - 1
    }
}
