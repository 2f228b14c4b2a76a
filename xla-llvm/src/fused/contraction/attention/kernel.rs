//! Attention of a kernel: its parts, and both dots as GEMMs.

use xla_hlo::ops::Op;
use xla_hlo::{Error, Result};
use xla_passes::analysis::attention::Attention;

use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::matmul::{Matmul, MatmulSide};

/// Sides of a dot's operands, by operand number.
pub(crate) const SIDES: [MatmulSide; 2] = [MatmulSide::Left, MatmulSide::Right];

/// Attention of a kernel: its parts, and both dots.
pub(crate) struct AttentionKernel<'m> {
    pub parts: Attention,
    pub scores: Matmul<'m>,
    pub result: Matmul<'m>,
}

impl<'m> FusedKernel<'_, 'm> {
    /// Returns the attention that the kernel's strategy requires.
    pub(crate) fn required_attention(&self) -> Result<AttentionKernel<'m>> {
        self.attention_kernel().ok_or_else(|| Error::internal("kernel has no attention, which its strategy requires"))
    }

    /// Returns the attention that the kernel computes.
    pub(crate) fn attention_kernel(&self) -> Option<AttentionKernel<'m>> {
        let (graph, root) = (self.graph(), self.source.root);
        let Op::Dot(_) = graph[root].op() else { return None };
        let inputs = &self.source.inputs;
        if self.source.in_place || inputs.contains(&graph[root].operand(0)) && inputs.contains(&graph[root].operand(1))
        {
            return None;
        }
        let parts = Attention::find(self.source.module, graph, root)?;
        Some(AttentionKernel { scores: self.matmul_of(parts.scores)?, result: self.matmul_of(root)?, parts })
    }
}

impl AttentionKernel<'_> {
    /// Returns the sides of the queries and the keys in the first dot, and of the values in the second dot.
    pub fn sides(&self) -> [MatmulSide; 3] {
        let queries = SIDES[self.parts.queries];
        [queries, queries.other(), SIDES[self.parts.probabilities].other()]
    }

    /// Returns the number of queries per batch and head.
    pub fn queries(&self) -> u64 {
        self.scores.extent(self.sides()[0])
    }

    /// Returns the number of keys per batch and head.
    pub fn keys(&self) -> u64 {
        self.scores.extent(self.sides()[1])
    }
}
