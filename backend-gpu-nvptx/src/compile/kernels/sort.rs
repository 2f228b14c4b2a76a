//! Sorts as launches: runs, then merges that go back and forth between the results and scratch memory.

use xla_hlo::ops::Sort;
use xla_hlo::{ArrayShape, Module};
use xla_llvm::fused::{SortPhase, SortPlan};
use xla_service::thunks::LoweringContext;

use super::{KernelCode, Kernels};
use crate::compile::lowering::{Plan, PlannedStep};
use crate::device::Word;

/// The plan of a sort; `None` where the comparator or the shapes are no kernel's.
pub(crate) fn plan<'m>(
    kernels: &mut Kernels<'m>,
    module: &'m Module,
    cx: &LoweringContext<'_>,
    sort: &Sort,
) -> Option<Plan> {
    let shapes: Vec<&ArrayShape> = cx.operands.iter().map(|operand| &operand.shape).collect();
    let sort = SortPlan::new(module, sort, &shapes)?;
    let count = shapes.len();
    let merges: Vec<u64> = sort.merges().collect();
    let scratch = if merges.is_empty() { Vec::new() } else { sort.array_bytes().collect() };
    let label = cx.instruction().name();
    // The last launch writes the results.
    let side = |launches_left: usize| -> Vec<Word> {
        let results = launches_left.is_multiple_of(2);
        (0..count).map(|i| if results { Word::Array(count + i) } else { Word::Scratch(i) }).collect()
    };
    let mut launch = |phase, from: Vec<Word>, to: Vec<Word>, number: Option<u64>| {
        let kernel = kernels.number(KernelCode::Sort { module, plan: sort.clone(), phase, label: label.to_string() });
        let number = number.map(|number| Word::Number(number as i64));
        PlannedStep::Launch { kernel, arguments: from.into_iter().chain(to).chain(number).collect() }
    };
    let operands = (0..count).map(Word::Array).collect();
    let mut steps = vec![launch(SortPhase::Runs, operands, side(merges.len()), None)];
    for (done, &run) in merges.iter().enumerate() {
        let left = merges.len() - done;
        steps.push(launch(SortPhase::Merge, side(left), side(left - 1), Some(run)));
    }
    Some(Plan { scratch, steps, ..Plan::default() })
}
