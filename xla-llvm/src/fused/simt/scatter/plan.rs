//! Plan of a scatter by threads: method for colliding updates, launches, and memory.

use inkwell::values::PointerValue;
use xla_hlo::ops::{Op, Scatter};
use xla_hlo::{ArrayShape, ElementType, Module, Result};

use crate::emitter::Emitter;
use crate::fused::kernel::Kernel;
use crate::fused::kernel_plan::code::KernelCode;
use crate::fused::kernel_plan::command::{PlanArgument, PlanCommand};
use crate::fused::kernel_plan::{KernelPlan, own_code};
use crate::fused::simt::scatter::block_copies::BlockCopies;
use crate::fused::simt::scatter::means::{Means, means};
use crate::fused::simt::sort::{SortPhase, SortPlan};
use crate::fused::source::KernelSource;
use crate::fused::support::is_scalar_computation;
use crate::fused::tuning::scatter::FEW_UPDATES;
use crate::lanes::{Lanes, Scalar};
use crate::target::Target;

/// Scatter into one or several arrays of equal dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadedScatter {
    pub(crate) op: Scatter,
    pub(crate) inputs: Vec<ArrayShape>,
    pub(crate) indices: ArrayShape,
    pub(crate) updates: Vec<ArrayShape>,
    pub(crate) meeting: Meeting,
}

/// Method for colliding updates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// Updates do not collide.
    Apart,
    /// Updates are combined atomically, by each array's own method.
    Each(Vec<Means>),
    /// Updates are combined atomically in copies of the arrays, one or several per block, which are then merged into
    /// the arrays.
    InCopies(Vec<Means>, BlockCopies),
    /// Updates are sorted by destination, and one thread per destination applies its updates in order.
    InOrder,
}

/// Launch of a scatter. The words are addresses of the indices, the updates and the results, which initially hold the
/// inputs; then the address of scratch memory for claims or keys, if the scatter has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScatterPhase {
    /// Clears the claims of all destinations.
    Forget,
    /// Claims each destination for the last window that updates it.
    Claim,
    /// Combines the updates. If the last update wins, only those whose window has claimed the destination.
    Combine,
    /// Stores the key of each update: its destination, then its number in the order of updates.
    Keys,
    /// Combines the updates of each destination, in the order of the sorted keys.
    InOrder,
    /// Sorts the keys; the code is a [`SortPlan`]'s.
    Sort(SortPhase),
}

/// Type of a key.
pub(crate) const KEY: ElementType = ElementType::U64;
/// Addresses of a scatter's arrays.
#[derive(Clone, Copy)]
pub(crate) struct Arrays<'a, 'ctx> {
    pub updates: &'a [PointerValue<'ctx>],
    pub results: &'a [PointerValue<'ctx>],
}

/// Destination of an element of the updates.
pub(crate) struct Place<'e, 'ctx> {
    /// Index of the element in the updates.
    pub from: Lanes<'e, 'ctx>,
    /// Index of the destination in the array.
    pub into: Lanes<'e, 'ctx>,
    /// Whether the window is within the array.
    pub fits: Lanes<'e, 'ctx>,
    /// Claim to the destination: larger for later windows, and greater than 0.
    pub claim: Lanes<'e, 'ctx>,
}

impl KernelPlan for ThreadedScatter {
    type Phase = ScatterPhase;

    const NAME: &'static str = "threaded-scatter";
    const READS_SOURCE: bool = false;

    /// Returns the plan of a `scatter`. `None` if there are so few updates in order that one thread is faster, if the
    /// combiner does not compute scalars, and for arrays too large for keys.
    fn new(source: &KernelSource<'_>, target: &Target) -> Option<ThreadedScatter> {
        let Op::Scatter(op) = source.instruction().op() else { return None };
        let (module, operands) = (source.module, source.input_shapes()?);
        let count = operands.len() / 2;
        if !is_scalar_computation(module, op.computation) || !operands.iter().all(|shape| shape.is_static()) {
            return None;
        }
        let shapes = |range: std::ops::Range<usize>| operands[range].iter().copied().cloned().collect::<Vec<_>>();
        let (inputs, indices, updates) =
            (shapes(0..count), (*operands.get(count)?).clone(), shapes(count + 1..operands.len()));
        let (input, update) = (inputs.first()?, updates.first()?);
        let is_batch = |d: &usize| !op.update_window_dims.contains(d);
        let windows: usize = (0..update.rank()).filter(is_batch).map(|d| update.dims()[d]).product();
        let types: Vec<ElementType> = inputs.iter().map(|input| input.element_type()).collect();
        let meeting = if op.unique_indices || windows <= 1 || input.element_count() == 0 {
            Meeting::Apart
        } else if let Some(means) = means(&module[op.computation], &types) {
            Meeting::Each(means)
        } else {
            let has_keys = has_keys(input.element_count(), update.element_count());
            (has_keys && update.element_count() > FEW_UPDATES).then_some(Meeting::InOrder)?
        };
        let is_of_single = windows == update.element_count();
        let scatter = ThreadedScatter { op: op.clone(), inputs, indices, updates, meeting };
        Some(scatter.with_copies(module, is_of_single, target))
    }

    fn phases(&self) -> Vec<ScatterPhase> {
        match self.meeting {
            _ if self.has_claims() => vec![ScatterPhase::Forget, ScatterPhase::Claim, ScatterPhase::Combine],
            Meeting::Apart | Meeting::Each(_) | Meeting::InCopies(..) => vec![ScatterPhase::Combine],
            Meeting::InOrder => {
                let sort = self.sort().map_or_else(Vec::new, |sort| sort.phases());
                let own = [ScatterPhase::Keys, ScatterPhase::InOrder];
                own.into_iter().chain(sort.into_iter().map(ScatterPhase::Sort)).collect()
            }
        }
    }

