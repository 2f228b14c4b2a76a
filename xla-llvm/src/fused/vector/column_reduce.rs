//! Column reductions and vector-matrix products: rows are read sequentially, and the accumulators of a block of columns
//! are in scratch memory.
//!
//! The accumulators of a block stay in the L1 cache. Each visit reduces several rows, so that accumulators are rarely
//! loaded and stored, and the number of memory streams matches the hardware prefetchers.

use xla_hlo::ops::Reduce;
use xla_hlo::{ArrayShape, ElementType, Error, InstrId, Result, Scalar};

use crate::elemental::{self, Value};
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::core::address::{Number, strides_of};
use crate::fused::core::reduce::accumulator;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Index, position};
use crate::fused::loops::range::Range;
use crate::fused::tuning::vector::{ACCUMULATOR_BYTES, CACHE_LINE, LEAST_COLUMNS, ROWS, SHARED_ACCUMULATOR_BYTES};
use crate::fused::value::Source;
use crate::fused::vector::vector_matrix::VectorMatrix;

/// Block of columns: an index of the operand that is 0 along the reduced dimensions and the columns.
pub(crate) struct ColumnBlock<'e, 'ctx> {
    pub index: Index,
    /// Dimension of the columns.
    pub lane: usize,
    /// Range of the columns.
    pub range: Range<'e, 'ctx>,
    /// First column.
    pub first: AffineExpr,
    /// Maximum number of columns of a block.
    pub size: u64,
}

/// Source of the rows that are reduced.
enum Rows<'m> {
    /// Elements of arrays, combined by a computation.
    Arrays { op: &'m Reduce, inputs: &'m [InstrId] },
    /// Products of a vector's element and a matrix row.
    Products(VectorMatrix<'m>),
}

/// Function that stores totals at an index that is 0 along the reduced dimensions.
type StoreTotals<'a, 'e, 'ctx, 'm> =
    dyn FnMut(&mut FusedEmitter<'e, 'ctx, 'm>, &Index, &[Value<'e, 'ctx>]) -> Result<()> + 'a;

/// State of the reduction of a block.
struct ColumnReduction<'e, 'ctx, 'm> {
    root: InstrId,
    rows: Rows<'m>,
    block: ColumnBlock<'e, 'ctx>,
    types: Vec<ElementType>,
    scratch: Vec<Source<'ctx>>,
    /// Reduced dimensions and their sizes, outermost first.
    reduced: Vec<(usize, u64)>,
}

