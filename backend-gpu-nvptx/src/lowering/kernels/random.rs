//! Kernel that stores the random counter, which the host advances when it sends the launch.
//!
//! So all programs of a device draw from one counter, in the order in which they are sent, even if the host evaluates
//! parts of them.

use xla_hlo::Result;
use xla_hlo::ops::RngGetAndUpdateState;
use xla_llvm::denormals::Denormals;
use xla_llvm::emitter::Emitter;
use xla_llvm::fused::Kernel;

use super::{KernelCode, Kernels};
use crate::lowering::{PlannedCommand, PlannedSequence};
use crate::program::commands::KernelArgument;

/// Number of arguments of the kernel: the address of the result, and the halves of the counter.
pub(super) const WORDS: usize = 3;

/// Plans the launch that stores the counter.
pub(crate) fn plan(kernels: &mut Kernels<'_>, op: &RngGetAndUpdateState) -> PlannedSequence {
    let arguments = vec![KernelArgument::Array(0), KernelArgument::Counter(0), KernelArgument::Counter(1)];
    let launch = PlannedCommand::Launch { kernel: kernels.number(KernelCode::Counter), arguments };
    PlannedSequence { rng_delta: Some(op.delta), commands: vec![launch], ..PlannedSequence::default() }
}

/// Emits the kernel: one thread stores both halves.
pub(super) fn emit(emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
    let kernel = emitter.simt_kernel(name, 1, WORDS - 1)?;
    for (place, &half) in (0..).zip(&kernel.numbers) {
        let half = emitter.lanes(half);
        emitter.store_lanes(half, kernel.pointers[0], half.int(place), None);
    }
    emitter.end_kernel()?;
    Ok(Kernel {
        name: name.to_string(),
        work_items: 1,
        block: Some(1),
        shared_bytes: 0,
        dynamic_shared_bytes: 0,
        maps: Vec::new(),
        scratch_bytes: 0,
        work: WORDS as f64,
        denormals: Denormals::Unaffected,
        strategy: "serial".to_string(),
    })
}
