//! Folds down columns: rows are read one after the other, and a strip of columns has its accumulators in scratch
//! memory.
//!
//! Accumulators of a strip stay in the first-level cache. Several rows are folded in at each visit, so that
//! accumulators are loaded and stored seldom, and as many streams of memory are read as the hardware follows.

use xla_hlo::ops::Reduce;
use xla_hlo::{ArrayShape, ElementType, InstrId, Result};

use super::fold::accumulator;
use super::index::{Coord, Index};
use super::nest::Range;
use super::{FusedEmitter, Source};
use crate::elemental::Value;

/// Columns of a strip.
pub(super) const STRIP: u64 = 512;
/// Rows folded in at each visit.
const ROWS: u64 = 4;

/// A strip of columns: an index of the operand that is 0 along the folded dimensions and the columns.
pub(super) struct Strip<'e, 'ctx> {
    pub index: Index,
    /// The dimension of the columns.
    pub lane: usize,
    /// The columns.
    pub range: Range<'e, 'ctx>,
    /// The first of them.
    pub first: Coord,
}

/// What is known while a strip is folded.
struct Fold<'a, 'e, 'ctx> {
    root: InstrId,
    op: &'a Reduce,
    strip: Strip<'e, 'ctx>,
    types: Vec<ElementType>,
    scratch: Vec<Source<'ctx>>,
    /// Folded dimensions and their sizes, outermost first.
    folded: Vec<(usize, u64)>,
}

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Stores the folds of a strip's columns, each in the order of its rows.
    pub(super) fn fold_columns(
        &mut self,
        root: InstrId,
        op: &Reduce,
        dims: &[usize],
        strip: Strip<'e, 'ctx>,
        results: &[Source<'ctx>],
    ) -> Result<()> {
        let types: Vec<ElementType> = results.iter().map(|r| r.shape.element_type()).collect();
        let scratch = types.iter().map(|&ty| self.strip_scratch(ty)).collect::<Result<_>>()?;
        let mut folded: Vec<(usize, u64)> = op.dimensions.iter().map(|&d| (d, dims[d] as u64)).collect();
        folded.sort_unstable();
        let fold = Fold { root, op, strip, types, scratch, folded };
        let starts = self.fold_starts(root, fold.strip.range.width)?;
        self.along_strip(&fold, &mut |s, _, place| s.store_accumulators(&fold, place, &starts))?;
        let mut index = fold.strip.index.clone();
        self.fold_rows(&fold, 0, &mut index)?;
        self.along_strip(&fold, &mut |s, column, place| {
            let mut at = fold.strip.index.clone();
            at[fold.strip.lane] = column;
            let at: Index = (0..dims.len()).filter(|d| !op.dimensions.contains(d)).map(|d| at[d].clone()).collect();
            let totals = s.load_accumulators(&fold, place)?;
            results.iter().zip(totals).try_for_each(|(result, total)| s.store(result, &at, total))
        })
    }

    /// Loops over the folded dimensions from number `from` on; the last one goes by several rows at once.
    fn fold_rows(&mut self, fold: &Fold<'_, 'e, 'ctx>, from: usize, index: &mut Index) -> Result<()> {
        let Some(&(d, extent)) = fold.folded.get(from) else { return self.fold_block(fold, index, None) };
        if from + 1 < fold.folded.len() {
            let range = self.full_range(extent, 1);
            self.for_each(range, Vec::new(), &mut |s, row, _| {
                index[d] = Coord::symbol(row);
                s.fold_rows(fold, from + 1, index).map(|()| Vec::new())
            })?;
            return Ok(());
        }
        for (range, rows, first) in
            [(self.full_range(extent / ROWS, 1), ROWS, 0), (self.full_range(extent % ROWS, 1), 1, extent / ROWS * ROWS)]
        {
            self.for_each(range, Vec::new(), &mut |s, block, _| {
                index[d] = Coord::symbol(block).scaled(rows as i64).shifted(first as i64);
                s.fold_block(fold, index, Some((d, rows))).map(|()| Vec::new())
            })?;
        }
        Ok(())
    }

    /// Folds rows at an index, so many from there on along a dimension, into the accumulators.
    fn fold_block(&mut self, fold: &Fold<'_, 'e, 'ctx>, index: &Index, rows: Option<(usize, u64)>) -> Result<()> {
        let (d, rows) = rows.unwrap_or((0, 1));
        let operands = self.graph()[fold.root].operands();
        let inputs = &operands[..operands.len() / 2];
        let width = fold.strip.range.width;
        self.along_strip(fold, &mut |s, column, place| {
            let mut totals = s.load_accumulators(fold, place)?;
            for row in 0..rows {
                let mut at = index.clone();
                at[d] = at[d].clone().shifted(row as i64);
                at[fold.strip.lane] = column.clone();
                for &input in inputs {
                    let x = s.element(input, &at)?.splat(width);
                    totals.push(x);
                }
                totals = s.call(fold.op.computation, &totals)?;
            }
            s.store_accumulators(fold, place, &totals)
        })
    }

    /// Runs `body` along the strip, given the column and its place in the strip.
    fn along_strip(
        &mut self,
        fold: &Fold<'_, 'e, 'ctx>,
        body: &mut dyn FnMut(&mut Self, Coord, &Index) -> Result<()>,
    ) -> Result<()> {
        let first = fold.strip.first.clone().scaled(-1);
        self.for_each(fold.strip.range, Vec::new(), &mut |s, column, _| {
            let column = Coord::symbol(column);
            let place = vec![column.clone().plus(&first)];
            body(s, column, &place).map(|()| Vec::new())
        })?;
        Ok(())
    }

    fn store_accumulators(
        &mut self,
        fold: &Fold<'_, 'e, 'ctx>,
        place: &Index,
        totals: &[Value<'e, 'ctx>],
    ) -> Result<()> {
        fold.scratch.iter().zip(totals).try_for_each(|(scratch, total)| {
            let wide = scratch.shape.element_type();
            let total = if wide == total.element_type() { *total } else { Value::new(wide, total.lanes()) };
            self.store(scratch, place, total)
        })
    }

    fn load_accumulators(&mut self, fold: &Fold<'_, 'e, 'ctx>, place: &Index) -> Result<Vec<Value<'e, 'ctx>>> {
        let both = fold.scratch.iter().zip(&fold.types);
        both.map(|(scratch, &ty)| {
            let total = self.load(fold.root, scratch, place)?;
            // As in registers, a narrow float is rounded when the fold is done.
            Ok(if total.element_type() == ty { total } else { Value::new(ty, total.lanes()) })
        })
        .collect()
    }

    /// Scratch memory for a strip's accumulators of that type.
    fn strip_scratch(&mut self, ty: ElementType) -> Result<Source<'ctx>> {
        let shape = ArrayShape::new(accumulator(ty), [STRIP as usize]);
        self.stack_memory(shape)
    }
}
