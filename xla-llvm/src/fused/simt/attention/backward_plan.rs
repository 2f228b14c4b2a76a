//! Kernels that sum functions of scores, and the sizes of their tiles.

use std::fmt;

use xla_hlo::ops::Op;
use xla_hlo::{Computation, Result};
use xla_passes::analysis::score_sums::ScoreSum;

use super::plan::{AttentionTiling, lies};
use super::shape::TileShape;
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::attention::function::{Function, Scores};
use crate::fused::contraction::attention::kernel::SIDES;
use crate::fused::contraction::matmul::{Along, Matmul, MatmulSide};
use crate::fused::kernel::Launch;
use crate::fused::loops::frame::Frame;
use crate::fused::strategy::{Choice, Strategy};
use crate::fused::tuning::attention::{KEYS, MOST_BYTES, SUM_HEADS};
use crate::mma::{OperandType, ROWS};
use crate::simt::COPY_BYTES;
use crate::target::Target;

/// Head sizes that kernels of sums over functions of scores support: bytes of an element, required divisor, and
/// maximum.
pub const ATTENTION_BACKWARD_HEADS: [(usize, usize, usize); 2] = SUM_HEADS;

/// Sum of a kernel: its parts, and all dots.
pub(crate) struct BackwardKernel<'m> {
    pub parts: ScoreSum,
    pub scores: Vec<Matmul<'m>>,
    /// Dot that sums; `None` for a reduction.
    pub result: Option<Matmul<'m>>,
}

/// Tile sizes of a sum over functions of scores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BackwardTiling {
    pub unit: OperandType,
    /// Number of columns per tile.
    pub columns: u64,
    /// K of each dot of scores.
    pub heads: Vec<u64>,
    /// Number of elements of a value, if a last dot multiplies by values.
    pub value: Option<u64>,
    /// Index of the scores whose columns are also the values.
    pub shared: Option<usize>,
}

impl Strategy for BackwardTiling {
    fn names() -> &'static [&'static str] {
        &["score-sum"]
    }

    fn choose(choice: &Choice<'_, '_, '_, '_>) -> Result<Option<BackwardTiling>> {
        Ok(choice.kernel.score_sum(choice.target()).map(|(_, tiling)| tiling))
    }

    fn emit<'ctx>(
        &self,
        kernel: &FusedKernel<'_, '_>,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
    ) -> Result<Launch> {
        kernel.emit_score_sum(emitter, frame, self)
    }
}

impl<'m> FusedKernel<'_, 'm> {
    /// Returns the kernel's sum and its tiling, if the target has tensor cores for it.
    pub(crate) fn score_sum(&self, target: &Target) -> Option<(BackwardKernel<'m>, BackwardTiling)> {
        let (graph, root) = (self.graph(), self.source.root);
        if self.source.in_place {
            return None;
        }
        let parts = ScoreSum::find(self.source.module, graph, root)?;
        let inside = |id: &_| parts.members.contains(id);
        if !self.computed().iter().all(inside) {
            return None;
        }
        let scores = parts.scores.iter().map(|scores| self.matmul_of(scores.dot)).collect::<Option<Vec<_>>>()?;
        let result = match graph[root].op() {
            Op::Dot(_) => Some(self.matmul_of(root)?),
            _ => None,
        };
        let kernel = BackwardKernel { parts, scores, result };
        let inputs = &self.source.inputs;
        let in_memory = kernel.result.iter().all(|result| inputs.contains(&result.operands[kernel.values() as usize]));
        let tiling = BackwardTiling::new(&kernel, graph, target).filter(|_| in_memory)?;
        Some((kernel, tiling))
    }
}

impl<'m> BackwardKernel<'m> {
    /// Returns the side of the values in the last dot.
    pub fn values(&self) -> MatmulSide {
        SIDES[self.parts.operand].other()
    }

    /// Returns the side of a dot of scores that has the rows.
    pub fn rows_of(&self, number: usize) -> MatmulSide {
        SIDES[self.parts.scores[number].rows]
    }

    /// Returns the root's operand that is summed, as a function of the scores.
    pub(super) fn function(&self, graph: &Computation) -> Function<'_, 'm> {
        let of = (0..self.scores.len()).map(|number| Scores {
            matmul: &self.scores[number],
            rows: self.rows_of(number),
            dims: &self.parts.scores[number].dims,
        });
        Function { value: graph[self.parts.root].operand(self.parts.operand), of: of.collect() }
    }

    /// Returns the number of rows of scores per batch.
    pub fn rows(&self) -> u64 {
        self.scores[0].extent(self.rows_of(0))
    }

    /// Returns the number of columns of scores per batch.
    pub fn columns(&self) -> u64 {
        self.scores[0].extent(self.rows_of(0).other())
    }

