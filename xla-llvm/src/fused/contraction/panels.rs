//! Packing: copies a part of an operand to scratch memory, converted to the accumulator type and ordered as tiles read
//! it.

use xla_hlo::Result;

use crate::elemental::Value;
use crate::fused::contraction::batch_matmul::{BatchMatmul, Panel};
use crate::fused::contraction::matmul::Along;
use crate::fused::contraction::tiling::{Place, within};
use crate::fused::core::convolution::{converted, zero};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Symbol};
use crate::fused::tuning::register_tiles::LARGEST_BLOCK;
use crate::fused::value::SymbolValue;
use crate::lanes::Lanes;

impl<'ctx> Panel<'ctx> {
    /// Stores neighbouring elements at a place.
    pub fn put<'e>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        place: &AffineExpr,
        values: &[Lanes<'e, 'ctx>],
    ) -> Result<()> {
        let place = s.number_of(place)?;
        let place = s.lanes_of(place);
        for (&(array, _), &lanes) in self.arrays.iter().zip(values) {
            s.emitter.store_lanes(lanes, array, place, None);
        }
        Ok(())
    }
}

impl<'e, 'ctx, 'm> BatchMatmul<'_, 'ctx, 'm> {
    /// Packs the rows of a tile, given the first one: contiguous along K, or step by step.
    pub fn pack_rows(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, row: &AffineExpr) -> Result<()> {
        let (tiles, panel) = (self.tiles, &self.panels[0]);
        if let Some(groups) = tiles.groups {
            return self.pack_row_groups(s, row, groups);
        }
        if tiles.places[0] == Place::Panel(Along::K) {
            let pitch = tiles.pitch() as i64;
            let width = self.width(s, 0, tiles.packing[0].extent);
            let rows = s.full_range(tiles.rows, 1);
            return s.turns(rows, &mut |s, number| {
                let row = row.clone().plus(number);
                self.along_k(s, 0, width, &mut |s, sums| {
                    let value = self.value(s, 0, (&row, sums), width)?;
                    let place = number.clone().scaled(pitch).plus(&self.first_step(s, 0, sums)?);
                    panel.put(s, &place, &parts(value))
                })
            });
        }
        let width = self.width(s, 0, tiles.rows);
        self.along_k(s, 0, 1, &mut |s, sums| {
            s.pieces(tiles.rows, width.into(), &mut |s, number| {
                let row = s.lanes_from(&row.clone().plus(number), width, tiles.axes[0].extent)?;
                let value = self.value(s, 0, (&row, sums), width)?;
                let place = tiles.packing[0].step(sums).scaled(tiles.rows as i64).plus(number);
                panel.put(s, &place, &parts(value))
            })
        })
    }

    /// Packs a panel of columns step by step, given its number and its first column.
    pub fn pack_columns(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        panel: &AffineExpr,
        column: &AffineExpr,
    ) -> Result<()> {
        let tiles = self.tiles;
        if let Some(groups) = tiles.groups {
            return self.pack_column_groups(s, (panel, column), groups);
        }
        let extent = tiles.columns().min(tiles.axes[1].extent);
        let block = within(tiles.lanes.min(LARGEST_BLOCK), tiles.packing[1].extent) as u32;
        if tiles.places[1] == Place::Panel(Along::K)
            && block > 1
            && self.matmul.neighbours[tiles.sides[1] as usize].run > 1
        {
            return self.along_k(s, 1, block, &mut |s, sums| {
                s.pieces(extent, block.into(), &mut |s, number| {
                    self.transpose_block(s, (panel, number), (&column.clone().plus(number), sums), block)
                })
            });
        }
        let width = self.width(s, 1, tiles.lanes);
        self.along_k(s, 1, 1, &mut |s, sums| {
            s.pieces(extent, width.into(), &mut |s, number| {
                let column = s.lanes_from(&column.clone().plus(number), width, tiles.axes[1].extent)?;
                let value = self.value(s, 1, (&column, sums), width)?;
                let place = self.place(panel, &tiles.packing[1].step(sums)).plus(number);
                self.panels[1].put(s, &place, &parts(value))
            })
        })
    }

    /// Packs a square block of columns and steps that is contiguous along K, transposing it in registers.
    fn transpose_block(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (panel, number): (&AffineExpr, &AffineExpr),
        (column, sums): (&AffineExpr, &[AffineExpr]),
        block: u32,
    ) -> Result<()> {
        let mut columns = Vec::with_capacity(block as usize);
        for lane in 0..block {
            columns.push(parts(self.value(s, 1, (&column.clone().shifted(lane.into()), sums), block)?));
        }
        let count = self.panels[1].arrays.len();
        let turned = |part: usize| Lanes::transposed(columns.iter().map(|parts| parts[part]).collect(), 1);
        let turned: Vec<Vec<Lanes<'e, 'ctx>>> = (0..count).map(turned).collect();
        let first = self.first_step(s, 1, sums)?;
        for step in 0..block as usize {
            let place = self.place(panel, &first.clone().shifted(step as i64)).plus(number);
            let values: Vec<Lanes<'e, 'ctx>> = turned.iter().map(|steps| steps[step]).collect();
            self.panels[1].put(s, &place, &values)?;
        }
        Ok(())
    }

    /// Returns the place of a step's first column in a panel.
    pub fn place(&self, panel: &AffineExpr, step: &AffineExpr) -> AffineExpr {
        panel.clone().scaled(self.tiles.depth as i64).plus(step).scaled(self.tiles.columns() as i64)
    }

    /// Returns the number of the first of neighbouring steps.
    fn first_step(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, which: usize, sums: &[AffineExpr]) -> Result<AffineExpr> {
        let Some((inner, outer)) = sums.split_last() else { return Ok(AffineExpr::default()) };
        let number = s.first_lane(inner)?;
        Ok(self.tiles.packing[which].step(&[outer, &[number]].concat()))
    }

