//! Index arithmetic of the analysis: each number that is computed at run time is a new symbol.

use xla_hlo::{Computation, InstrId, Result};

use crate::fused::core::addressing::{Addressing, Interval, KnownCoordinates};
use crate::fused::loops::accesses::Accesses;
use crate::fused::loops::accesses::guards::Guards;
use crate::fused::loops::affine::{AffineExpr, Index, SymbolId, Symbols};

impl<'m> Addressing<'m> for Accesses<'_, 'm> {
    /// The analysis needs to know only that there is a condition.
    type Condition = ();

    fn graph(&self) -> &'m Computation {
        self.graph
    }

    fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    fn known(&mut self) -> &mut KnownCoordinates {
        &mut self.known
    }

    fn width(&self, index: &[AffineExpr]) -> u32 {
        let symbols = index.iter().flat_map(AffineExpr::terms);
        symbols.map(|(id, _)| self.widths[id.0 as usize]).max().unwrap_or(1)
    }

    fn run_time_division(
        &mut self,
        expr: &AffineExpr,
        by: i64,
        extent: Option<u64>,
    ) -> Result<(AffineExpr, AffineExpr)> {
        self.number_of(expr);
        let from = std::slice::from_ref(expr);
        Ok((self.computed(extent, from), self.computed(Some(by as u64), from)))
    }

    fn require_in(&mut self, conditions: &mut Option<()>, expr: &AffineExpr, _: Interval) -> Result<()> {
        self.number_of(expr);
        *conditions = Some(());
        Ok(())
    }

    fn on_grid(&mut self, conditions: &mut Option<()>, expr: &AffineExpr, _: i64, size: usize) -> Result<AffineExpr> {
        self.number_of(expr);
        *conditions = Some(());
        Ok(self.computed(Some(size as u64), std::slice::from_ref(expr)))
    }

    fn loaded_coordinate(&mut self, id: InstrId, index: &Index, room: u64) -> Result<AffineExpr> {
        self.element(id, index)?;
        Ok(self.computed(Some(room + 1), index))
    }

    fn unguarded<R>(&mut self, f: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        self.under(Guards::default(), f)
    }

    fn suggest_split(&mut self, symbol: SymbolId, factor: u64) {
        self.survey.splits.push((symbol, factor));
    }
}