    /// Returns whether all operands are stored in memory in rows of whole chunks.
    fn lies(&self) -> bool {
        let of_values = |result: &Matmul<'_>| {
            let (near, bytes) = (result.neighbours[self.values() as usize], result.bytes[self.values() as usize]);
            near.along == Along::Free && near.run.is_multiple_of(COPY_BYTES / bytes)
        };
        let of_scores = |matmul: &Matmul<'_>| SIDES.iter().all(|&side| lies(matmul, side, Along::K));
        self.scores.iter().all(of_scores) && self.result.iter().all(of_values)
    }

    /// Returns the tensor core's operand type that all dots share.
    fn unit(&self) -> Option<OperandType> {
        let unit = self.scores[0].operand_type?;
        let bytes = self.scores[0].bytes[0];
        let alike = self.scores.iter().all(|matmul| matmul.operand_type == Some(unit));
        // The computed operand may be wider than the values: the dot's algorithm then narrows it to their type.
        let values = self.result.iter().all(|result| result.bytes[self.values() as usize] == bytes);
        (alike && values).then_some(unit)
    }

    /// Returns the index of the scores whose columns are the last dot's values, row by row.
    fn shared(&self, graph: &Computation) -> Option<usize> {
        let root = self.parts.root;
        let Op::Dot(last) = graph[root].op() else { return None };
        let rank = |id: xla_hlo::InstrId, number: usize| {
            graph[graph[id].operand(number)].shape().as_array().map_or(0, |array| array.rank())
        };
        let of_last = last.dims.operands([rank(root, 0), rank(root, 1)]);
        let (own, values) = (&of_last[self.parts.operand], &of_last[1 - self.parts.operand]);
        (0..self.scores.len()).find(|&number| {
            let scores = &self.parts.scores[number];
            let Op::Dot(dot) = graph[scores.dot].op() else { return false };
            let columns = &dot.dims.operands([rank(scores.dot, 0), rank(scores.dot, 1)])[1 - scores.rows];
            let batch = own.batch.iter().zip(&self.scores[number].batch).enumerate();
            graph[scores.dot].operand(1 - scores.rows) == graph[root].operand(1 - self.parts.operand)
                && columns.batch == values.batch
                && columns.free == values.contracting
                && columns.contracting == values.free
                && batch.into_iter().all(|(place, (&d, &extent))| extent == 1 || scores.dims[d] == Some(place))
        })
    }
}

impl BackwardTiling {
    fn new(kernel: &BackwardKernel<'_>, graph: &Computation, target: &Target) -> Option<BackwardTiling> {
        let unit = kernel.unit().filter(|&unit| target.has_tensor_cores(unit))?;
        let heads: Vec<u64> = kernel.scores.iter().map(Matmul::k).collect();
        let value = kernel.result.as_ref().map(|result| result.extent(kernel.values()));
        let whole = heads.iter().chain(&value).all(|head| *head > 0 && head.is_multiple_of(ROWS));
        if !whole || !kernel.lies() {
            return None;
        }
        let shared = kernel.shared(graph);
        let new = |columns| BackwardTiling { unit, columns, heads: heads.clone(), value, shared };
        KEYS.into_iter().map(new).find(|tiling| tiling.bytes() <= MOST_BYTES)
    }

    /// Returns the size in bytes of shared memory.
    fn bytes(&self) -> u64 {
        let of_scores = (0..self.heads.len()).flat_map(|number| self.shapes(number));
        of_scores.chain(self.values()).map(TileShape::all_bytes).sum()
    }

    /// Returns the shapes of the tiles of a dot's rows and columns.
    pub fn shapes(&self, number: usize) -> [TileShape; 2] {
        let bytes = self.unit.element_type().byte_width() as u64;
        [AttentionTiling::ROWS, self.columns].map(|rows| TileShape::new(rows, self.heads[number], bytes))
    }

    /// Returns the shape of the tile of values, unless the values are also columns of scores.
    pub fn values(&self) -> Option<TileShape> {
        let bytes = self.unit.element_type().byte_width() as u64;
        let value = self.value.filter(|_| self.shared.is_none())?;
        Some(TileShape::new(self.columns, value, bytes))
    }
}

impl fmt::Display for BackwardTiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BackwardTiling { unit, columns, heads, value, shared } = self;
        write!(f, "tiles of {} rows and {columns} columns, heads of {heads:?}", AttentionTiling::ROWS)?;
        if let Some(value) = value {
            write!(f, ", values of {value}")?;
        }
        if let Some(number) = shared {
            write!(f, ", which are columns of scores {number}")?;
        }
        write!(f, ", tensor cores in {unit:?}")
    }
}
