//! Trial emission: discarded code for one element, from whose reads the loops are chosen.

use inkwell::context::Context;
use xla_hlo::Result;

use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::loops::frame::{Frame, WorkItems};
use crate::fused::loops::plan::{LoopPlan, trial_symbols};
use crate::fused::value::SymbolValue;
use crate::simt::Register;

impl FusedKernel<'_, '_> {
    /// Chooses the loops of the kernel by emitting it once for one element into a temporary module, to survey its
    /// reads.
    ///
    /// Loops over the first `rows` dimensions, and over rows that are reduced or kept, are not merged with the others.
    pub(crate) fn loop_plan(&self, emitter: &Emitter<'_>, rows: usize) -> Result<LoopPlan> {
        let mut plan = LoopPlan::new(&self.dims);
        loop {
            let context = Context::create();
            let trial = Emitter::new(&context, "trial", emitter.target(), emitter.options());
            let frame = Frame::open(&trial, "trial", self.source.pointer_count())?;
            let mut fused = self.bind(&trial, frame.pointers)?;
            let symbols = trial_symbols(&plan, &mut fused.symbols);
            // Any number that is not a constant, so that no loop is recognized as empty.
            let value = SymbolValue::Uniform(match frame.work_items {
                WorkItems::Range { begin, .. } => begin,
                WorkItems::Thread
                | WorkItems::Group { .. }
                | WorkItems::Block { .. }
                | WorkItems::BlockGroups { .. } => trial.register(Register::Thread)?.zext(64),
            });
            fused.symbol_values = vec![value; symbols.len()];
            self.store_all(&mut fused, &plan.index(&symbols))?;
            let survey = std::mem::take(&mut fused.survey);
            match plan.split(&survey, &symbols) {
                Some(split) => plan = split,
                None => {
                    let borders = [fused.kept_rows(), rows, self.rows().unwrap_or_default()];
                    return Ok(plan.merged(&survey, &symbols, &borders));
                }
            }
        }
    }
}
