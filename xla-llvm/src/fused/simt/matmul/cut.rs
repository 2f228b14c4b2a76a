//! Splits of a matmul along K, and the destination of the partial sums.

use inkwell::values::PointerValue;
use xla_hlo::{Error, Result};

use crate::elemental::{self, Value};
use crate::fused::contraction::matmul::{Matmul, MatmulSide};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, position, row_major_strides};
use crate::lanes::Lanes;

/// Split of K into parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cut {
    /// Number of parts, at least one. No part is empty.
    pub parts: u64,
    /// Number of steps of K per part; the last part may have fewer.
    pub size: u64,
}

impl Cut {
    /// Returns a single part.
    pub fn whole(depth: u64) -> Cut {
        Cut { parts: 1, size: depth }
    }

    /// Splits K into about `wanted` parts, each a multiple of `multiple` steps and at least `least` steps.
    pub fn new(depth: u64, wanted: u64, (multiple, least): (u64, u64)) -> Cut {
        let parts = wanted.min(depth / least.max(1)).max(1);
        let size = depth.div_ceil(parts).next_multiple_of(multiple);
        if size >= depth { Cut::whole(depth) } else { Cut { parts: depth.div_ceil(size), size } }
    }

    /// Divides a combined number into part and batch.
    pub fn divide(
        self,
        s: &mut FusedEmitter<'_, '_, '_>,
        number: &AffineExpr,
        batches: u64,
    ) -> Result<(AffineExpr, AffineExpr)> {
        match self.parts {
            1 => Ok((AffineExpr::default(), number.clone())),
            _ => s.divide(number, batches as i64),
        }
    }

    /// Returns the first step of a part and its end, in units of `group` steps; K has `depth` steps.
    pub fn bounds<'e, 'ctx>(
        self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        part: &AffineExpr,
        (depth, group): (u64, u64),
    ) -> Result<[Lanes<'e, 'ctx>; 2]> {
        let (size, end) = ((self.size / group) as i64, depth.div_ceil(group) as i64);
        if self.parts == 1 {
            return Ok([s.number(0), s.number(end)]);
        }
        let start = s.number_of(&part.clone().scaled(size))?;
        let start = s.lanes_of(start);
        Ok([start, (start + size).smin(end)])
    }
}

/// Destination of the sums of a work item.
pub(crate) struct Sink<'a, 'ctx, 'm> {
    pub matmul: &'a Matmul<'m>,
    pub batch: &'a [AffineExpr],
    /// Destination of partial sums (split-K). `None` if sums are whole and go through the epilogue.
    pub part: Option<Partial<'ctx>>,
}

/// Scratch memory for partial sums, row-major `[parts, batches, rows, columns]`.
pub(crate) struct Partial<'ctx> {
    scratch: PointerValue<'ctx>,
    /// Combined number of part and batch.
    number: AffineExpr,
}

impl<'a, 'ctx, 'm> Sink<'a, 'ctx, 'm> {
    /// Returns the destination for a work item with a combined part and batch number. Partial sums require scratch
    /// memory.
    pub fn new(
        matmul: &'a Matmul<'m>,
        batch: &'a [AffineExpr],
        cut: Cut,
        (number, scratch): (&AffineExpr, Option<PointerValue<'ctx>>),
    ) -> Result<Self> {
        let part = match (cut.parts, scratch) {
            (1, _) => None,
            (_, Some(scratch)) => Some(Partial { scratch, number: number.clone() }),
            (_, None) => return Err(Error::internal("split-K matmul has no scratch memory for its partial sums")),
        };
        Ok(Sink { matmul, batch, part })
    }
}

impl<'ctx> Partial<'ctx> {
    /// Stores adjacent partial sums of a row, given the row and the first column.
    pub fn store<'e, 'm>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        matmul: &Matmul<'m>,
        at: &[AffineExpr],
        sum: Value<'e, 'ctx>,
    ) -> Result<()> {
        let [rows, columns] = [MatmulSide::Left, MatmulSide::Right].map(|side| matmul.extent(side) as usize);
        let at = [std::slice::from_ref(&self.number), at].concat();
        let at = s.number_of(&position(&at, &row_major_strides(&[1, rows, columns])))?;
        let at = s.lanes_of(at);
        match sum.width() {
            1 => elemental::store(s.emitter, sum, self.scratch, at, None),
            // The number of columns is a multiple of the width, and so is the offset of the row.
            _ => elemental::store_aligned(s.emitter, sum, self.scratch, at),
        }
        Ok(())
    }
}
