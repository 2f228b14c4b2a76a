//! One tile of queries and one block of keys: scores, softmax, products with the values; and the results of a tile.

use xla_hlo::ops::BinaryOp;
use xla_hlo::{ElementType, Result};

use super::emit::{Block, QueryRun, panels};
use crate::elemental::{self, Value};
use crate::fused::contraction::batch_matmul::Panel;
use crate::fused::contraction::panels::parts;
use crate::fused::contraction::tiling::RegisterTiles;
use crate::fused::core::convolution::{converted, zero};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::lanes::{Lanes, Scalar};

impl<'e, 'ctx, 'm> QueryRun<'_, 'ctx, 'm> {
    /// Sets the state of all tiles of the run: no sums, and the largest logit minus infinity.
    pub fn clear(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>) -> Result<()> {
        let (plan, memory) = (self.plan, self.memory);
        let rows = plan.run * plan.full.scores.rows;
        let zero = zero(s.emitter, ElementType::F32);
        let lanes = plan.full.results.lanes;
        fill(s, memory.sums(), (plan.run * plan.full.sums(), lanes), zero.lanes())?;
        fill(s, &memory.totals, (rows, 1), zero.lanes())?;
        fill(s, &memory.largest, (rows, 1), zero.lanes().constant(f64::NEG_INFINITY))
    }

    /// Adds a block of keys to the state of a tile.
    pub fn tile(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        block: &Block<'_, 'ctx, 'm>,
        tile: &AffineExpr,
    ) -> Result<()> {
        let query = self.first_query(s, tile)?;
        let Block { tiles, scores, results } = block;
        let zeros = vec![zero(s.emitter, ElementType::F32).splat(tiles.scores.lanes as u32); sum_count(&tiles.scores)];
        scores.pack_rows(s, &query)?;
        panels(s, scores, &mut |s, panel, column| {
            let sums = scores.sums(s, &query, (panel, column), &zeros)?;
            let starts = tiles.scores.starts();
            for (row, sums) in (0..).zip(sums.chunks(starts.len())) {
                for (&start, &sum) in starts.iter().zip(sums) {
                    let place = column.clone().shifted(row * tiles.pitch() as i64 + start as i64);
                    self.memory.logits.put(s, &place, &parts(sum))?;
                }
            }
            Ok(())
        })?;
        let rows = s.full_range(tiles.scores.rows, 1);
        s.turns(rows, &mut |s, row| self.softmax(s, block, (tile, row), &query.clone().plus(row)))?;
        panels(s, results, &mut |s, panel, column| {
            let place = self.place(tile, panel);
            let earlier = results.kept(s, &place)?;
            let earlier = self.rescaled(s, &tiles.results, &earlier)?;
            let sums = results.sums(s, &AffineExpr::default(), (panel, column), &earlier)?;
            results.keep(s, &place, &sums)
        })
    }

    /// Multiplies the earlier sums of a tile by the factors of their rows.
    fn rescaled(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        tiles: &RegisterTiles,
        sums: &[Value<'e, 'ctx>],
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let mut scaled = Vec::with_capacity(sums.len());
        for (row, sums) in (0..).zip(sums.chunks(tiles.vectors as usize)) {
            let scale = self.memory.scales.number(s, &AffineExpr::constant(row))?;
            for &sum in sums {
                let scale = Value::new(ElementType::F32, scale.splat(sum.width()));
                scaled.push(elemental::binary(s.emitter, BinaryOp::Multiply, sum, scale)?);
            }
        }
        Ok(scaled)
    }

    /// Stores the results of a tile: its sums divided by the sums of exponentials.
    pub fn finish(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, tile: &AffineExpr) -> Result<()> {
        let tiles = &self.plan.full.results;
        let query = self.first_query(s, tile)?;
        let panels = s.full_range(tiles.block, 1);
        let rows = s.full_range(tiles.rows, 1);
        s.turns(panels, &mut |s, panel| {
            let column = s.first_of(panel, tiles.columns(), tiles.axes[1].extent)?;
            s.turns(rows, &mut |s, row| {
                let number = tile.clone().scaled(tiles.rows as i64).plus(row);
                let total = self.memory.totals.number(s, &number)?;
                let sums = self.place(tile, panel).plus(&row.clone().scaled(tiles.columns() as i64));
                self.store_row(s, &query.clone().plus(row), (&column, &sums), total)
            })
        })
    }

    /// Stores the results of a query in one panel of columns, given the place of its sums.
    fn store_row(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        query: &AffineExpr,
        (column, sums): (&AffineExpr, &AffineExpr),
        total: Lanes<'e, 'ctx>,
    ) -> Result<()> {
        let tiles = &self.plan.full.results;
        let lanes = tiles.lanes as u32;
        for (number, start) in (0..).zip(tiles.starts()) {
            let place = sums.clone().shifted(number * tiles.lanes as i64);
            let sum = Value::new(ElementType::F32, self.memory.sums().numbers(s, &place, lanes)?);
            let total = Value::new(ElementType::F32, total.splat(lanes));
            let value = elemental::binary(s.emitter, BinaryOp::Divide, sum, total)?;
            let value = converted(s.emitter, value, self.attention.result.element_type)?;
            let value = converted(s.emitter, value, self.result.shape.element_type())?;
            let element = s.lanes_from(&column.clone().shifted(start as i64), lanes, tiles.axes[1].extent)?;
            let index = self.result_index(query, &element);
            s.store(self.result, &index, value)?;
        }
        Ok(())
    }

    /// Returns the place of the sums of a tile in one panel of columns.
    fn place(&self, tile: &AffineExpr, panel: &AffineExpr) -> AffineExpr {
        let tiles = &self.plan.full.results;
        let number = tile.clone().scaled(tiles.block as i64).plus(panel);
        number.scaled((tiles.rows * tiles.columns()) as i64)
    }
}

/// Returns the number of vectors of sums of a tile.
fn sum_count(tiles: &RegisterTiles) -> usize {
    (tiles.rows * tiles.vectors) as usize
}

/// Stores a number to the first `count` places, a multiple of `lanes`.
fn fill<'e, 'ctx>(
    s: &mut FusedEmitter<'e, 'ctx, '_>,
    panel: &Panel<'ctx>,
    (count, lanes): (u64, u64),
    number: Lanes<'e, 'ctx>,
) -> Result<()> {
    let range = s.full_range(count / lanes, 1);
    s.turns(range, &mut |s, turn| panel.put(s, &turn.clone().scaled(lanes as i64), &[number.splat(lanes as u32)]))
}

impl<'ctx> Panel<'ctx> {
    /// Loads one f32 number.
    pub(super) fn number<'e>(&self, s: &mut FusedEmitter<'e, 'ctx, '_>, place: &AffineExpr) -> Result<Lanes<'e, 'ctx>> {
        self.numbers(s, place, 1)
    }

    /// Loads adjacent f32 numbers.
    pub(super) fn numbers<'e>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        place: &AffineExpr,
        lanes: u32,
    ) -> Result<Lanes<'e, 'ctx>> {
        let place = s.number_of(place)?;
        let place = s.lanes_of(place);
        Ok(s.emitter.load_lanes(self.memory()?, place, Scalar::F32, lanes, None))
    }
}
