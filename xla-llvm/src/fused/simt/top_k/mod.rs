//! The best elements of rows, in order.
//!
//! ```text
//! plan.rs       the launches
//! pick.rs       very few: a group of threads takes one after the other
//! select.rs     more: a block finds the last of them by digits, then sorts those up to it
//! sorted.rs     items in shared memory, and sorting them
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
    /// Writes the function of a launch. `computation` is any of the module.
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