/// Returns the maximum number of columns of a block, given the types of the results.
pub(crate) fn block_of_columns(emitter: &Emitter<'_>, results: &[ElementType]) -> u64 {
    let bytes = if emitter.options().threads > 1 { SHARED_ACCUMULATOR_BYTES } else { ACCUMULATOR_BYTES };
    let taken: usize = results.iter().map(|&ty| accumulator(ty).byte_width()).sum();
    (bytes / taken.max(1) as u64).next_power_of_two().max(LEAST_COLUMNS as u64)
}

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Stores the reductions of a block's columns; each is in the order of its rows.
    pub(crate) fn reduce_columns(
        &mut self,
        (root, op): (InstrId, &'m Reduce),
        dims: &[usize],
        block: ColumnBlock<'e, 'ctx>,
        results: &[Source<'ctx>],
    ) -> Result<()> {
        let types = results.iter().map(|r| r.shape.element_type()).collect();
        let inputs = &self.graph()[root].operands()[..results.len()];
        let (rows, starts) = (Rows::Arrays { op, inputs }, self.reduction_starts(root, 1)?);
        let columns = self.column_reduction((root, rows), types, (dims, &op.dimensions), block)?;
        self.along_columns(&columns, &starts, &mut |s, at, totals| {
            let at: Index = (0..dims.len()).filter(|d| !op.dimensions.contains(d)).map(|d| at[d].clone()).collect();
            results.iter().zip(totals).try_for_each(|(result, &total)| s.store(result, &at, total))
        })
    }

    /// Stores the results that a kernel computes from the products of a vector and a block's columns.
    pub(crate) fn add_rows(&mut self, kernel: &FusedKernel<'_, 'm>, block: ColumnBlock<'e, 'ctx>) -> Result<()> {
        let product = kernel.vector_matrix();
        let product = product.ok_or_else(|| {
            Error::internal("kernel has no product of a vector and a matrix, which its strategy requires")
        })?;
        let (id, ty, reduced) = (product.id, product.sum_type, product.reduced());
        let dims = product.dims.clone();
        let zero = elemental::constant(self.emitter, ty, Scalar::zero(ty));
        let result = self.graph()[id].shape().expect_array()?.element_type();
        let rows = Rows::Products(product.clone());
        let columns = self.column_reduction((id, rows), vec![ty], (&dims, &reduced), block)?;
        self.along_columns(&columns, &[zero], &mut |s, at, totals| {
            let at = product.result_index(at);
            let value = elemental::convert(s.emitter, totals[0], result)?;
            s.values.insert((id, at.clone(), 0), vec![value]);
            kernel.store_all(s, &at)
        })
    }

    /// Creates the state of a reduction over `reduced` dimensions of an array with sizes `dims`.
    fn column_reduction(
        &mut self,
        (root, rows): (InstrId, Rows<'m>),
        types: Vec<ElementType>,
        (dims, reduced): (&[usize], &[usize]),
        block: ColumnBlock<'e, 'ctx>,
    ) -> Result<ColumnReduction<'e, 'ctx, 'm>> {
        let mut reduced: Vec<(usize, u64)> = reduced.iter().map(|&d| (d, dims[d] as u64)).collect();
        reduced.sort_unstable();
        let scratch = types.iter().map(|&ty| self.block_scratch(ty, block.size)).collect::<Result<_>>()?;
        Ok(ColumnReduction { root, rows, block, types, scratch, reduced })
    }

    /// Reduces a block's columns, and calls `store` for each vector of columns.
    fn along_columns(
        &mut self,
        columns: &ColumnReduction<'e, 'ctx, 'm>,
        starts: &[Value<'e, 'ctx>],
        store: &mut StoreTotals<'_, 'e, 'ctx, 'm>,
    ) -> Result<()> {
        self.along_block(columns, &mut |s, _, place| s.store_accumulators(columns, place, starts))?;
        let mut index = columns.block.index.clone();
        self.reduce_rows(columns, 0, &mut index)?;
        self.along_block(columns, &mut |s, column, place| {
            let mut at = columns.block.index.clone();
            at[columns.block.lane] = column;
            let totals = s.load_accumulators(columns, place)?;
            store(s, &at, &totals)
        })
    }

    /// Emits loops over the reduced dimensions from number `from` on; the last loop is unrolled by several rows.
    fn reduce_rows(&mut self, columns: &ColumnReduction<'e, 'ctx, 'm>, from: usize, index: &mut Index) -> Result<()> {
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

    /// Reduces rows into the accumulators, starting at an index along a dimension.
    fn reduce_block(
        &mut self,
        columns: &ColumnReduction<'e, 'ctx, 'm>,
        index: &Index,
        rows: Option<(usize, u64)>,
    ) -> Result<()> {
        let (d, count) = rows.unwrap_or((0, 1));
        let row = |number: u64| {
            let mut at = index.clone();
            at[d] = at[d].clone().shifted(number as i64);
            at
        };
        let factors: Vec<Value<'e, 'ctx>> = match &columns.rows {
            Rows::Arrays { .. } => Vec::new(),
            Rows::Products(product) => {
                (0..count).map(|number| product.factor(self, &row(number))).collect::<Result<_>>()?
            }
        };
        self.along_block(columns, &mut |s, column, place| {
            let width = s.width(place);
            let mut totals = s.load_accumulators(columns, place)?;
            for number in 0..count {
                let mut at = row(number);
                at[columns.block.lane] = column.clone();
                if count == ROWS && s.emitter.options().prefetch {
                    s.prefetch_rows(columns, (&at, d))?;
                }
                match &columns.rows {
                    Rows::Arrays { op, inputs } => {
                        for &input in *inputs {
                            let x = s.element(input, &at)?.splat(width);
                            totals.push(x);
                        }
                        totals = s.call(op.computation, &totals)?;
                    }
                    Rows::Products(product) => {
                        totals[0] = product.add(s, (totals[0], factors[number as usize]), &at)?;
                    }
                }
            }
            s.store_accumulators(columns, place, &totals)
        })
    }

    /// Prefetches the rows of the next visit: short rows end before the hardware prefetcher detects the stream.
    fn prefetch_rows(&mut self, columns: &ColumnReduction<'e, 'ctx, 'm>, (at, d): (&Index, usize)) -> Result<()> {
        let inputs = match &columns.rows {
            Rows::Arrays { inputs, .. } => inputs,
            Rows::Products(product) => &[product.matrix][..],
        };
        for input in inputs {
            let Some(array) = self.sources.get(input).cloned() else { continue };
            let mut next = at.clone();
            next[d] = next[d].clone().shifted(ROWS as i64);
            let ty = array.shape.element_type();
            let place = position(&next, &strides_of(&array.shape)).scaled(if ty.is_complex() { 2 } else { 1 });
            let (Number::Uniform(first) | Number::Strided { base: first, .. }) = self.number_of(&place)? else {
                continue;
            };
            let first = self.emitter.element_address(array.base, first, elemental::stored_scalar(ty));
            for line in (0..self.width(at) as usize * ty.byte_width()).step_by(CACHE_LINE) {
                self.emitter.prefetch(first, line as i64);
            }
        }
        Ok(())
    }

    /// Runs `body` for each vector of the block, given its column and its place in the block.
    fn along_block(
        &mut self,
        columns: &ColumnReduction<'e, 'ctx, 'm>,
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
        columns: &ColumnReduction<'e, 'ctx, 'm>,
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
        columns: &ColumnReduction<'e, 'ctx, 'm>,
        place: &Index,
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let both = columns.scratch.iter().zip(&columns.types);
        both.map(|(scratch, &ty)| {
            let total = self.load(columns.root, scratch, place)?;
            // As in registers, narrow floats are rounded only after the reduction.
            Ok(if total.element_type() == ty { total } else { Value::new(ty, total.lanes()) })
        })
        .collect()
    }

    /// Allocates scratch memory for the accumulators of `size` columns.
    fn block_scratch(&mut self, ty: ElementType, size: u64) -> Result<Source<'ctx>> {
        self.scratch_memory(ArrayShape::new(accumulator(ty), [size as usize]))
    }
}
