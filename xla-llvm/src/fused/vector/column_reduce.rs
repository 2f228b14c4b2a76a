//! Reductions down columns: rows are read one after the other, and a block of columns has its accumulators in scratch
//! memory.
//!
//! Accumulators of a block stay in the first-level cache. Several rows are reduced in at each visit, so that
//! accumulators are loaded and stored seldom, and as many streams of memory are read as the hardware follows.

use xla_hlo::ops::Reduce;
use xla_hlo::{ArrayShape, ElementType, InstrId, Result};

use crate::elemental::Value;
use crate::fused::core::reduce::accumulator;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Index};
use crate::fused::loops::range::Range;
use crate::fused::tuning::vector::{COLUMN_BLOCK, ROWS};
use crate::fused::value::Source;

/// A block of columns: an index of the operand that is 0 along the reduced dimensions and the columns.
pub(crate) struct ColumnBlock<'e, 'ctx> {
    pub index: Index,
    /// The dimension of the columns.
    pub lane: usize,
    /// The columns.
    pub range: Range<'e, 'ctx>,
    /// The first of them.
    pub first: AffineExpr,
}

/// State of a block's reduction.
struct ColumnReduction<'a, 'e, 'ctx> {
    root: InstrId,
    op: &'a Reduce,
    block: ColumnBlock<'e, 'ctx>,
    types: Vec<ElementType>,
    scratch: Vec<Source<'ctx>>,
    /// Reduced dimensions and their sizes, outermost first.
    reduced: Vec<(usize, u64)>,
}

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Stores the reductions of a block's columns, each in the order of its rows.
    pub(crate) fn reduce_columns(
        &mut self,
        root: InstrId,
        op: &Reduce,
        dims: &[usize],
        block: ColumnBlock<'e, 'ctx>,
        results: &[Source<'ctx>],
    ) -> Result<()> {
        let types: Vec<ElementType> = results.iter().map(|r| r.shape.element_type()).collect();
        let scratch = types.iter().map(|&ty| self.block_scratch(ty)).collect::<Result<_>>()?;
        let mut reduced: Vec<(usize, u64)> = op.dimensions.iter().map(|&d| (d, dims[d] as u64)).collect();
        reduced.sort_unstable();
        let columns = ColumnReduction { root, op, block, types, scratch, reduced };
        let starts = self.reduction_starts(root, 1)?;
        self.along_block(&columns, &mut |s, _, place| s.store_accumulators(&columns, place, &starts))?;
        let mut index = columns.block.index.clone();
        self.reduce_rows(&columns, 0, &mut index)?;
        self.along_block(&columns, &mut |s, column, place| {
            let mut at = columns.block.index.clone();
            at[columns.block.lane] = column;
            let at: Index = (0..dims.len()).filter(|d| !op.dimensions.contains(d)).map(|d| at[d].clone()).collect();
            let totals = s.load_accumulators(&columns, place)?;
            results.iter().zip(totals).try_for_each(|(result, total)| s.store(result, &at, total))
        })
    }

    /// Loops over the reduced dimensions from number `from` on; the last one goes by several rows at once.
    fn reduce_rows(&mut self, columns: &ColumnReduction<'_, 'e, 'ctx>, from: usize, index: &mut Index) -> Result<()> {
        let Some(&(d, extent)) = columns.reduced.get(from) else { return self.reduce_block(columns, index, None) };
        if from + 1 < columns.reduced.len() {
            let range = self.full_range(extent, 1);
            self.for_each(range, Vec::new(), &mut |s, row, _| {
                index[d] = AffineExpr::symbol(row);
                s.reduce_rows(columns, from + 1, index).map(|()| Vec::new())
            })?;
            return Ok(());
        }
        for (range, rows, first) in
            [(self.full_range(extent / ROWS, 1), ROWS, 0), (self.full_range(extent % ROWS, 1), 1, extent / ROWS * ROWS)]
        {
            self.for_each(range, Vec::new(), &mut |s, block, _| {
                index[d] = AffineExpr::symbol(block).scaled(rows as i64).shifted(first as i64);
                s.reduce_block(columns, index, Some((d, rows))).map(|()| Vec::new())
            })?;
        }
        Ok(())
    }

    /// Reduces rows from an index on along a dimension into the accumulators.
    fn reduce_block(
        &mut self,
        columns: &ColumnReduction<'_, 'e, 'ctx>,
        index: &Index,
        rows: Option<(usize, u64)>,
    ) -> Result<()> {
        let (d, rows) = rows.unwrap_or((0, 1));
        let operands = self.graph()[columns.root].operands();
        let inputs = &operands[..operands.len() / 2];
        self.along_block(columns, &mut |s, column, place| {
            let width = s.width(place);
            let mut totals = s.load_accumulators(columns, place)?;
            for row in 0..rows {
                let mut at = index.clone();
                at[d] = at[d].clone().shifted(row as i64);
                at[columns.block.lane] = column.clone();
                for &input in inputs {
                    let x = s.element(input, &at)?.splat(width);
                    totals.push(x);
                }
                totals = s.call(columns.op.computation, &totals)?;
            }
            s.store_accumulators(columns, place, &totals)
        })
    }

    /// Runs `body` along the block, given the column and its place in the block.
    fn along_block(
        &mut self,
        columns: &ColumnReduction<'_, 'e, 'ctx>,
        body: &mut dyn FnMut(&mut Self, AffineExpr, &Index) -> Result<()>,
    ) -> Result<()> {
        let first = columns.block.first.clone().scaled(-1);
        self.for_each(columns.block.range, Vec::new(), &mut |s, column, _| {
            let column = AffineExpr::symbol(column);
            let place = vec![column.clone().plus(&first)];
            body(s, column, &place).map(|()| Vec::new())
        })?;
        Ok(())
    }

    fn store_accumulators(
        &mut self,
        columns: &ColumnReduction<'_, 'e, 'ctx>,
        place: &Index,
        totals: &[Value<'e, 'ctx>],
    ) -> Result<()> {
        columns.scratch.iter().zip(totals).try_for_each(|(scratch, total)| {
            let wide = scratch.shape.element_type();
            let total = if wide == total.element_type() { *total } else { Value::new(wide, total.lanes()) };
            self.store(scratch, place, total)
        })
    }

    fn load_accumulators(
        &mut self,
        columns: &ColumnReduction<'_, 'e, 'ctx>,
        place: &Index,
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let both = columns.scratch.iter().zip(&columns.types);
        both.map(|(scratch, &ty)| {
            let total = self.load(columns.root, scratch, place)?;
            // As in registers, a narrow float is rounded when the reduction is done.
            Ok(if total.element_type() == ty { total } else { Value::new(ty, total.lanes()) })
        })
        .collect()
    }

    /// Scratch memory for a block's accumulators of that type.
    fn block_scratch(&mut self, ty: ElementType) -> Result<Source<'ctx>> {
        let shape = ArrayShape::new(accumulator(ty), [COLUMN_BLOCK as usize]);
        self.scratch_memory(shape)
    }
}