    /// Returns the number of lanes to pack with along an extent.
    pub fn width(&self, s: &FusedEmitter<'e, 'ctx, 'm>, which: usize, extent: u64) -> u32 {
        let side = self.tiles.sides[which] as usize;
        if self.matmul.neighbours[side].run == 1 {
            return 1;
        }
        let ty = self.matmul.accumulator_type.real_part();
        within(s.emitter.target().lanes(8 * ty.byte_width() as u32).into(), extent) as u32
    }

    /// Runs `body` for all of K in vectors of `width` steps; the last one may overlap the one before.
    fn along_k(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        which: usize,
        width: u32,
        body: &mut dyn FnMut(&mut FusedEmitter<'e, 'ctx, 'm>, &[AffineExpr]) -> Result<()>,
    ) -> Result<()> {
        let k = &self.tiles.packing[which];
        s.nested(&k.outer, 1, &mut Vec::new(), Vec::new(), &mut |s, outer, _| {
            s.pieces(k.extent, width.into(), &mut |s, first| {
                let inner = s.lanes_from(first, width, k.extent)?;
                body(s, &[outer, &[inner]].concat())
            })?;
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// Loads an operand's element at an index, or one per lane of the index, converted for accumulation.
    fn value(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        which: usize,
        at: (&AffineExpr, &[AffineExpr]),
        width: u32,
    ) -> Result<Value<'e, 'ctx>> {
        let value = self.loaded(s, which, at, width)?;
        self.computed(s, value)
    }

    /// Loads an operand's element at an index, or one per lane of the index.
    pub fn loaded(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        which: usize,
        (free, sums): (&AffineExpr, &[AffineExpr]),
        width: u32,
    ) -> Result<Value<'e, 'ctx>> {
        let operand = self.matmul.operands[self.tiles.sides[which] as usize];
        let ty = s.graph()[operand].shape().expect_array()?.element_type();
        let (mut condition, k) = (None, &self.tiles.packing[which]);
        let index = self.index(s, which, (free, k, sums), &mut condition)?;
        let condition = condition.filter(|_| !self.tiles.whole[which]);
        let none = zero(s.emitter, ty).splat(width);
        let Some(guard) = condition.filter(|guard| guard.mask.width() == 1) else {
            return Ok(s.choose(condition, width, operand, &index, none)?.splat(width));
        };
        // Use a branch instead of masked lanes, since all lanes exist or none does.
        let raws = s.when(guard.mask, &none.raws(), |s| {
            let Some((inner, outer)) = sums.split_last() else { return Ok(none.raws()) };
            let inner = s.renewed(inner)?;
            let index = self.index(s, which, (free, k, &[outer, &[inner]].concat()), &mut None)?;
            Ok(s.element(operand, &index)?.splat(width).raws())
        })?;
        Ok(Value::from_raws(s.emitter, ty, &raws))
    }

    /// Converts a value of an operand to the accumulator type.
    pub fn computed(&self, s: &FusedEmitter<'e, 'ctx, 'm>, value: Value<'e, 'ctx>) -> Result<Value<'e, 'ctx>> {
        let value = converted(s.emitter, value, self.matmul.element_type)?;
        converted(s.emitter, value, self.matmul.accumulator_type)
    }
}

/// Returns the numbers in a value: one, or a real and an imaginary part.
pub(crate) fn parts<'e, 'ctx>(value: Value<'e, 'ctx>) -> Vec<Lanes<'e, 'ctx>> {
    [Some(value.stored_lanes()), value.imaginary()].into_iter().flatten().collect()
}

impl<'e, 'ctx> FusedEmitter<'e, 'ctx, '_> {
    /// Returns a coordinate of `width` consecutive lanes from `first` on.
    pub(crate) fn lanes_from(&mut self, first: &AffineExpr, width: u32, extent: u64) -> Result<AffineExpr> {
        if width == 1 {
            return Ok(first.clone());
        }
        let number = self.number_of(first)?;
        let (value, level) = (SymbolValue::Lane { base: self.lanes_of(number), width, mask: None }, self.depth());
        Ok(AffineExpr::symbol(self.define(Symbol { extent: Some(extent), level }, value)))
    }

    /// Returns an equal coordinate at the current level, so that dependent code is not hoisted out of it.
    fn renewed(&mut self, expr: &AffineExpr) -> Result<AffineExpr> {
        let level = self.depth();
        let mut same = AffineExpr::constant(expr.offset());
        for (id, c) in expr.terms() {
            let (Symbol { extent, .. }, value) = (self.symbols.get(id), self.symbol_value(id));
            same = same.plus(&AffineExpr::symbol(self.define(Symbol { extent, level }, value)).scaled(c));
        }
        if same.level(&self.symbols) < level {
            let number = self.number_of(&same)?;
            let number = self.lanes_of(number);
            same = AffineExpr::symbol(self.uniform_symbol(number, None));
        }
        Ok(same)
    }

    /// Returns the first lane of a coordinate.
    fn first_lane(&mut self, expr: &AffineExpr) -> Result<AffineExpr> {
        let mut first = AffineExpr::constant(expr.offset());
        for (id, c) in expr.terms() {
            let term = match self.symbol_value(id) {
                SymbolValue::Lane { base, .. } => {
                    let symbol = self.symbols.get(id);
                    AffineExpr::symbol(self.define(symbol, SymbolValue::Uniform(base)))
                }
                SymbolValue::Uniform(_) | SymbolValue::Varying { .. } => AffineExpr::symbol(id),
            };
            first = first.plus(&term.scaled(c));
        }
        Ok(first)
    }
}
