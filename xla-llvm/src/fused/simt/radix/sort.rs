//! Kernels of a radix sort.

use xla_hlo::{Error, Module, Result};

use super::DIGITS;
use super::count;
use super::plan::{RadixPhase, RadixSortPlan};
use super::rank::Mover;
use crate::emitter::Emitter;
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::{Kernel, Launch};
use crate::fused::kernel_plan::KernelPlan;
use crate::fused::tuning::radix_sort::THREADS;

impl RadixSortPlan {
    /// Emits the function of a launch.
    pub(super) fn emit_phase(
        &self,
        module: &Module,
        phase: RadixPhase,
        emitter: &Emitter<'_>,
        name: &str,
    ) -> Result<Kernel> {
        let frame = emitter.simt_kernel(name, self.addresses(phase), phase.numbers())?;
        let mut s = FusedEmitter::new(emitter, module, self.comparator)?;
        let tiles = self.rows * self.tiles();
        let work_items = match (phase, &frame.pointers[..], &frame.numbers[..]) {
            (RadixPhase::Count, &[keys, counts], &[begin]) => {
                count::tile(self, &mut s, [keys, counts], emitter.lanes(begin))?;
                tiles
            }
            (RadixPhase::Offsets, &[counts, totals], []) => {
                count::offsets(self, &mut s, [counts, totals])?;
                self.rows * DIGITS
            }
            (RadixPhase::Move, [arrays @ .., counts, totals], &[begin]) => {
                let (from, to) = arrays.split_at(self.types.len());
                Mover::new(self, &mut s, [*counts, *totals], emitter.lanes(begin))?.run(&mut s, [from, to])?;
                tiles
            }
            _ => {
                return Err(Error::internal(format!(
                    "kernel {name} of radix sort {phase:?} has unexpected parameters"
                )));
            }
        };
        let launch = Launch { work_items, block: Some(THREADS as u32) };
        Kernel::end(emitter, name, launch, self.describe(phase))
    }
}
