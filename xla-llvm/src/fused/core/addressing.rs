//! Index arithmetic of elements: coordinates of the operands that an element reads, and conditions that they exist.
//!
//! [`Addressing`] is implemented twice: by emission, where quotients, conditions and loaded coordinates are LLVM
//! values, and by the analysis of a kernel's accesses, where they are symbols without values. The index arithmetic of
//! each operation is generic over both, so the loops are planned for the same accesses that are emitted.

use std::collections::HashMap;

use xla_hlo::{Computation, InstrId, Result};

use crate::fused::loops::affine::{AffineExpr, Division, Index, SymbolId, Symbols};

/// Coordinates that were computed at run time before.
#[derive(Default)]
pub(crate) struct KnownCoordinates {
    /// Quotients and remainders by dividend and divisor.
    quotients: HashMap<(AffineExpr, i64), (AffineExpr, AffineExpr)>,
    /// Starts of dynamic slices and updates.
    starts: HashMap<InstrId, Vec<AffineExpr>>,
}

/// Interval `0..=last` that a coordinate must be in, and the ends that need a comparison.
#[derive(Clone, Copy)]
pub(crate) struct Interval {
    pub last: i64,
    /// Whether the coordinate is known to be at least 0.
    pub above: bool,
    /// Whether the coordinate is known to be at most `last`.
    pub below: bool,
}

/// Index arithmetic over symbols, and the run-time computations that it needs.
pub(crate) trait Addressing<'m>: Sized {
    /// Condition that an element exists.
    type Condition: Copy;

    /// Returns the computation that contains the kernel's instructions.
    fn graph(&self) -> &'m Computation;

    /// Returns the symbols of the kernel.
    fn symbols(&self) -> &Symbols;

    /// Returns the coordinates that were computed at run time before.
    fn known(&mut self) -> &mut KnownCoordinates;

    /// Returns the number of lanes of a value at this index.
    fn width(&self, index: &[AffineExpr]) -> u32;

    /// Divides a coordinate at run time; returns the quotient, less than `extent`, and the remainder.
    fn run_time_division(
        &mut self,
        expr: &AffineExpr,
        by: i64,
        extent: Option<u64>,
    ) -> Result<(AffineExpr, AffineExpr)>;

    /// Adds the condition that a coordinate is in an interval.
    fn require_in(
        &mut self,
        conditions: &mut Option<Self::Condition>,
        expr: &AffineExpr,
        interval: Interval,
    ) -> Result<()>;

    /// Returns the quotient of a coordinate by `step`, less than `size`, and adds the condition that there is no
    /// remainder.
    fn on_grid(
        &mut self,
        conditions: &mut Option<Self::Condition>,
        expr: &AffineExpr,
        step: i64,
        size: usize,
    ) -> Result<AffineExpr>;

    /// Returns the integer element of `id` at an index as a coordinate, clamped to `0..=room` in its own signedness.
    fn loaded_coordinate(&mut self, id: InstrId, index: &Index, room: u64) -> Result<AffineExpr>;

    /// Runs `f` outside of all guards and branches.
    fn unguarded<R>(&mut self, f: impl FnOnce(&mut Self) -> Result<R>) -> Result<R>;

    /// Records that a division would be affine if a symbol were split in two: `high · factor + low`.
    fn suggest_split(&mut self, _symbol: SymbolId, _factor: u64) {}

    /// Returns quotient and remainder of a coordinate, with a run-time division where they are not affine.
    fn quotient(&mut self, expr: &AffineExpr, by: i64) -> Result<(AffineExpr, AffineExpr)> {
        match expr.divide(by, self.symbols()) {
            Division::Exact(quotient, rest) => return Ok((quotient, rest)),
            Division::IfSplit(symbol, factor) => self.suggest_split(symbol, factor),
            Division::Runtime => {}
        }
        let key = (expr.clone(), by);
        if let Some(known) = self.known().quotients.get(&key) {
            return Ok(known.clone());
        }
        let (multiple, rest) = expr.multiples(by);
        let result =
            if multiple != AffineExpr::default() && rest.bounds(self.symbols()).is_some_and(|(low, _)| low >= 0) {
                // The rest may be known further out, or may have been divided before.
                let (quotient, rest) = self.quotient(&rest, by)?;
                (multiple.plus(&quotient), rest)
            } else {
                let extent = expr.bounds(self.symbols()).map(|(_, high)| (high / by + 1) as u64);
                self.run_time_division(expr, by, extent)?
            };
        self.known().quotients.insert(key, result.clone());
        Ok(result)
    }

    /// Adds the condition `0 <= expr <= last`, unless it is known to hold.
    fn require_up_to(&mut self, conditions: &mut Option<Self::Condition>, expr: &AffineExpr, last: i64) -> Result<()> {
        let bounds = expr.bounds(self.symbols());
        let above = bounds.is_some_and(|(least, _)| least >= 0);
        let below = bounds.is_some_and(|(_, greatest)| greatest <= last);
        if above && below {
            return Ok(());
        }
        self.require_in(conditions, expr, Interval { last, above, below })
    }

    /// Returns the starts of a dynamic slice or update, clamped so that a slice of `sizes` fits into `operand`; the
    /// operands from `first` on are the starts.
    ///
    /// They are scalars that every element needs, so they are hoisted out of all loops and guards.
    fn starts(&mut self, id: InstrId, first: usize, operand: InstrId, sizes: &[usize]) -> Result<Vec<AffineExpr>> {
        if let Some(known) = self.known().starts.get(&id) {
            return Ok(known.clone());
        }
        let graph = self.graph();
        let starts = &graph[id].operands()[first..];
        let vector = starts.len() == 1 && graph[starts[0]].shape().expect_array()?.rank() == 1;
        let dims = graph[operand].shape().expect_array()?.dims();
        let exprs = self.unguarded(|s| {
            let start = |(d, (&dim, &size)): (usize, (&usize, &usize))| match dim.saturating_sub(size) as u64 {
                0 => Ok(AffineExpr::default()),
                room if vector => s.loaded_coordinate(starts[0], &vec![AffineExpr::constant(d as i64)], room),
                room => s.loaded_coordinate(starts[d], &Vec::new(), room),
            };
            dims.iter().zip(sizes).enumerate().map(start).collect::<Result<Vec<_>>>()
        })?;
        self.known().starts.insert(id, exprs.clone());
        Ok(exprs)
    }
}
