//! Code generation strategies of kernels, chosen from operations, shapes and target.

use std::fmt;

use xla_hlo::Result;
use xla_hlo::ops::Op;

use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::tiling::RegisterTiles;
use crate::fused::loops::plan::LoopPlan;
use crate::fused::sequential::fibers::Fibers;
use crate::fused::sequential::sort::RowSort;
use crate::fused::simt::attention::backward_plan::BackwardTiling;
use crate::fused::simt::attention::plan::AttentionTiling;
use crate::fused::simt::attention::wgmma::plan::WgmmaAttention;
use crate::fused::simt::elementwise::ThreadLoops;
use crate::fused::simt::matmul::skinny::SkinnyMatmul;
use crate::fused::simt::matmul::tiling::Tiling;
use crate::fused::simt::row_reduce::RowReduce;
use crate::fused::vector::loops::VectorLoops;
use crate::fused::vector::transpose::TileGrid;

/// Strategy of a kernel: the method that computes its results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// Results without elements.
    Empty,
    /// Scatter of update windows: sequential, except between windows that are known to be disjoint.
    Scatter,
    /// Sequential along some dimensions, independent along the others: columns, scans, select-and-scatter.
    Fibers(Fibers),
    /// Rows that are sorted sequentially in scratch memory.
    RowSort(RowSort),
    /// Loop nest whose innermost loop is vectorized.
    VectorLoops(VectorLoops),
    /// Register-blocked GEMM: one tile of accumulators in vector registers at a time.
    RegisterTiles(RegisterTiles),
    /// Loop nest tiled along two loops, with tiles transposed in registers.
    VectorTranspose(TileGrid),
    /// One thread per few neighbouring elements.
    ThreadLoops(ThreadLoops),
    /// One warp or block per row.
    RowReduce(RowReduce),
    /// Several threads of a block per column.
    ColumnReduce {
        /// Loops over columns.
        plan: LoopPlan,
        /// Number of threads that reduce a column together.
        members: u32,
    },
    /// One block per tile of two loops, transposed in shared memory.
    SharedTranspose {
        /// Loops of the nest.
        plan: LoopPlan,
        /// Number of the loop that is tiled together with the innermost one.
        across: usize,
    },
    /// One block per tile of a GEMM's result.
    Matmul(Tiling),
    /// One block per tile of an attention's queries.
    Attention(AttentionTiling),
    /// One block per tile of an attention's queries, with wgmma by warp groups.
    WgmmaAttention(WgmmaAttention),
    /// One block per tile of score rows; sums over functions of the scores (gradients of attention).
    ScoreSum(BackwardTiling),
    /// Warps or blocks that read the larger operand of a GEMM once.
    SkinnyMatmul(SkinnyMatmul),
}

/// Names of all strategies.
pub const STRATEGIES: &[&str] = &[
    "attention",
    "column-reduce",
    "empty",
    "group-attention",
    "heap-select",
    "matmul",
    "merge-sort",
    "radix-sort",
    "register-tiles",
    "row-reduce",
    "scatter",
    "score-sum",
    "select-and-scatter",
    "sequential-scan",
    "shared-transpose",
    "skinny-matmul",
    "thread-loops",
    "vector-column-reduce",
    "vector-loops",
    "vector-matrix",
    "vector-transpose",
];

impl Strategy {
    /// Chooses the strategy for a kernel on the emitter's target. The accesses of most kernels determine their loops.
    pub(crate) fn of(kernel: &FusedKernel<'_, '_>, emitter: &Emitter<'_>) -> Result<Strategy> {
        let target = emitter.target();
        if let Op::Scatter(_) = kernel.graph()[kernel.source.root].op() {
            return Ok(Strategy::Scatter);
        }
        if kernel.dims.contains(&0) {
            return Ok(Strategy::Empty);
        }
        if let Op::Sort(_) | Op::TopK(_) = kernel.graph()[kernel.source.root].op() {
            return Ok(Strategy::RowSort(kernel.row_sort()?));
        }
        if let Some(fibers) = kernel.fibers(target)? {
            return Ok(Strategy::Fibers(fibers));
        }
        match target.simt() {
            None => Strategy::of_vectors(kernel, emitter),
            Some(_) => Strategy::of_threads(kernel, emitter),
        }
    }

    fn of_vectors(kernel: &FusedKernel<'_, '_>, emitter: &Emitter<'_>) -> Result<Strategy> {
        if let Some(tiles) = kernel.register_tiles(emitter)? {
            return Ok(Strategy::RegisterTiles(tiles));
        }
        let plan = kernel.loop_plan(emitter.target(), 0)?;
        let width = kernel.vector_width(emitter.target(), &plan);
        Ok(match plan.across() {
            Some(across) if width > 1 && !kernel.has_reductions() => {
                Strategy::VectorTranspose(TileGrid::new(plan, across, kernel.widest_bits(), width))
            }
            _ => Strategy::VectorLoops(kernel.vector_loops(plan, width)),
        })
    }

