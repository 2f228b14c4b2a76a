//! Sorts as launches that alternate between the results and scratch memory. A merge sort sorts runs and merges them. A
//! radix sort counts each digit of the keys and moves the elements.

use xla_hlo::ops::Sort;
use xla_hlo::{ArrayShape, Module};
use xla_llvm::fused::{RadixPhase, RadixSortPlan, SortPhase, SortPlan};
use xla_service::thunks::LoweringContext;

use super::{KernelCode, Kernels};
use crate::lowering::{PlannedCommand, PlannedSequence};
use crate::program::commands::KernelArgument;

/// Plans a sort; `None` if no kernel supports the comparator or the shapes.
pub(crate) fn plan<'m>(
    kernels: &mut Kernels<'m>,
    module: &'m Module,
    cx: &LoweringContext<'_>,
    sort: &Sort,
) -> Option<PlannedSequence> {
    let shapes: Vec<&ArrayShape> = cx.operands.iter().map(|operand| &operand.shape).collect();
    let merge = SortPlan::new(module, sort, &shapes)?;
    if let Some(radix) = RadixSortPlan::new(module, sort, &shapes, &merge) {
        return Some(by_digits(kernels, module, &radix, (shapes.len(), cx.instruction().name())));
    }
    let sort = merge;
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

/// Plans the launches that sort `operands` into `results`; merges use `scratch` as second buffer. `operands` may be the
/// buffer that the first launch does not write.
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

/// Plans the launches of a radix sort of `count` arrays.
fn by_digits<'m>(
    kernels: &mut Kernels<'m>,
    module: &'m Module,
    sort: &RadixSortPlan,
    (count, label): (usize, &str),
) -> PlannedSequence {
    let mut scratch: Vec<usize> = sort.array_bytes().collect();
    let [counts, totals] = [scratch.len(), scratch.len() + 1].map(KernelArgument::Scratch);
    scratch.extend(sort.count_bytes());
    let mut launch = |phase, arguments: Vec<KernelArgument>| {
        let label = label.to_string();
        let kernel = kernels.number(KernelCode::RadixSort { module, plan: sort.clone(), phase, label });
        PlannedCommand::Launch { kernel, arguments }
    };
    let digits: Vec<u32> = sort.digits().collect();
    // The last launch writes the results; those before it alternate.
    let place = |launches_left: usize, array: usize| match launches_left {
        left if left == digits.len() => KernelArgument::Array(array),
        left if left.is_multiple_of(2) => KernelArgument::Array(count + array),
        _ => KernelArgument::Scratch(array),
    };
    let mut commands = Vec::new();
    for (done, &begin) in digits.iter().enumerate() {
        let left = digits.len() - done;
        let begin = KernelArgument::Number(begin.into());
        commands.push(launch(RadixPhase::Count, vec![place(left, sort.keys()), counts, begin]));
        commands.push(launch(RadixPhase::Offsets, vec![counts, totals]));
        let from = (0..count).map(|array| place(left, array));
        let to = (0..count).map(|array| place(left - 1, array));
        commands.push(launch(RadixPhase::Move, from.chain(to).chain([counts, totals, begin]).collect()));
    }
    PlannedSequence { scratch, commands, ..PlannedSequence::default() }
}
