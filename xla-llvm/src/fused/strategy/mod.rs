//! Code generation strategies of kernels, chosen from operations, shapes and target.
//!
//! `list.rs` is the list of strategies; the first one that applies is used.

pub(crate) mod list;

use std::cell::OnceCell;
use std::fmt;

use xla_hlo::Result;
use xla_hlo::ops::Op;

use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::matmul::Matmul;
use crate::fused::kernel::Launch;
use crate::fused::loops::frame::Frame;
use crate::fused::loops::plan::LoopPlan;
use crate::fused::simt::row_shape::RowShape;
use crate::target::Target;

/// Method that computes a kernel's results. Its text is its parameters, for dumps: `[128, 1024] x 16 lanes`.
///
/// A new strategy is a file with an implementation, and a line in [`LIST`](list::LIST).
pub(crate) trait Strategy: fmt::Display {
    /// Returns the names as printed in dumps: one, or one for each variant.
    fn names() -> &'static [&'static str]
    where
        Self: Sized;

    /// Returns the strategy of a kernel; `None` if it does not apply.
    fn choose(choice: &Choice<'_, '_, '_, '_>) -> Result<Option<Self>>
    where
        Self: Sized;

    /// Returns the name of this strategy among all [names](Self::names).
    fn name(&self) -> &'static str
    where
        Self: Sized,
    {
        Self::names()[0]
    }

    /// Returns the number of tensor maps among the kernel's parameters.
    fn maps(&self) -> usize {
        0
    }

    /// Emits the body of the function.
    fn emit<'ctx>(
        &self,
        kernel: &FusedKernel<'_, '_>,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
    ) -> Result<Launch>;
}

/// Facts about a kernel on a target, each computed once for all strategies.
pub(crate) struct Choice<'a, 's, 'm, 'ctx> {
    pub kernel: &'a FusedKernel<'s, 'm>,
    pub emitter: &'a Emitter<'ctx>,
    loop_plan: OnceCell<LoopPlan>,
    matmul: OnceCell<Option<Matmul<'m>>>,
    rows: OnceCell<Option<RowShape>>,
}

impl<'a, 's, 'm, 'ctx> Choice<'a, 's, 'm, 'ctx> {
    /// Returns the facts of a kernel on the emitter's target.
    pub fn new(kernel: &'a FusedKernel<'s, 'm>, emitter: &'a Emitter<'ctx>) -> Self {
        let (loop_plan, matmul, rows) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Choice { kernel, emitter, loop_plan, matmul, rows }
    }

    /// Returns the target of the kernel.
    pub fn target(&self) -> &Target {
        self.emitter.target()
    }

    /// Returns the root operation.
    pub fn root(&self) -> &'m Op {
        self.kernel.graph()[self.kernel.source.root].op()
    }

    /// Returns the matmul, if the kernel has only one.
    pub fn only_matmul(&self) -> Option<&Matmul<'m>> {
        self.matmul.get_or_init(|| self.kernel.only_matmul()).as_ref()
    }

    /// Returns the rows that thread groups compute; none on CPUs.
    pub fn rows(&self) -> Option<RowShape> {
        let rows = || self.target().simt().and_then(|_| self.kernel.row_shape(self.target()));
        *self.rows.get_or_init(rows)
    }

    /// Returns the loops, which the accesses of the kernel determine.
    pub fn loop_plan(&self) -> Result<&LoopPlan> {
        if let Some(plan) = self.loop_plan.get() {
            return Ok(plan);
        }
        let plan = self.kernel.loop_plan(self.target(), self.rows().map_or(0, |shape| shape.rows))?;
        Ok(self.loop_plan.get_or_init(|| plan))
    }
}
