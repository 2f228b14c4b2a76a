//! Plan of a scatter by threads: treatment of colliding updates, launches and memory.

use inkwell::values::PointerValue;
use xla_hlo::ops::Scatter;
use xla_hlo::{ArrayShape, ElementType, Module};

use crate::fused::simt::scatter::block_copies::BlockCopies;
use crate::fused::simt::scatter::means::{Means, means};
use crate::fused::simt::sort::SortPlan;
use crate::fused::support::is_scalar_computation;
use crate::fused::tuning::scatter::FEW_UPDATES;
use crate::lanes::{Lanes, Scalar};
use crate::target::Target;

/// A scatter into one array or several of the same dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadedScatter {
    pub(crate) op: Scatter,
    pub(crate) inputs: Vec<ArrayShape>,
    pub(crate) indices: ArrayShape,
    pub(crate) updates: Vec<ArrayShape>,
    pub(crate) meeting: Meeting,
}

/// Treatment of updates that meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// They do not meet.
    Apart,
    /// They are combined in each array by its own means.
    Each(Vec<Means>),
    /// So they are in copies of the arrays, one of each block or several, and then what is there.
    InCopies(Vec<Means>, BlockCopies),
    /// They are sorted by their places, and a thread for each place goes through them.
    InOrder,
}

/// Phase of a launch. The words of each: addresses of the indices, the updates and the results, which hold the inputs;
/// then, where [`ThreadedScatter::scratch_bytes`] says so, that of scratch memory, for claims or for keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScatterPhase {
    /// Forgets older claims on the places that are updated.
    Forget,
    /// Claims them, each for the last window that updates it.
    Claim,
    /// Combines the updates, those that have claimed their places where there are claims and the last one wins.
    Combine,
    /// Makes a key of each update: its place, then its number in the order of updates.
    Keys,
    /// Combines the updates of each place, in the order of sorted keys.
    InOrder,
}

/// The type of a key.
pub(crate) const KEY: ElementType = ElementType::U64;
/// Addresses of a scatter's arrays.
#[derive(Clone, Copy)]
pub(crate) struct Arrays<'a, 'ctx> {
    pub updates: &'a [PointerValue<'ctx>],
    pub results: &'a [PointerValue<'ctx>],
}

/// Destination of an element of the updates.
pub(crate) struct Place<'e, 'ctx> {
    /// Its number among the updates.
    pub from: Lanes<'e, 'ctx>,
    /// That of the element of the array.
    pub into: Lanes<'e, 'ctx>,
    /// Whether its window is inside of the array.
    pub fits: Lanes<'e, 'ctx>,
    /// Claim to its place: larger for later windows, and more than 0.
    pub claim: Lanes<'e, 'ctx>,
}

impl ThreadedScatter {
    /// The scatter of operands with these shapes. `None` where one thread had better go through few updates in order,
    /// where the combiner is not one of scalars, and for arrays that are larger than keys can tell.
    pub fn new(module: &Module, op: &Scatter, operands: &[&ArrayShape], target: &Target) -> Option<ThreadedScatter> {
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

    /// The same in copies of the arrays, where that takes less time.
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

    /// The launches; those that sort keys come between.
    pub fn phases(&self) -> &'static [ScatterPhase] {
        match self.meeting {
            _ if self.has_claims() => &[ScatterPhase::Forget, ScatterPhase::Claim, ScatterPhase::Combine],
            Meeting::Apart | Meeting::Each(_) | Meeting::InCopies(..) => &[ScatterPhase::Combine],
            Meeting::InOrder => &[ScatterPhase::Keys, ScatterPhase::InOrder],
        }
    }

    /// Sort of the keys, where there are some.
    pub fn sort(&self) -> Option<SortPlan> {
        SortPlan::ascending(KEY, self.elements()).filter(|_| self.meeting == Meeting::InOrder)
    }

    /// Bytes of scratch memory, where some is needed.
    pub fn scratch_bytes(&self) -> Option<usize> {
        match self.meeting {
            Meeting::InOrder => Some(self.updates[0].element_count() * KEY.byte_width()),
            _ => self.has_claims().then(|| self.inputs[0].element_count() * self.claim().bits() as usize / 8),
        }
    }

    /// Number of 64-bit words that the kernels take.
    pub fn words(&self) -> usize {
        1 + self.updates.len() + self.inputs.len() + usize::from(self.scratch_bytes().is_some())
    }

    pub(crate) fn has_claims(&self) -> bool {
        matches!(&self.meeting, Meeting::Each(means) if means.contains(&Means::Last))
    }

    /// Elements of the updates of one array.
    pub(crate) fn elements(&self) -> u64 {
        self.updates[0].element_count() as u64
    }

    /// The type of a claim: a number of windows, and 0 for none.
    pub(crate) fn claim(&self) -> Scalar {
        if self.elements() < u64::from(u32::MAX) { Scalar::Int(32) } else { Scalar::Int(64) }
    }
}

/// Whether places and updates have few enough numbers for keys.
fn has_keys(places: usize, updates: usize) -> bool {
    let most = u32::MAX as usize;
    places <= most && updates <= most
}
