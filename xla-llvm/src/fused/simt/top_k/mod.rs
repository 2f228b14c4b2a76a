//! Top-k: the best elements of rows, in order.
//!
//! ```text
//! plan.rs       the launches
//! pick.rs       very small k: a thread group picks the elements one at a time
//! select.rs     larger k: a block finds the k-th element by radix selection, then sorts the best ones
//! sorted.rs     items in shared memory, and their sort
//! ```

mod pick;
pub(crate) mod plan;
mod select;
mod sorted;

use xla_hlo::{CompId, Module, Result};

use crate::emitter::Emitter;
use crate::fused::kernel::{Kernel, Launch};
use plan::{TopKPhase, TopKPlan};
use select::Selection;

impl TopKPlan {
    /// Emits the function of a launch. `computation` is any computation of the module.
    pub fn emit(
        &self,
        module: &Module,
        computation: CompId,
        phase: TopKPhase,
        emitter: &Emitter<'_>,
        name: &str,
    ) -> Result<Kernel> {
        let kernel = emitter.simt_kernel(name, phase.words(), 0)?;
        let launch = match (phase, &kernel.pointers[..]) {
            _ if self.rows == 0 => Launch { work_items: 0, block: None },
            (TopKPhase::Rows, pointers) if self.picks() => pick::emit(self, (module, computation), emitter, pointers)?,
            _ => Selection::new(self, phase, &kernel.pointers)?.emit((module, computation), emitter)?,
        };
        let work = (self.rows * self.length) as f64 * 8.0;
        Kernel::end(emitter, name, launch, (work, "top-k".to_string()))
    }
}
