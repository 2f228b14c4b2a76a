//! Scans by blocks of threads as launches: the totals of chunks where strands are cut, then the running totals.

use xla_llvm::fused::{KernelSource, ScanPhase, ScanPlan};

use super::{KernelCode, Kernels};
use crate::compile::lowering::{Plan, PlannedStep};
use crate::device::Word;

/// Launches of a kernel that is a scan; `None` for others, and where each thread had better scan strands of its own.
pub(crate) fn plan<'m>(kernels: &mut Kernels<'m>, source: &KernelSource<'m>) -> Option<Plan> {
    let scan = ScanPlan::new(source)?;
    let totals = scan.total_bytes();
    let inputs = source.inputs.len();
    let steps = scan.phases().iter().map(|&phase| {
        let target = match phase {
            ScanPhase::Totals => None,
            ScanPhase::Scan => Some(Word::Array(inputs)),
        };
        let words = (0..inputs).map(Word::Array).chain(target).chain(totals.map(|_| Word::Scratch(0)));
        let kernel = kernels.number(KernelCode::Scan { source: source.clone(), plan: scan.clone(), phase });
        PlannedStep::Launch { kernel, arguments: words.collect() }
    });
    let steps = steps.collect();
    Some(Plan { scratch: totals.into_iter().collect(), steps, ..Plan::default() })
}
