//! Online softmax of one row, whose logits arrive in blocks of keys.

use inkwell::values::PointerValue;
use xla_hlo::ops::UnaryOp;
use xla_hlo::{ElementType, Error, Result};

use super::emit::{Block, QueryRun};
use crate::elemental::{self, Value};
use crate::fused::contraction::batch_matmul::Panel;
use crate::fused::contraction::groups::Groups;
use crate::fused::contraction::tiling::within;
use crate::fused::core::address::Number;
use crate::fused::core::convolution::zero;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::lanes::{Lanes, Scalar};

/// Place of a row's first score, and the number of lanes to process it with.
type Row<'a> = (&'a AffineExpr, u32);

impl<'e, 'ctx, 'm> QueryRun<'_, 'ctx, 'm> {
    /// Replaces the scores of a row of the tile by exponentials of logits relative to the largest one so far, and
    /// updates the row's state.
    ///
    /// As long as all logits are minus infinity, exponentials and their sum are 0. If that holds for the whole row,
    /// 0 / 0 is the NaN that a softmax of such a row returns. NaN logits do not count for the largest one; they, and
    /// infinity minus infinity, are NaN exponentials, and so are the row's sums.
    pub fn softmax(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        block: &Block<'_, 'ctx, 'm>,
        (tile, row): (&AffineExpr, &AffineExpr),
        query: &AffineExpr,
    ) -> Result<()> {
        let (tiles, memory) = (block.tiles, self.memory);
        let group = tiles.results.groups.map_or(1, Groups::size);
        let width = within(s.emitter.target().lanes(32).into(), tiles.keys).max(group) as u32;
        let first = row.clone().scaled(tiles.pitch() as i64);
        let largest = self.logits(s, block, (&first, width), query)?;
        let number = tile.clone().scaled(tiles.scores.rows as i64).plus(row);
        let earlier = memory.largest.number(s, &number)?;
        let largest = across(largest, |a, b| a.greater(b)).greater(earlier);
        let reference = largest.ne(f64::NEG_INFINITY).select(largest, 0.0);
        let scale = exponential(s, earlier - reference)?;
        let sum = self.exponentials(s, block, (&first, width), (row, reference))?;
        let total = memory.totals.number(s, &number)?;
        let total = total.fma(scale, across(sum, |a, b| a + b));
        memory.largest.put(s, &number, &[largest])?;
        memory.totals.put(s, &number, &[total])?;
        memory.scales.put(s, row, &[scale])
    }

    /// Replaces the scores of a row, stored from `first` on, by logits. Returns the largest ones in lanes.
    fn logits(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        block: &Block<'_, 'ctx, 'm>,
        (first, width): Row<'_>,
        query: &AffineExpr,
    ) -> Result<Lanes<'e, 'ctx>> {
        let (function, own) = (self.attention.logits(), self.coordinates(query));
        let least = zero(s.emitter, ElementType::F32).splat(width).lanes().constant(f64::NEG_INFINITY);
        let range = s.full_range(block.tiles.keys, width);
        let raws = s.for_each(range, vec![least.raw()], &mut |s, key, carried| {
            let key = AffineExpr::symbol(key);
            let (memory, place) = (self.memory.logits.memory()?, first_lane(s, &first.clone().plus(&key))?);
            let score = s.emitter.load_lanes(memory, place, Scalar::F32, width, None);
            let column = key.clone().plus(&block.scores.first_column);
            let index = function.index_at(&self.batch, &own, &column);
            let logit = function.value(s, &index, &[Value::new(ElementType::F32, score)])?;
            let logit = s.existing_lanes(&[key]).map_or(logit, |exist| exist.select(logit, least));
            s.emitter.store_lanes(logit, memory, place, None);
            Ok(vec![logit.greater(s.emitter.lanes(carried[0])).raw()])
        })?;
        Ok(s.emitter.lanes(raws[0]))
    }

    /// Replaces the logits of a row by exponentials, and packs them in groups if the products need these. Returns their
    /// sums in lanes.
    fn exponentials(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        block: &Block<'_, 'ctx, 'm>,
        (first, width): Row<'_>,
        (row, reference): (&AffineExpr, Lanes<'e, 'ctx>),
    ) -> Result<Lanes<'e, 'ctx>> {
        let tiles = &block.tiles.results;
        let none = zero(s.emitter, ElementType::F32).splat(width).lanes();
        let range = s.full_range(block.tiles.keys, width);
        let raws = s.for_each(range, vec![none.raw()], &mut |s, key, carried| {
            let key = AffineExpr::symbol(key);
            let (memory, place) = (self.memory.logits.memory()?, first_lane(s, &first.clone().plus(&key))?);
            let logit = s.emitter.load_lanes(memory, place, Scalar::F32, width, None);
            let value = exponential(s, logit - reference.splat(width))?;
            let value = s.existing_lanes(std::slice::from_ref(&key)).map_or(value, |exist| exist.select(value, none));
            match tiles.groups {
                Some(groups) => {
                    let joined = groups.instruction.joined(0, Value::new(ElementType::F32, value))?;
                    let number = first_lane(s, &key)?.lshr(i64::from(groups.size().ilog2()));
                    let start = s.number_of(&row.clone().scaled(tiles.pitch() as i64))?;
                    let place = s.lanes_of(start) + number;
                    s.emitter.store_lanes(joined, block.results.panels[0].memory()?, place, None);
                }
                None => s.emitter.store_lanes(value, memory, place, None),
            }
            Ok(vec![(s.emitter.lanes(carried[0]) + value).raw()])
        })?;
        Ok(s.emitter.lanes(raws[0]))
    }
}

impl<'ctx> Panel<'ctx> {
    /// Returns the memory of real elements.
    pub(super) fn memory(&self) -> Result<PointerValue<'ctx>> {
        let first = self.arrays.first().map(|&(array, _)| array);
        first.ok_or_else(|| Error::internal("an attention's scratch memory is empty"))
    }
}

/// Returns the number of the first lane of a coordinate.
fn first_lane<'e, 'ctx>(s: &mut FusedEmitter<'e, 'ctx, '_>, at: &AffineExpr) -> Result<Lanes<'e, 'ctx>> {
    match s.number_of(at)? {
        Number::Uniform(base) | Number::Strided { base, .. } => Ok(base),
        Number::Varying(_) => Err(Error::internal("the keys of an attention are not consecutive")),
    }
}

fn exponential<'e, 'ctx>(s: &FusedEmitter<'e, 'ctx, '_>, x: Lanes<'e, 'ctx>) -> Result<Lanes<'e, 'ctx>> {
    Ok(elemental::unary(s.emitter, UnaryOp::Exponential, Value::new(ElementType::F32, x))?.lanes())
}

/// Combines all lanes.
fn across<'e, 'ctx>(
    mut lanes: Lanes<'e, 'ctx>,
    combine: impl Fn(Lanes<'e, 'ctx>, Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx>,
) -> Lanes<'e, 'ctx> {
    while lanes.width() > 1 {
        let half = lanes.width() / 2;
        lanes = combine(lanes.slice(0, half), lanes.slice(half, half));
    }
    lanes
}
