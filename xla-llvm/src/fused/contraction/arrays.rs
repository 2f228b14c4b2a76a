//! Arrays of a GEMM in memory, and the loops over K that follow from them.

use xla_hlo::{InstrId, Result};

use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::axes::Axis;
use crate::fused::contraction::groups::{DotInstruction, Groups, LEAST_LANES};
use crate::fused::contraction::matmul::{Matmul, MatmulSide};
use crate::fused::core::address::strides_of;
use crate::fused::loops::affine::{AffineExpr, Symbol, SymbolId, position};
use crate::target::Target;

/// Facts about the arrays of a GEMM.
pub(crate) struct Arrays {
    /// Symbols of batch, M, N and K.
    pub symbols: [Vec<SymbolId>; 4],
    /// Position in memory of each operand whose elements are all in memory.
    pub operands: [Option<AffineExpr>; 2],
    /// Position of the result in memory.
    pub result: AffineExpr,
}

impl<'m> FusedKernel<'_, 'm> {
    /// Determines where the GEMM's elements are in memory.
    pub fn matmul_arrays(&self, matmul: &Matmul<'m>, target: &Target) -> Result<Arrays> {
        let mut accesses = self.accesses(target);
        let mut symbols = |extents: &[u64]| -> Vec<SymbolId> {
            extents.iter().map(|&extent| accesses.define(Symbol { extent: Some(extent), level: 0 }, 1)).collect()
        };
        let [batch, m, n, k] =
            [&matmul.batch, &matmul.free[0], &matmul.free[1], &matmul.contracting].map(|d| symbols(d));
        let exprs = |symbols: &[SymbolId]| symbols.iter().map(|&id| AffineExpr::symbol(id)).collect::<Vec<_>>();
        let all = [&batch, &m, &n, &k].map(|symbols| exprs(symbols));
        let shape = |id: InstrId| self.graph()[id].shape().expect_array();
        let mut operands = [None, None];
        for side in [MatmulSide::Left, MatmulSide::Right] {
            let id = matmul.operands[side as usize];
            let mut condition = None;
            let index = matmul.operand_index(
                &mut accesses,
                side,
                (&all[0], &all[1 + side as usize], &all[3]),
                &mut condition,
            )?;
            if self.source.inputs.contains(&id) && condition.is_none() {
                operands[side as usize] = Some(position(&index, &strides_of(shape(id)?)));
            }
        }
        let result = position(&matmul.result_index(&all[0], &all[1], &all[2]), &strides_of(shape(matmul.id)?));
        Ok(Arrays { symbols: [batch, m, n, k], operands, result })
    }
}

impl Arrays {
    /// Returns the loops over K in steps of a tile, for packing rows and columns. If steps are groups, both have the
    /// same loops, so that groups have the same elements.
    pub fn k_loops(&self, matmul: &Matmul<'_>, groups: Option<Groups>) -> [Axis; 2] {
        if let Some(groups) = groups {
            let axis = groups.axis(&self.common_k_loops(matmul));
            return [axis.clone(), axis];
        }
        self.operands.each_ref().map(|at| match at {
            Some(at) => Axis::last(&matmul.contracting, &self.symbols[3], &[at]),
            None => Axis::apart(&matmul.contracting),
        })
    }

    /// Returns the loops over K that are contiguous in both operands.
    fn common_k_loops(&self, matmul: &Matmul<'_>) -> Axis {
        match &self.operands {
            [Some(rows), Some(columns)] => Axis::last(&matmul.contracting, &self.symbols[3], &[rows, columns]),
            _ => Axis::apart(&matmul.contracting),
        }
    }

    /// Returns the groups of K for the target's dot-product instructions, if they save at least a quarter of the steps.
    pub fn groups(&self, matmul: &Matmul<'_>, columns: u64, emitter: &Emitter<'_>) -> Option<Groups> {
        let instruction = DotInstruction::of(matmul, emitter.target(), emitter.options().flush_denormals)?;
        let extent = self.common_k_loops(matmul).extent;
        let groups = Groups { instruction, extent };
        (columns >= LEAST_LANES && 4 * extent.div_ceil(groups.size()) <= 3 * extent).then_some(groups)
    }
}