    fn of_threads(kernel: &FusedKernel<'_, '_>, emitter: &Emitter<'_>) -> Result<Strategy> {
        if let Some((_, plan)) = kernel.attention_of_groups(emitter.target()) {
            return Ok(Strategy::WgmmaAttention(plan));
        }
        if let Some((_, tiling)) = kernel.attention(emitter.target()) {
            return Ok(Strategy::Attention(tiling));
        }
        if let Some((_, tiling)) = kernel.score_sum(emitter.target()) {
            return Ok(Strategy::ScoreSum(tiling));
        }
        if let Some(matmul) = kernel.only_matmul() {
            if let Some(skinny) = SkinnyMatmul::new(&matmul) {
                return Ok(Strategy::SkinnyMatmul(skinny));
            }
            if matmul.fills_tiles() {
                return Ok(Strategy::Matmul(Tiling::new(&matmul, emitter.target())));
            }
        }
        let rows = kernel.row_shape(emitter.target());
        let plan = kernel.loop_plan(emitter.target(), rows.map_or(0, |shape| shape.rows))?;
        if let Some(shape) = rows {
            return Ok(Strategy::RowReduce(RowReduce { plan, shape }));
        }
        if let Some(members) = kernel.column_members(emitter.target()) {
            return Ok(Strategy::ColumnReduce { plan, members });
        }
        Ok(match plan.across().filter(|_| !kernel.has_reductions() && !kernel.source.in_place) {
            Some(across) => Strategy::SharedTranspose { plan, across },
            None => Strategy::ThreadLoops(kernel.thread_loops(plan, emitter.target())),
        })
    }

    /// Returns the number of tensor maps among the kernel's parameters.
    pub(crate) fn maps(&self) -> usize {
        match self {
            Strategy::Matmul(tiling) => tiling.maps(),
            Strategy::WgmmaAttention(_) => WgmmaAttention::MAPS,
            _ => 0,
        }
    }

    /// Returns the strategy's name as printed in dumps.
    pub fn name(&self) -> &'static str {
        match self {
            Strategy::Empty => "empty",
            Strategy::Scatter => "scatter",
            Strategy::Fibers(fibers) => fibers.name(),
            Strategy::RowSort(sort) => sort.name(),
            Strategy::VectorLoops(_) => "vector-loops",
            Strategy::RegisterTiles(_) => "register-tiles",
            Strategy::VectorTranspose(_) => "vector-transpose",
            Strategy::ThreadLoops(_) => "thread-loops",
            Strategy::RowReduce(_) => "row-reduce",
            Strategy::ColumnReduce { .. } => "column-reduce",
            Strategy::SharedTranspose { .. } => "shared-transpose",
            Strategy::Matmul(_) => "matmul",
            Strategy::Attention(_) => "attention",
            Strategy::WgmmaAttention(_) => "group-attention",
            Strategy::ScoreSum(_) => "score-sum",
            Strategy::SkinnyMatmul(_) => "skinny-matmul",
        }
    }
}

/// Prints the name and the parameters of the strategy: `vector-loops [128, 1024] x 16 lanes`.
impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Strategy::Empty | Strategy::Scatter => Ok(()),
            Strategy::Fibers(fibers) => write!(f, " {fibers}"),
            Strategy::RowSort(sort) => write!(f, " {sort}"),
            Strategy::VectorLoops(loops) => write!(f, " {loops}"),
            Strategy::RegisterTiles(tiles) => write!(f, " {tiles}"),
            Strategy::VectorTranspose(grid) => write!(f, " {grid}"),
            Strategy::ThreadLoops(loops) => write!(f, " {loops}"),
            Strategy::RowReduce(rows) => write!(f, " {rows}"),
            Strategy::ColumnReduce { plan, members } => write!(f, " {plan}, {members} threads a column"),
            Strategy::SharedTranspose { plan, across } => write!(f, " {plan}, across loop {across}"),
            Strategy::Matmul(tiling) => write!(f, " {tiling}"),
            Strategy::Attention(tiling) => write!(f, " {tiling}"),
            Strategy::WgmmaAttention(plan) => write!(f, " {plan}"),
            Strategy::ScoreSum(tiling) => write!(f, " {tiling}"),
            Strategy::SkinnyMatmul(skinny) => write!(f, " {skinny}"),
        }
    }
}
