//! Attention kernels, and the sizes of their tiles.

use std::fmt;

use xla_hlo::Result;

use super::shape::TileShape;
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::attention::kernel::AttentionKernel;
use crate::fused::contraction::matmul::{Along, Matmul, MatmulSide};
use crate::fused::kernel::Launch;
use crate::fused::loops::frame::Frame;
use crate::fused::strategy::{Choice, Strategy};
use crate::fused::tuning::attention::{HEADS, KEYS, MOST_BYTES, WARPS};
use crate::mma::{OperandType, ROWS};
use crate::simt::{COPY_BYTES, WARP};
use crate::target::Target;

/// Head sizes that attention kernels support: bytes of an element, required divisor, and maximum.
pub const ATTENTION_HEADS: [(usize, usize, usize); 2] = HEADS;
/// Number of queries per block.
pub const ATTENTION_ROWS: usize = AttentionTiling::ROWS as usize;

/// Tile sizes of an attention kernel on tensor cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AttentionTiling {
    pub unit: OperandType,
    /// Number of keys per tile.
    pub keys: u64,
    /// Number of elements of a query (or key), and of a value.
    pub heads: [u64; 2],
}

impl Strategy for AttentionTiling {
    fn names() -> &'static [&'static str] {
        &["attention"]
    }

    fn choose(choice: &Choice<'_, '_, '_, '_>) -> Result<Option<AttentionTiling>> {
        Ok(choice.kernel.attention(choice.target()))
    }

    fn emit<'ctx>(
        &self,
        kernel: &FusedKernel<'_, '_>,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
    ) -> Result<Launch> {
        kernel.emit_attention(emitter, frame, *self)
    }
}

impl<'m> FusedKernel<'_, 'm> {
    /// Returns the tiling of the kernel's attention, if it has one and the target has tensor cores for it.
    pub(crate) fn attention(&self, target: &Target) -> Option<AttentionTiling> {
        AttentionTiling::new(&self.attention_kernel()?, target)
    }
}

impl AttentionKernel<'_> {
    /// Returns whether all operands are stored in memory in rows of whole chunks.
    pub fn lies(&self) -> bool {
        let [queries, keys, values] = self.sides();
        lies(&self.scores, queries, Along::K)
            && lies(&self.scores, keys, Along::K)
            && lies(&self.result, values, Along::Free)
    }
}

/// Returns whether an operand is stored in memory in rows of whole chunks along its free or its contracted dimension.
pub(super) fn lies(matmul: &Matmul<'_>, side: MatmulSide, along: Along) -> bool {
    let (near, stride) = (matmul.neighbours[side as usize], matmul.k_strides[side as usize]);
    let strides = if along == Along::K { stride == Some(1) } else { stride.is_some() };
    near.along == along && strides && near.run.is_multiple_of(COPY_BYTES / matmul.bytes[side as usize])
}

impl AttentionTiling {
    /// Number of queries per tile.
    pub const ROWS: u64 = WARPS * ROWS;
    /// Number of threads per block.
    pub const THREADS: u64 = WARPS * WARP as u64;

    fn new(kernel: &AttentionKernel<'_>, target: &Target) -> Option<AttentionTiling> {
        let unit = kernel.scores.operand_type.filter(|&unit| target.has_tensor_cores(unit))?;
        let values = kernel.sides()[2];
        let heads = [kernel.scores.k(), kernel.result.extent(values)];
        let whole = heads.iter().all(|head| *head > 0 && head.is_multiple_of(ROWS));
        if kernel.result.operand_type != Some(unit) || !whole || !kernel.lies() {
            return None;
        }
        let tilings = KEYS.into_iter().map(|keys| AttentionTiling { unit, keys, heads });
        tilings.into_iter().find(|tiling| tiling.bytes() <= MOST_BYTES)
    }

    /// Returns the size in bytes of shared memory.
    fn bytes(self) -> u64 {
        let [queries, keys, values] = self.shapes();
        queries.all_bytes() + keys.all_bytes() + values.all_bytes()
    }

    /// Returns the shapes of the tiles of queries, keys and values.
    pub fn shapes(self) -> [TileShape; 3] {
        let bytes = self.unit.element_type().byte_width() as u64;
        let [head, value] = self.heads;
        [(AttentionTiling::ROWS, head), (self.keys, head), (self.keys, value)]
            .map(|(rows, elements)| TileShape::new(rows, elements, bytes))
    }
}

impl fmt::Display for AttentionTiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AttentionTiling { unit, keys, heads: [head, value] } = self;
        let rows = AttentionTiling::ROWS;
        write!(f, "tiles of {rows} queries and {keys} keys, heads of {head} and {value}, tensor cores in {unit:?}")
    }
}
