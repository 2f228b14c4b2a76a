//! Parts of a matmul along K, and the destination of their partial sums.

use inkwell::values::PointerValue;
use xla_hlo::{Error, Result};

use crate::elemental::{self, Value};
use crate::fused::contraction::matmul::{Matmul, MatmulSide};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, position, row_major_strides};
use crate::lanes::Lanes;

/// Cut of sums into parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cut {
    /// Number of parts, at least one. None is empty.
    pub parts: u64,
    /// Steps of the sum in each but the last, which may have fewer.
    pub size: u64,
}

impl Cut {
    /// Not at all.
    pub fn whole(depth: u64) -> Cut {
        Cut { parts: 1, size: depth }
    }

    /// Splits into about `wanted` parts, each a multiple of `multiple` steps, and of no fewer than `least`.
    pub fn new(depth: u64, wanted: u64, (multiple, least): (u64, u64)) -> Cut {
        let parts = wanted.min(depth / least.max(1)).max(1);
        let size = depth.div_ceil(parts).next_multiple_of(multiple);
        if size >= depth { Cut::whole(depth) } else { Cut { parts: depth.div_ceil(size), size } }
    }

    /// The part and the batch that a number of both stands for.
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

    /// The first step of a part, and the one after its last, of `depth` in all; counted in groups of `group`.
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
    /// Destination of sums of parts; those of whole sums are processed further.
    pub part: Option<Partial<'ctx>>,
}

/// Scratch memory for sums of parts: parts, then batches, rows and columns.
pub(crate) struct Partial<'ctx> {
    scratch: PointerValue<'ctx>,
    /// The number of the part and of the batch, together.
    number: AffineExpr,
}

impl<'a, 'ctx, 'm> Sink<'a, 'ctx, 'm> {
    /// Of a work item with that number of its part and its batch; the memory is needed for sums of parts.
    pub fn new(
        matmul: &'a Matmul<'m>,
        batch: &'a [AffineExpr],
        cut: Cut,
        (number, scratch): (&AffineExpr, Option<PointerValue<'ctx>>),
    ) -> Result<Self> {
        let part = match (cut.parts, scratch) {
            (1, _) => None,
            (_, Some(scratch)) => Some(Partial { scratch, number: number.clone() }),
            (_, None) => return Err(Error::internal("parts of sums without memory for them")),
        };
        Ok(Sink { matmul, batch, part })
    }
}

impl<'ctx> Partial<'ctx> {
    /// Stores neighbouring sums of a row, of which the row and the first column are given.
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
            // Its columns are a multiple of the width, and so is the row's beginning.
            _ => elemental::store_aligned(s.emitter, sum, self.scratch, at),
        }
        Ok(())
    }
}
