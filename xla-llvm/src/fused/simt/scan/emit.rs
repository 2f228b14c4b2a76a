//! Kernels of a scan.

use xla_hlo::{Error, Result};

use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::{Kernel, Launch};
use crate::fused::kernel_plan::KernelPlan;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::frame::WorkItems;
use crate::fused::simt::scan::block::BlockScan;
use crate::fused::simt::scan::plan::{ScanPhase, ScanPlan};
use crate::fused::simt::scan::state::ScanState;
use crate::fused::source::KernelSource;

impl ScanPlan {
    /// Emits [`ScanPhase::Clear`], one thread per word.
    pub(super) fn emit_clear(
        &self,
        state: ScanState,
        source: &KernelSource<'_>,
        emitter: &Emitter<'_>,
        name: &str,
    ) -> Result<Kernel> {
        let frame = emitter.simt_kernel(name, 1, 0)?;
        let words = frame.pointers[0];
        let mut fused = FusedEmitter::new(emitter, source.module, source.computation)?;
        fused.for_work_items(WorkItems::Thread, state.words(), &mut |s, item| {
            let at = s.number_of(&AffineExpr::symbol(item))?;
            let at = s.lanes_of(at);
            s.emitter.store_lanes(at.int(0), words, at, None);
            Ok(())
        })?;
        Kernel::end(emitter, name, Launch::alone(state.words()), self.describe(ScanPhase::Clear))
    }

    /// Emits [`ScanPhase::Scan`].
    pub(super) fn emit_scan(&self, source: &KernelSource<'_>, emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        let words = source.inputs.len() + 1 + usize::from(self.tiles > 1);
        let frame = emitter.simt_kernel(name, words, 0)?;
        let outputs = frame.pointers[source.inputs.len()..].to_vec();
        let mut fused = FusedKernel::new(source)?.bind(emitter, frame.pointers)?;
        let group = WorkItems::Group { threads: self.threads as u32 };
        fused.for_work_items(group, self.blocks(), &mut |s, item| match (&outputs[..], self.state()) {
            (&[result], None) => BlockScan::new(s, self, source.root, AffineExpr::symbol(item))?.fiber(s, result),
            (&[result, words], Some(state)) => {
                let ticket = state.ticket(s, words)?;
                let (tile, fiber) = s.divide(&AffineExpr::symbol(ticket), self.fibers() as i64)?;
                BlockScan::new(s, self, source.root, fiber.clone())?.tile(s, result, (state, words), [fiber, tile])
            }
            _ => Err(Error::internal("scan kernel has unexpected pointers")),
        })?;
        let launch = Launch { work_items: self.blocks(), block: Some(self.threads as u32) };
        Kernel::end(emitter, name, launch, self.describe(ScanPhase::Scan))
    }
}
