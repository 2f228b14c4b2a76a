//! Scans by thread blocks as launches: totals of chunks where scans are cut, then the running totals.

use xla_llvm::fused::{KernelSource, ScanPhase, ScanPlan};
use xla_llvm::target::Target;

use super::{KernelCode, Kernels};
use crate::lowering::{PlannedCommand, PlannedSequence};
use crate::program::commands::KernelArgument;

/// Launches of a kernel that is a scan; `None` for others, and where each thread had better scan strands of its own.
pub(crate) fn plan<'m>(
    kernels: &mut Kernels<'m>,
    source: &KernelSource<'m>,
    target: &Target,
) -> Option<PlannedSequence> {
    let scan = ScanPlan::new(source, target)?;
    let totals = scan.total_bytes();
    let inputs = source.inputs.len();
    let commands = scan.phases().iter().map(|&phase| {
        let target = match phase {
            ScanPhase::Totals => None,
            ScanPhase::Scan => Some(KernelArgument::Array(inputs)),
        };
        let arguments =
            (0..inputs).map(KernelArgument::Array).chain(target).chain(totals.map(|_| KernelArgument::Scratch(0)));
        let kernel = kernels.number(KernelCode::Scan { source: source.clone(), plan: scan.clone(), phase });
        PlannedCommand::Launch { kernel, arguments: arguments.collect() }
    });
    let commands = commands.collect();
    Some(PlannedSequence { scratch: totals.into_iter().collect(), commands, ..PlannedSequence::default() })
}