    fn commands(&self, source: &KernelSource<'_>) -> Vec<PlanCommand<ScatterPhase>> {
        let mut commands = copies(source);
        let Some(sort) = self.sort() else {
            commands.extend(self.phases().into_iter().map(|phase| self.launch(phase, 0)));
            return commands;
        };
        // The sorted keys are in the first memory. With an even number of merges, the launch that sorts runs writes to
        // the first memory and reads from the second; with an odd number, it is the reverse.
        let unsorted = if sort.merges().count().is_multiple_of(2) { 1 } else { 0 };
        let [operand, result, scratch] = [unsorted, 0, 1].map(|memory| [PlanArgument::Scratch(memory)]);
        commands.push(self.launch(ScatterPhase::Keys, unsorted));
        let launches = sort.launches([&operand, &result, &scratch]);
        commands.extend(launches.into_iter().map(|command| command.map(ScatterPhase::Sort)));
        commands.push(self.launch(ScatterPhase::InOrder, 0));
        commands
    }

    /// Returns the size in bytes of memory for claims or keys, then of the second memory for keys.
    fn scratch_bytes(&self) -> Vec<usize> {
        let keys: Vec<usize> = self.sort().iter().flat_map(SortPlan::array_bytes).collect();
        self.own_bytes().into_iter().chain(keys).collect()
    }

    fn describe(&self, phase: ScatterPhase) -> String {
        match self.meeting {
            Meeting::InCopies(..) => "scatter in copies".to_string(),
            Meeting::Apart | Meeting::Each(_) | Meeting::InOrder => format!("threaded-scatter {phase:?}"),
        }
    }

    fn emit(
        &self,
        source: &KernelSource<'_>,
        phase: ScatterPhase,
        emitter: &Emitter<'_>,
        name: &str,
    ) -> Result<Kernel> {
        self.emit_phase(source.module, phase, emitter, name)
    }

    /// Returns the code of a phase; phases of the sort have the code of its plan.
    fn code<'m>(&self, source: &KernelSource<'m>, phase: ScatterPhase) -> KernelCode<'m> {
        match (phase, self.sort()) {
            (ScatterPhase::Sort(phase), Some(sort)) => sort.code(source, phase),
            _ => own_code(self, phase, source),
        }
    }
}

/// Returns the copies of a scatter's inputs to its results.
pub(super) fn copies<P>(source: &KernelSource<'_>) -> Vec<PlanCommand<P>> {
    let inputs = source.inputs.len() / 2;
    (0..inputs).map(|number| PlanCommand::Copy { operand: number, result: number }).collect()
}

impl ThreadedScatter {
    /// Switches to copies of the arrays in shared memory if they are faster.
    fn with_copies(mut self, module: &Module, is_of_single: bool, target: &Target) -> ThreadedScatter {
        if let Meeting::Each(means) = &self.meeting
            && self.has_identities(module, means)
        {
            let bytes = self.inputs.iter().map(|input| input.element_type().byte_width() as u64).sum();
            let size = (self.inputs[0].element_count() as u64, bytes);
            if let Some(copies) = BlockCopies::new(self.elements(), size, is_of_single, target) {
                self.meeting = Meeting::InCopies(means.clone(), copies);
            }
        }
        self
    }

    /// Returns the plan for the sort of the keys, if there are keys.
    fn sort(&self) -> Option<SortPlan> {
        SortPlan::ascending(KEY, self.elements()).filter(|_| self.meeting == Meeting::InOrder)
    }

    /// Returns the size in bytes of scratch memory for claims or keys, if it is needed.
    fn own_bytes(&self) -> Option<usize> {
        match self.meeting {
            Meeting::InOrder => Some(self.updates[0].element_count() * KEY.byte_width()),
            _ => self.has_claims().then(|| self.inputs[0].element_count() * self.claim().bits() as usize / 8),
        }
    }

    /// Returns the number of 64-bit words that the kernels take.
    pub(super) fn words(&self) -> usize {
        1 + self.updates.len() + self.inputs.len() + usize::from(self.own_bytes().is_some())
    }

    /// Returns the launch of a phase other than a sort, with a scratch memory if the scatter has one.
    fn launch(&self, phase: ScatterPhase, memory: usize) -> PlanCommand<ScatterPhase> {
        let inputs = self.inputs.len();
        let memory = self.own_bytes().map(|_| PlanArgument::Scratch(memory));
        PlanCommand::launch(phase, (inputs..3 * inputs + 1).map(PlanArgument::Array).chain(memory))
    }

    pub(crate) fn has_claims(&self) -> bool {
        matches!(&self.meeting, Meeting::Each(means) if means.contains(&Means::Last))
    }

    /// Returns the number of elements of the updates of one array.
    pub(crate) fn elements(&self) -> u64 {
        self.updates[0].element_count() as u64
    }

    /// Returns the type of a claim: the number of a window, from 1, or 0 for none.
    pub(crate) fn claim(&self) -> Scalar {
        if self.elements() < u64::from(u32::MAX) { Scalar::Int(32) } else { Scalar::Int(64) }
    }
}

/// Returns whether destinations and updates fit into the halves of a key.
fn has_keys(places: usize, updates: usize) -> bool {
    let most = u32::MAX as usize;
    places <= most && updates <= most
}
