//! GEMM of one batch element that is being emitted: indices of its operands' elements and results.

use inkwell::values::PointerValue;
use xla_hlo::ops::BinaryOp;
use xla_hlo::{ElementType, Result};

use crate::elemental::{self, Value};
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::axes::Axis;
use crate::fused::contraction::groups::packed_type;
use crate::fused::contraction::matmul::{Matmul, MatmulSide};
use crate::fused::contraction::tiling::RegisterTiles;
use crate::fused::core::convolution::zero;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Index};
use crate::fused::value::{Guard, Source};
use crate::lanes::{Lanes, Scalar};

/// GEMM of one batch element that is being emitted.
pub(crate) struct BatchMatmul<'a, 'ctx, 'm> {
    pub kernel: &'a FusedKernel<'a, 'm>,
    pub matmul: &'a Matmul<'m>,
    pub tiles: &'a RegisterTiles,
    /// Scratch memory for packed rows, for packed columns, for sums between blocks of K, and for initial sums of
    /// columns.
    pub panels: &'a [Panel<'ctx>; 4],
    pub result: &'a Source<'ctx>,
    pub batch: Vec<AffineExpr>,
    /// Counters of the outer loops over rows and over columns.
    pub outer: [Vec<AffineExpr>; 2],
    /// First column; the columns of tiles and panels are relative to it.
    pub first_column: AffineExpr,
    /// Number of the block of K.
    pub part: AffineExpr,
    /// First element of the block of K.
    pub first_k: AffineExpr,
}

impl<'e, 'ctx, 'm> BatchMatmul<'_, 'ctx, 'm> {
    /// Returns a copy with other counters of the outer row loops and another block of K.
    pub fn at(&self, rows: &[AffineExpr], part: &AffineExpr) -> Self {
        let outer = [rows.to_vec(), self.outer[1].clone()];
        let (batch, first_column) = (self.batch.clone(), self.first_column.clone());
        let first_k = part.clone().scaled(self.tiles.elements_of_part() as i64);
        BatchMatmul { batch, outer, first_column, part: part.clone(), first_k, ..*self }
    }

    /// Returns the index of the operand element of a row (`which` is 0) or column (1) at a step of K, given by its loop
    /// counters. Adds the condition that the element exists; otherwise it counts as 0.
    pub fn index(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        which: usize,
        (free, k, sums): (&AffineExpr, &Axis, &[AffineExpr]),
        condition: &mut Option<Guard<'e, 'ctx>>,
    ) -> Result<Index> {
        let free = if which == 1 { free.clone().plus(&self.first_column) } else { free.clone() };
        let free = self.tiles.axes[which].coordinates(&self.outer[which], &free);
        let (inner, outer) = sums.split_last().map_or((AffineExpr::default(), &[][..]), |(i, o)| (i.clone(), o));
        let inner = inner.plus(&self.first_k);
        let sums = k.coordinates(outer, &inner);
        self.matmul.operand_index(s, self.tiles.sides[which], (&self.batch, &free, &sums), condition)
    }

    /// Returns the index of a result.
    pub fn result_index(&self, [row, column]: [&AffineExpr; 2]) -> Index {
        let rows = self.tiles.axes[0].coordinates(&self.outer[0], row);
        let columns = self.tiles.axes[1].coordinates(&self.outer[1], column);
        match self.tiles.sides[0] {
            MatmulSide::Left => self.matmul.result_index(&self.batch, &rows, &columns),
            MatmulSide::Right => self.matmul.result_index(&self.batch, &columns, &rows),
        }
    }
}

impl<'e, 'ctx> BatchMatmul<'_, 'ctx, '_> {
    /// Adds the products of a step of K to a sum; `row` may be one lane.
    pub fn add_products(
        &self,
        emitter: &'e Emitter<'ctx>,
        total: Value<'e, 'ctx>,
        [row, column]: [Value<'e, 'ctx>; 2],
    ) -> Result<Value<'e, 'ctx>> {
        if let Some(groups) = self.tiles.groups {
            return Ok(groups.instruction.add(total, row.lanes(), column.lanes()));
        }
        let product = elemental::binary(emitter, BinaryOp::Multiply, row.splat(column.width()), column)?;
        elemental::binary(emitter, BinaryOp::Add, total, product)
    }

    /// Returns the type of packed rows and columns.
    pub fn packed_type(&self) -> ElementType {
        packed_type(self.tiles.groups, self.matmul)
    }

    /// Returns the elements' coordinates of a step of K: its element `number`, if steps are groups.
    pub fn element_of(&self, sums: &[AffineExpr], number: u64) -> Vec<AffineExpr> {
        let mut sums = sums.to_vec();
        if let (Some(groups), Some(inner)) = (self.tiles.groups, sums.last_mut()) {
            *inner = inner.clone().scaled(groups.size() as i64).shifted(number as i64);
        }
        sums
    }
}

/// Scratch memory for packed elements of an operand.
pub(crate) struct Panel<'ctx> {
    /// One array per part of an element (real, imaginary).
    pub arrays: Vec<(PointerValue<'ctx>, Scalar)>,
}

impl<'ctx> Panel<'ctx> {
    /// Allocates scratch memory for `elements` elements of a type.
    pub fn new(s: &FusedEmitter<'_, 'ctx, '_>, ty: ElementType, elements: u64) -> Result<Panel<'ctx>> {
        if elements == 0 {
            return Ok(Panel { arrays: Vec::new() });
        }
        let zero = zero(s.emitter, ty);
        let scalars = [Some(zero.stored_lanes()), zero.imaginary()].into_iter().flatten().map(Lanes::scalar);
        let array = |scalar| Ok((s.emitter.scratch_array(scalar, elements)?, scalar));
        Ok(Panel { arrays: scalars.map(array).collect::<Result<_>>()? })
    }
}
