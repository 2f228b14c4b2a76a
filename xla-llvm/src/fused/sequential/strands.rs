//! Kernels that work their way along some dimensions and are independent along the others.
//!
//! A strand is what lies at one place of the independent dimensions. Where the innermost dimension is one of those,
//! neighbouring strands are lanes; a unit of the kernel is one vector of strands.

use xla_hlo::ops::{Op, Reduce, ReduceWindow, SelectAndScatter, simple_combiner};
use xla_hlo::{Error, InstrId, Result};

use crate::emitter::Emitter;
use crate::fused::emitter::{FusedEmitter, Source};
use crate::fused::kernel::{REDUCE_REGISTERS, Writer, counters, fitting};
use crate::fused::loops::affine::{AffineExpr, Index};
use crate::fused::loops::frame::Frame;
use crate::fused::loops::nest::Range;
use crate::fused::vector::column_reduce::{STRIP, Strip};
use crate::target::Target;

/// Rows from which on columns are reduced in strips; fewer have their accumulators in registers.
const LEAST_ROWS: usize = 32;
/// As for [`LEAST_ROWS`]; of columns.
const LEAST_COLUMNS: usize = 64;

/// A kernel of strands.
pub(crate) struct Strands<'m> {
    work: Work<'m>,
    /// Sizes of the array that the strands divide.
    dims: Vec<usize>,
    /// Whether a dimension is independent.
    independent: Vec<bool>,
}

enum Work<'m> {
    Columns(&'m Reduce),
    Scan(&'m ReduceWindow),
    SelectAndScatter(&'m SelectAndScatter),
}

impl Work<'_> {
    /// Vector registers of strands side by side, fewer where each has more to carry along.
    fn registers(&self) -> u32 {
        match self {
            Work::Columns(_) => 2,
            Work::Scan(_) => REDUCE_REGISTERS,
            Work::SelectAndScatter(_) => 1,
        }
    }
}

impl<'m> Writer<'_, 'm> {
    /// How the kernel is made of strands on that target, if it is.
    pub(crate) fn strands(&self, target: &Target) -> Result<Option<Strands<'m>>> {
        let graph = self.graph();
        let root = &graph[self.source.root];
        let dims_of = |id: InstrId| Ok::<_, Error>(graph[id].shape().expect_array()?.dims().to_vec());
        Ok(match root.op() {
            Op::Reduce(op) => {
                let dims = dims_of(root.operand(0))?;
                let rows: usize = op.dimensions.iter().map(|&d| dims[d]).product();
                let columns = (0..dims.len()).rfind(|&d| dims[d] > 1).filter(|d| !op.dimensions.contains(d));
                // The accumulators of a strip are in scratch memory, which a thread of many has not.
                let pays =
                    target.simt().is_none() && rows >= LEAST_ROWS && columns.is_some_and(|d| dims[d] >= LEAST_COLUMNS);
                let independent = (0..dims.len()).map(|d| !op.dimensions.contains(&d)).collect();
                pays.then_some(Strands { work: Work::Columns(op), dims, independent })
            }
            Op::ReduceWindow(op) => {
                let dims = dims_of(root.operand(0))?;
                let scan = op.window.cumulative(&dims);
                let any_order = simple_combiner(&self.source.module[op.computation]).is_some();
                scan.filter(|scan| scan.in_order || any_order).map(|scan| Strands {
                    work: Work::Scan(op),
                    independent: (0..dims.len()).map(|d| d != scan.dimension).collect(),
                    dims,
                })
            }
            Op::SelectAndScatter(op) => {
                let dims = dims_of(root.operand(0))?;
                let independent = op.window.dims_for(dims.len())?.iter().map(|w| w.is_unit()).collect();
                Some(Strands { work: Work::SelectAndScatter(op), dims, independent })
            }
            _ => None,
        })
    }

    /// Writes the function's body; gives the number of units.
    pub(crate) fn emit_strands<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        strands: &Strands<'m>,
    ) -> Result<u64> {
        let extent = |d: usize| strands.dims[d] as u64;
        let rank = strands.dims.len();
        let lane = (0..rank).rev().find(|&d| extent(d) > 1).filter(|&d| strands.independent[d]);
        let outer: Vec<usize> = (0..rank).filter(|&d| strands.independent[d] && Some(d) != lane).collect();
        let loops: Vec<u64> = outer.iter().map(|&d| extent(d)).collect();
        let lanes = emitter.target().lanes(self.widest_bits());
        let width = lane.map_or(1, |d| fitting(lanes * strands.work.registers(), extent(d)));
        let size = if matches!(strands.work, Work::Columns(_)) { STRIP } else { width.into() };
        let pieces = lane.map_or(1, |d| extent(d).div_ceil(size));
        let units = loops.iter().product::<u64>() * pieces;

        let mut fused = self.bind(emitter, frame.pointers)?;
        fused.for_units(frame.units, units, &mut |s, unit| {
            let (row, piece) = s.divide(&AffineExpr::symbol(unit), pieces as i64)?;
            let mut index = vec![AffineExpr::default(); rank];
            for (&d, counter) in outer.iter().zip(counters(s, &row, &loops)?) {
                index[d] = counter;
            }
            let Some(lane) = lane else { return self.strand(s, strands, index) };
            let first = piece.scaled(size as i64);
            let number = s.number_of(&first)?;
            let start = s.lanes_of(number);
            let (extent, whole) = (extent(lane), extent(lane).is_multiple_of(width.into()));
            let end = (start + size as i64).smin(extent as i64);
            let range = Range { start, end, extent: Some(extent), width, step: width.into(), whole };
            if let Work::Columns(op) = strands.work {
                let strip = Strip { index, lane, range, first };
                let results = self.results(s);
                return s.reduce_columns(self.source.root, op, &strands.dims, strip, &results);
            }
            s.for_each(range, Vec::new(), &mut |s, symbol, _| {
                index[lane] = AffineExpr::symbol(symbol);
                self.strand(s, strands, index.clone()).map(|()| Vec::new())
            })?;
            Ok(())
        })?;
        Ok(units)
    }

    /// One vector of strands, at an index that is 0 along the other dimensions.
    fn strand<'e, 'ctx>(
        &self,
        fused: &mut FusedEmitter<'e, 'ctx, 'm>,
        strands: &Strands<'m>,
        index: Index,
    ) -> Result<()> {
        let root = self.source.root;
        let results = self.results(fused);
        match strands.work {
            Work::Columns(_) => Err(Error::internal("columns are reduced in strips")),
            Work::Scan(op) => fused.scan(root, op, &strands.dims, index, &results),
            Work::SelectAndScatter(op) => match &results[..] {
                [result] => fused.select_and_scatter(root, op, &strands.independent, index, result),
                _ => Err(Error::internal("select-and-scatter has one result")),
            },
        }
    }

    /// Where results are stored.
    fn results<'ctx>(&self, fused: &FusedEmitter<'_, 'ctx, 'm>) -> Vec<Source<'ctx>> {
        let results = fused.pointers[self.source.inputs.len()..].iter().zip(&self.outputs);
        results.map(|(&base, output)| Source { base, shape: output.shape.clone() }).collect()
    }
}
