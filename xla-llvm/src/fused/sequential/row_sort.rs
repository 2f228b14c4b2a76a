//! Strategy of sorts and top-k: one work item per row.

use xla_hlo::Result;
use xla_hlo::ops::Op;

use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::kernel::Launch;
use crate::fused::loops::frame::Frame;
use crate::fused::sequential::sort::RowSort;
use crate::fused::strategy::{Choice, Strategy};

impl Strategy for RowSort {
    fn names() -> &'static [&'static str] {
        &["merge-sort", "radix-sort", "heap-select"]
    }

    fn choose(choice: &Choice<'_, '_, '_, '_>) -> Result<Option<RowSort>> {
        match choice.root() {
            Op::Sort(_) | Op::TopK(_) => choice.kernel.row_sort().map(Some),
            _ => Ok(None),
        }
    }

    fn name(&self) -> &'static str {
        RowSort::name(self)
    }

    fn emit<'ctx>(
        &self,
        kernel: &FusedKernel<'_, '_>,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
    ) -> Result<Launch> {
        kernel.emit_row_sort(emitter, frame, self).map(Launch::alone)
    }
}
