//! Fibers: lines of elements along the dimensions that a kernel must process in order; different fibers are
//! independent.
//!
//! If the innermost dimension is independent, neighbouring fibers are vector lanes. A work item is one vector of
//! fibers, or a block of columns.

use std::fmt;

use xla_hlo::ops::{Op, simple_combiner};
use xla_hlo::{ElementType, Error, InstrId, Result};

use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::Launch;
use crate::fused::loops::affine::{AffineExpr, Index};
use crate::fused::loops::frame::Frame;
use crate::fused::loops::range::Range;
use crate::fused::loops::variables::counters;
use crate::fused::strategy::{Choice, Strategy};
use crate::fused::tuning::vector::{LEAST_COLUMNS, LEAST_ROWS};
use crate::fused::tuning::{REDUCE_REGISTERS, fitting};
use crate::fused::value::Source;
use crate::fused::vector::column_reduce::{ColumnBlock, block_of_columns};
use crate::fused::vector::vector_matrix::VectorMatrix;
use crate::target::Target;

/// Fibers of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fibers {
    kind: FiberKind,
    /// Sizes of the array that is divided into fibers.
    dims: Vec<usize>,
    /// Whether each dimension is independent.
    independent: Vec<bool>,
}

/// Operation along a fiber: the root of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FiberKind {
    ColumnReduce,
    VectorMatrix,
    Scan,
    SelectAndScatter,
}

impl FiberKind {
    /// Returns the number of vector registers for neighbouring fibers; fewer if each fiber carries more state.
    fn registers(self) -> u32 {
        match self {
            FiberKind::ColumnReduce | FiberKind::VectorMatrix => 2,
            FiberKind::Scan => REDUCE_REGISTERS,
            FiberKind::SelectAndScatter => 1,
        }
    }
}

impl Strategy for Fibers {
    fn names() -> &'static [&'static str] {
        &["vector-column-reduce", "vector-matrix", "sequential-scan", "select-and-scatter"]
    }

    fn choose(choice: &Choice<'_, '_, '_, '_>) -> Result<Option<Fibers>> {
        choice.kernel.fibers(choice.target())
    }

    fn name(&self) -> &'static str {
        match self.kind {
            FiberKind::ColumnReduce => "vector-column-reduce",
            FiberKind::VectorMatrix => "vector-matrix",
            FiberKind::Scan => "sequential-scan",
            FiberKind::SelectAndScatter => "select-and-scatter",
        }
    }

    fn emit<'ctx>(
        &self,
        kernel: &FusedKernel<'_, '_>,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
    ) -> Result<Launch> {
        kernel.emit_fibers(emitter, frame, self).map(Launch::alone)
    }
}

/// Prints the sizes of the dimensions, with sequential ones in parentheses.
impl fmt::Display for Fibers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dim =
            |(size, &independent): (&usize, &bool)| if independent { size.to_string() } else { format!("({size})") };
        let dims: Vec<String> = self.dims.iter().zip(&self.independent).map(dim).collect();
        write!(f, "[{}]", dims.join(", "))
    }
}

