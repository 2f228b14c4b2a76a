//! List of the kinds of kernels.

use super::KernelPlan;
use super::launch::LaunchPlan;
use crate::fused::simt;
use crate::fused::source::KernelSource;
use crate::target::Target;

/// Kinds of kernels, the more general ones after the others: the first one that returns a plan is used.
pub const KERNEL_KINDS: &[KernelKind] = &[
    KernelKind::of::<simt::attention::decode::plan::AttentionDecode>(),
    KernelKind::of::<simt::scan::plan::ScanPlan>(),
    KernelKind::of::<simt::matmul::split_k::SplitK>(),
    KernelKind::of::<simt::radix::plan::RadixSortPlan>(),
    KernelKind::of::<simt::sort::SortPlan>(),
    KernelKind::of::<simt::top_k::plan::TopKPlan>(),
    KernelKind::of::<simt::small_matrix::SmallMatrixPlan>(),
    KernelKind::of::<simt::scatter::plan::ThreadedScatter>(),
    KernelKind::of::<simt::scatter::in_order::OrderedScatter>(),
    KernelKind::of::<simt::random_counter::RandomCounter>(),
    KernelKind::of::<super::single::SingleKernel>(),
];

/// Entry of a list of kinds.
#[derive(Clone, Copy, Debug)]
pub struct KernelKind {
    name: &'static str,
    plan: for<'m> fn(&KernelSource<'m>, &Target) -> Option<LaunchPlan<'m>>,
}

impl KernelKind {
    /// Returns the entry of a kind.
    pub const fn of<P: KernelPlan>() -> KernelKind {
        KernelKind { name: P::NAME, plan: plan_of::<P> }
    }

    /// Returns the name of the kind, for messages.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the plan of a source's work; `None` for work of another kind.
    pub fn plan<'m>(&self, source: &KernelSource<'m>, target: &Target) -> Option<LaunchPlan<'m>> {
        (self.plan)(source, target)
    }

    /// Returns the plan of the first kind in a list that has one for a source's work; `None` if no kernel can compute
    /// it.
    pub fn first_plan<'m>(kinds: &[KernelKind], source: &KernelSource<'m>, target: &Target) -> Option<LaunchPlan<'m>> {
        kinds.iter().find_map(|kind| kind.plan(source, target))
    }
}

fn plan_of<'m, P: KernelPlan>(source: &KernelSource<'m>, target: &Target) -> Option<LaunchPlan<'m>> {
    P::new(source, target).map(|plan| LaunchPlan::new(&plan, source))
}
