//! Kernels of a scan.

use xla_hlo::{Error, Result, ResultExt};

use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::kernel::{Kernel, Launch};
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::frame::WorkItems;
use crate::fused::simt::scan::block::BlockScan;
use crate::fused::simt::scan::plan::{ScanPhase, ScanPlan};
use crate::fused::simt::scan::state;
use crate::fused::source::KernelSource;

impl ScanPlan {
    /// Emits the function of a launch into the emitter's module, which must be for a target with threads.
    pub fn emit(
        &self,
        source: &KernelSource<'_>,
        phase: ScanPhase,
        emitter: &Emitter<'_>,
        name: &str,
    ) -> Result<Kernel> {
        let graph = &source.module[source.computation];
        let context = || format!("%{} in {}", graph[source.root].name(), graph.name());
        let kernel = match (phase, self.state()) {
            (ScanPhase::Scan, _) => self.emit_scan(source, emitter, name),
            (ScanPhase::Clear, Some(state)) => state::emit_clear(state, source, emitter, name),
            (ScanPhase::Clear, None) => Err(Error::internal("scan has no state to clear")),
        };
        kernel.context(context)
    }

    fn emit_scan(&self, source: &KernelSource<'_>, emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        let frame = emitter.simt_kernel(name, self.words(ScanPhase::Scan, source), 0)?;
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
        let work = self.dims.iter().product::<usize>() as f64 * 4.0;
        let launch = Launch { work_items: self.blocks(), block: Some(self.threads as u32) };
        let strategy = if self.tiles > 1 { "scan by tiles" } else { "scan by fibers" };
        Kernel::end(emitter, name, launch, (work, strategy.to_string()))
    }
}
