//! Sorts as launches: runs, then merges that alternate between the results and scratch memory.

use xla_hlo::ops::Sort;
use xla_hlo::{ArrayShape, Module};
use xla_llvm::fused::{SortPhase, SortPlan};
use xla_service::thunks::LoweringContext;

use super::{KernelCode, Kernels};
use crate::lowering::{PlannedCommand, PlannedSequence};
use crate::program::commands::KernelArgument;

/// The plan of a sort; `None` where the comparator or the shapes are no kernel's.
pub(crate) fn plan<'m>(
    kernels: &mut Kernels<'m>,
    module: &'m Module,
    cx: &LoweringContext<'_>,
    sort: &Sort,
) -> Option<PlannedSequence> {
    let shapes: Vec<&ArrayShape> = cx.operands.iter().map(|operand| &operand.shape).collect();
    let sort = SortPlan::new(module, sort, &shapes)?;
    let count = shapes.len();
    let scratch: Vec<usize> = if sort.merges().next().is_none() { Vec::new() } else { sort.array_bytes().collect() };
    let arguments = |argument: fn(usize) -> KernelArgument, from: usize| {
        (from..from + count).map(argument).collect::<Vec<KernelArgument>>()
    };
    let arrays = [
        arguments(KernelArgument::Array, 0),
        arguments(KernelArgument::Array, count),
        arguments(KernelArgument::Scratch, 0),
    ];
    let commands = launches(kernels, module, (&sort, cx.instruction().name()), &arrays);
    Some(PlannedSequence { scratch, commands, ..PlannedSequence::default() })
}

/// The launches that sort some arrays into others with the help of a third lot, if there are merges. The arrays to sort
/// may be of the lot that the first launch does not write.
pub(super) fn launches<'m>(
    kernels: &mut Kernels<'m>,
    module: &'m Module,
    (sort, label): (&SortPlan, &str),
    [operands, results, scratch]: &[Vec<KernelArgument>; 3],
) -> Vec<PlannedCommand> {
    let merges: Vec<u64> = sort.merges().collect();
    // The last launch writes the results.
    let side = |launches_left: usize| if launches_left.is_multiple_of(2) { results } else { scratch };
    let mut launch = |phase, from: &[KernelArgument], to: &[KernelArgument], number: Option<u64>| {
        let kernel = kernels.number(KernelCode::Sort { module, plan: sort.clone(), phase, label: label.to_string() });
        let number = number.map(|number| KernelArgument::Number(number as i64));
        PlannedCommand::Launch { kernel, arguments: from.iter().chain(to).copied().chain(number).collect() }
    };
    let mut commands = vec![launch(SortPhase::Runs, operands, side(merges.len()), None)];
    for (done, &run) in merges.iter().enumerate() {
        let left = merges.len() - done;
        commands.push(launch(SortPhase::Merge, side(left), side(left - 1), Some(run)));
    }
    commands
}
