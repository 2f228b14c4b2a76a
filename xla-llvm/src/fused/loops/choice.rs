//! Choice of a kernel's loops, from the analysis of its accesses.

use xla_hlo::Result;

use crate::fused::analysis::FusedKernel;
use crate::fused::core::addressing::Addressing;
use crate::fused::loops::accesses::Accesses;
use crate::fused::loops::affine::{Index, Symbol, SymbolId};
use crate::fused::loops::plan::LoopPlan;
use crate::target::Target;

impl<'m> FusedKernel<'_, 'm> {
    /// Chooses the loops of the kernel, so that neighbouring iterations access neighbouring elements.
    ///
    /// Loops over the first `rows` dimensions, and over rows that are reduced or kept, are not merged with the others.
    pub(crate) fn loop_plan(&self, target: &Target, rows: usize) -> Result<LoopPlan> {
        let mut plan = LoopPlan::new(&self.dims);
        loop {
            let mut accesses = self.accesses(target);
            let variable = |&extent: &u64| accesses.define(Symbol { extent: Some(extent), level: 0 }, 1);
            let symbols: Vec<SymbolId> = plan.extents().iter().map(variable).collect();
            self.visit_results(&mut accesses, &plan.index(&symbols))?;
            match plan.split(&accesses.survey, &symbols) {
                Some(split) => plan = split,
                None => {
                    let kept_rows = accesses.rows.as_ref().map_or(0, |cache| cache.rows);
                    let borders = [kept_rows, rows, self.rows().unwrap_or_default()];
                    return Ok(plan.merged(&accesses.survey, &symbols, &borders));
                }
            }
        }
    }

    /// Returns the analysis of the kernel's accesses on a target, before anything is visited.
    pub(crate) fn accesses<'t>(&'t self, target: &'t Target) -> Accesses<'t, 'm> {
        let results: Vec<_> = self.outputs.iter().map(|o| o.root).collect();
        Accesses::new(self.source, target, &self.dims, &results)
    }

    /// Visits the accesses of one iteration, in the order of [`FusedKernel::store_all`].
    fn visit_results(&self, accesses: &mut Accesses<'_, 'm>, index: &Index) -> Result<()> {
        if self.source.in_place {
            let root = self.source.root;
            let (operand, update) = (self.graph()[root].operand(0), self.graph()[root].operand(1));
            let starts = accesses.starts(root, 2, operand, &self.dims)?;
            accesses.element(update, index)?;
            let at: Index = index.iter().zip(&starts).map(|(c, s)| c.clone().plus(s)).collect();
            accesses.stored(&self.outputs[0].shape, &at);
            return Ok(());
        }
        accesses.begin_row(index)?;
        for output in &self.outputs {
            accesses.element(output.root, &index[..output.shape.rank()].to_vec())?;
        }
        for number in 0..self.outputs.len() {
            let shape = self.stored_shape(number);
            accesses.stored(shape, &index[..shape.rank()]);
        }
        Ok(())
    }
}
