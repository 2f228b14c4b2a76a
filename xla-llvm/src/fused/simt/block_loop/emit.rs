//! Code of a loop in one kernel: all threads execute its phases in sequence, in a loop.

use inkwell::values::PointerValue;
use xla_hlo::{Error, Result, ResultExt};

use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::kernel::{Kernel, Launch};
use crate::fused::kernel_plan::code::{Identity, KernelFunction};
use crate::fused::loops::frame::{Frame, WorkItems};
use crate::fused::simt::block_loop::cost::word_bytes;
use crate::fused::simt::block_loop::phase::{BlockPhase, BlockRounds, PhaseWork};
use crate::fused::simt::block_loop::plan::BlockLoop;
use crate::fused::simt::row_reduce::RowReduce;
use crate::fused::source::KernelSource;
use crate::lanes::{Lanes, Scalar};
use crate::simt::Register;

impl<'m> KernelFunction<'m> for BlockLoop<'m> {
    fn emit(&self, emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        let pointers = emitter.simt_kernel(name, self.pointers, 0)?.pointers;
        let writer = LoopWriter { plan: self, emitter, pointers };
        let (mut tested, mut computed) = (Ok(()), Ok(()));
        let predicate = match self.rounds {
            BlockRounds::Counted(_) => None,
            BlockRounds::Tested { predicate, .. } => Some(writer.pointer(predicate)?),
        };
        emitter.repeat_while(
            [writer.number(0)],
            |[round]| {
                let in_time = round.ult(self.rounds.most() as i64);
                let Some(predicate) = predicate else { return in_time };
                tested = writer.condition();
                in_time & emitter.load_lanes(predicate, writer.number(0), Scalar::Int(8), 1, None).ne(0)
            },
            |[round]| {
                computed = writer.body();
                [round + 1]
            },
        );
        tested.and(computed)?;
        let launch = Launch { work_items: 1, block: Some(self.threads) };
        Kernel::end(emitter, name, launch, self.to_string())
    }

    fn label(&self) -> &str {
        &self.name
    }

    /// Returns none: the pointers of each loop are its own.
    fn identity(&self) -> Option<&dyn Identity> {
        None
    }
}

/// Emitter of the phases of a loop.
struct LoopWriter<'a, 'e, 'ctx, 'm> {
    plan: &'a BlockLoop<'m>,
    emitter: &'e Emitter<'ctx>,
    pointers: Vec<PointerValue<'ctx>>,
}

impl<'e, 'ctx> LoopWriter<'_, 'e, 'ctx, '_> {
    /// Computes the predicate. A barrier makes it visible to all threads.
    fn condition(&self) -> Result<()> {
        self.phases(&self.plan.condition)?;
        if self.plan.condition.is_empty() { Ok(()) } else { self.emitter.barrier() }
    }

    /// Computes the next state. A barrier makes it visible to all threads.
    fn body(&self) -> Result<()> {
        self.phases(&self.plan.body)?;
        self.emitter.barrier()
    }

    fn phases(&self, phases: &[BlockPhase<'_>]) -> Result<()> {
        phases.iter().try_for_each(|phase| {
            if phase.waits {
                self.emitter.barrier()?;
            }
            match &phase.work {
                PhaseWork::Compute { source, pointers } => self.compute(source, pointers),
                PhaseWork::Copy { from, to, bytes } => self.copy([*from, *to], *bytes),
            }
        })
    }

    fn compute(&self, source: &KernelSource<'_>, numbers: &[usize]) -> Result<()> {
        let graph = &source.module[source.computation];
        self.elements(source, numbers).context(|| format!("%{} in {}", graph[source.root].name(), graph.name()))
    }

    fn elements(&self, source: &KernelSource<'_>, numbers: &[usize]) -> Result<()> {
        let kernel = FusedKernel::new(source)?;
        if kernel.dims.contains(&0) {
            return Ok(());
        }
        let (emitter, threads) = (self.emitter, self.plan.threads);
        let pointers = numbers.iter().map(|&number| self.pointer(number)).collect::<Result<_>>()?;
        let frame = Frame { pointers, work_items: WorkItems::Block { threads } };
        let rows = kernel.row_shape_in_block(emitter.target(), threads);
        let plan = kernel.loop_plan(emitter.target(), rows.map_or(0, |shape| shape.rows))?;
        match rows {
            Some(shape) => _ = kernel.emit_rows(emitter, frame, &RowReduce { plan, shape })?,
            None => {
                let loops = kernel.thread_loops(plan, emitter.target());
                kernel.emit_thread_loops(emitter, frame, &loops)?;
            }
        }
        Ok(())
    }

    fn copy(&self, [from, to]: [usize; 2], bytes: usize) -> Result<()> {
        let (from, to, word) = (self.pointer(from)?, self.pointer(to)?, word_bytes(bytes));
        let thread = self.emitter.register(Register::Thread)?.zext(64);
        let end = self.number((bytes / word) as u64);
        self.emitter.each([thread, end], i64::from(self.plan.threads), |at| {
            let value = self.emitter.load_lanes(from, at, Scalar::Int(8 * word as u32), 1, None);
            self.emitter.store_lanes(value, to, at, None);
        });
        Ok(())
    }

    fn pointer(&self, number: usize) -> Result<PointerValue<'ctx>> {
        let pointer = self.pointers.get(number).copied();
        pointer.ok_or_else(|| Error::internal(format!("phase uses pointer {number}, which its loop does not have")))
    }

    fn number(&self, value: u64) -> Lanes<'e, 'ctx> {
        self.emitter.splat_constant(self.emitter.int_type(64).const_int(value, false).into(), 1)
    }
}