impl<'m> FusedKernel<'_, 'm> {
    /// Returns the fibers of the kernel if its root is computed along fibers on this target.
    pub(crate) fn fibers(&self, target: &Target) -> Result<Option<Fibers>> {
        let graph = self.graph();
        let root = &graph[self.source.root];
        let dims_of = |id: InstrId| Ok::<_, Error>(graph[id].shape().expect_array()?.dims().to_vec());
        Ok(match root.op() {
            Op::Reduce(op) => {
                let dims = dims_of(root.operand(0))?;
                let rows: usize = op.dimensions.iter().map(|&d| dims[d]).product();
                let columns = (0..dims.len()).rfind(|&d| dims[d] > 1).filter(|d| !op.dimensions.contains(d));
                // The accumulators of a block are in scratch memory, which GPU threads do not have.
                let pays =
                    target.simt().is_none() && rows >= LEAST_ROWS && columns.is_some_and(|d| dims[d] >= LEAST_COLUMNS);
                let independent = (0..dims.len()).map(|d| !op.dimensions.contains(&d)).collect();
                pays.then_some(Fibers { kind: FiberKind::ColumnReduce, dims, independent })
            }
            Op::ReduceWindow(op) => {
                let dims = dims_of(root.operand(0))?;
                let scan = op.window.cumulative(&dims);
                let any_order = simple_combiner(&self.source.module[op.computation]).is_some();
                scan.filter(|scan| scan.in_order || any_order).map(|scan| Fibers {
                    kind: FiberKind::Scan,
                    independent: (0..dims.len()).map(|d| d != scan.dimension).collect(),
                    dims,
                })
            }
            Op::SelectAndScatter(op) => {
                let dims = dims_of(root.operand(0))?;
                let independent = op.window.dims_for(dims.len())?.iter().map(|w| w.is_unit()).collect();
                Some(Fibers { kind: FiberKind::SelectAndScatter, dims, independent })
            }
            _ if target.simt().is_none() => self.vector_matrix().map(|product| {
                let reduced = product.reduced();
                let independent = (0..product.dims.len()).map(|d| !reduced.contains(&d)).collect();
                Fibers { kind: FiberKind::VectorMatrix, dims: product.dims, independent }
            }),
            _ => None,
        })
    }

    /// Returns the vector-matrix product of the kernel, if all other instructions are elementwise functions of its
    /// results.
    pub(crate) fn vector_matrix(&self) -> Option<VectorMatrix<'m>> {
        let id = self.only_matmul()?.id;
        match self.graph()[id].op() {
            Op::Dot(dot) => VectorMatrix::new(self.graph(), id, dot),
            _ => None,
        }
    }

    /// Emits the function's body and returns the number of work items.
    pub(crate) fn emit_fibers<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        fibers: &Fibers,
    ) -> Result<u64> {
        let extent = |d: usize| fibers.dims[d] as u64;
        let rank = fibers.dims.len();
        let lane = (0..rank).rev().find(|&d| extent(d) > 1).filter(|&d| fibers.independent[d]);
        let outer: Vec<usize> = (0..rank).filter(|&d| fibers.independent[d] && Some(d) != lane).collect();
        let loops: Vec<u64> = outer.iter().map(|&d| extent(d)).collect();
        let lanes = emitter.target().lanes(self.widest_bits());
        let width = lane.map_or(1, |d| fitting(lanes * fibers.kind.registers(), extent(d)));
        let by_blocks = matches!(fibers.kind, FiberKind::ColumnReduce | FiberKind::VectorMatrix);
        let size = if by_blocks {
            let types: Vec<ElementType> = self.outputs.iter().map(|output| output.shape.element_type()).collect();
            let columns = lane.map_or(1, extent);
            let blocks = columns.div_ceil(block_of_columns(emitter, &types));
            columns.div_ceil(blocks).next_multiple_of(width.into())
        } else {
            width.into()
        };
        let chunks = lane.map_or(1, |d| extent(d).div_ceil(size));
        let items = loops.iter().product::<u64>() * chunks;

        let mut fused = self.bind(emitter, frame.pointers)?;
        fused.for_work_items(frame.work_items, items, &mut |s, item| {
            let (row, chunk) = s.divide(&AffineExpr::symbol(item), chunks as i64)?;
            let mut index = vec![AffineExpr::default(); rank];
            for (&d, counter) in outer.iter().zip(counters(s, &row, &loops)?) {
                index[d] = counter;
            }
            let Some(lane) = lane else { return self.emit_fiber(s, fibers, index) };
            let first = chunk.scaled(size as i64);
            let number = s.number_of(&first)?;
            let start = s.lanes_of(number);
            let extent = extent(lane);
            let range = Range { start, end: (start + size as i64).smin(extent as i64), ..s.full_range(extent, width) };
            if by_blocks {
                let block = ColumnBlock { index, lane, range, first, size: size.min(extent) };
                let results = self.targets(s);
                return match self.graph()[self.source.root].op() {
                    Op::Reduce(op) => s.reduce_columns((self.source.root, op), &fibers.dims, block, &results),
                    _ => s.add_rows(self, block),
                };
            }
            s.for_each(range, Vec::new(), &mut |s, symbol, _| {
                index[lane] = AffineExpr::symbol(symbol);
                self.emit_fiber(s, fibers, index.clone()).map(|()| Vec::new())
            })?;
            Ok(())
        })?;
        Ok(items)
    }

    /// Emits one vector of fibers, at an index that is 0 along the sequential dimensions.
    fn emit_fiber<'e, 'ctx>(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, fibers: &Fibers, index: Index) -> Result<()> {
        let root = self.source.root;
        let results = self.targets(s);
        match (self.graph()[root].op(), &results[..]) {
            (Op::ReduceWindow(op), _) => s.scan(root, op, &fibers.dims, index, &results),
            (Op::SelectAndScatter(op), [result]) => s.select_and_scatter(root, op, &fibers.independent, index, result),
            (op, _) => Err(Error::internal(format!(
                "{} with {} results cannot be computed by fibers",
                op.opcode(),
                results.len()
            ))),
        }
    }

    /// Returns the destinations of the results.
    fn targets<'ctx>(&self, s: &FusedEmitter<'_, 'ctx, 'm>) -> Vec<Source<'ctx>> {
        (0..self.outputs.len()).map(|number| self.target(s, number)).collect()
    }
}
