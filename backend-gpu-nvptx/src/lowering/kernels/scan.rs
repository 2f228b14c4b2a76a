//! Scans by thread blocks (decoupled look-back) as launches: one clears the state that blocks exchange, one computes
//! the running totals.

use xla_llvm::fused::{KernelSource, ScanPhase, ScanPlan};
use xla_llvm::target::Target;

use super::{KernelCode, Kernels};
use crate::lowering::{PlannedCommand, PlannedSequence};
use crate::program::commands::KernelArgument;

/// Plans the launches of a scan. `None` for other kernels, and if each thread should scan its own strands.
pub(crate) fn plan<'m>(
    kernels: &mut Kernels<'m>,
    source: &KernelSource<'m>,
    target: &Target,
) -> Option<PlannedSequence> {
    let scan = ScanPlan::new(source, target)?;
    let state = scan.state_bytes();
    let commands = scan.phases().iter().map(|&phase| {
        let arrays = match phase {
            ScanPhase::Clear => 0,
            ScanPhase::Scan => source.inputs.len() + 1,
        };
        let arguments = (0..arrays).map(KernelArgument::Array).chain(state.map(|_| KernelArgument::Scratch(0)));
        let kernel = kernels.number(KernelCode::Scan { source: source.clone(), plan: scan.clone(), phase });
        PlannedCommand::Launch { kernel, arguments: arguments.collect() }
    });
    let commands = commands.collect();
    Some(PlannedSequence { scratch: state.into_iter().collect(), commands, ..PlannedSequence::default() })
}
