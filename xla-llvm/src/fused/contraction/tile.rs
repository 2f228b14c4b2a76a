//! A register tile: the loop over K, which adds the outer product of a left operand's column and a right operand's row.

use inkwell::values::{BasicValueEnum, PointerValue};
use xla_hlo::{Error, Result};

use crate::elemental::{self, Value};
use crate::fused::contraction::batch_matmul::BatchMatmul;
use crate::fused::contraction::matmul::Along;
use crate::fused::contraction::panels::parts;
use crate::fused::contraction::tiling::Place;
use crate::fused::core::address::strides_of;
use crate::fused::core::convolution::converted;
use crate::fused::core::window::{raws_of, values_of};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, position};
use crate::fused::value::Source;
use crate::lanes::Scalar;

impl<'e, 'ctx, 'm> BatchMatmul<'_, 'ctx, 'm> {
    /// Computes the sums of a tile row by row, given its first row, its panel and first column, and the initial sums.
    pub fn sums(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        row: &AffineExpr,
        (panel, column): (&AffineExpr, &AffineExpr),
        start: &[Value<'e, 'ctx>],
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        if self.tiles.k_lanes > 1 {
            return self.sums_along_k(s, [row, column]);
        }
        let types = vec![self.matmul.accumulator_type; start.len()];
        let raws =
            s.nested(&self.tiles.sums.loops(), 1, &mut Vec::new(), raws_of(start), &mut |s, sums, carried| {
                let mut totals = values_of(s, &types, carried);
                let columns = self.columns(s, (panel, column), sums)?;
                let rows = self.rows(s, row, sums)?;
                for (&row, totals) in rows.iter().zip(totals.chunks_mut(columns.len())) {
                    for (&column, total) in columns.iter().zip(totals) {
                        *total = self.add_products(s.emitter, *total, [row, column])?;
                    }
                }
                Ok(raws_of(&totals))
            })?;
        Ok(values_of(s, &types, &raws))
    }

    /// Loads the elements of the tile's rows at a step of K.
    fn rows(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        row: &AffineExpr,
        sums: &[AffineExpr],
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let tiles = self.tiles;
        let numbers = 0..tiles.rows as i64;
        match (tiles.places[0], tiles.groups) {
            (Place::Array, Some(groups)) => {
                let (near, step) = self.strip(s, 0, row, &self.element_of(sums, 0))?;
                let group = |number: i64| {
                    let elements = near.load(s, number * step, groups.size() as u32);
                    Ok(Value::new(self.packed_type(), groups.instruction.joined(0, elements)?))
                };
                numbers.map(group).collect()
            }
            (Place::Array, None) => {
                let (near, step) = self.strip(s, 0, row, sums)?;
                numbers.map(|number| self.computed(s, near.load(s, number * step, 1))).collect()
            }
            (Place::Panel(Along::K), _) => {
                let pitch = tiles.pitch() as i64;
                self.take(s, 0, &tiles.sums.step(sums), (numbers.map(|number| number * pitch), 1))
            }
            (Place::Panel(Along::Free), _) => {
                self.take(s, 0, &tiles.sums.step(sums).scaled(tiles.rows as i64), (numbers, 1))
            }
        }
    }

    /// Loads the elements of the tile's columns at a step of K.
    fn columns(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (panel, column): (&AffineExpr, &AffineExpr),
        sums: &[AffineExpr],
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let lanes = self.tiles.lanes as u32;
        let starts = self.tiles.starts().into_iter().map(|start| start as i64);
        match (self.tiles.places[1], self.tiles.groups) {
            (Place::Array, Some(groups)) => {
                let strips = (0..groups.size()).map(|number| {
                    let sums = self.element_of(sums, number);
                    Ok(self.strip(s, 1, column, &sums)?.0)
                });
                let strips = strips.collect::<Result<Vec<_>>>()?;
                let group = |start: i64| {
                    let elements: Vec<_> = strips.iter().map(|near| near.load(s, start, lanes)).collect();
                    let lanes = groups.instruction.combined(1, &elements)?;
                    let lanes = lanes.ok_or_else(|| Error::internal("a group of K steps has no elements"))?;
                    Ok(Value::new(self.packed_type(), lanes))
                };
                starts.map(group).collect()
            }
            (Place::Array, None) => {
                let (near, _) = self.strip(s, 1, column, sums)?;
                starts.map(|start| self.computed(s, near.load(s, start, lanes))).collect()
            }
            (Place::Panel(_), _) => self.take(s, 1, &self.place(panel, &self.tiles.sums.step(sums)), (starts, lanes)),
        }
    }

    /// Loads elements of a panel, `lanes` elements at each distance from a place.
    pub fn take(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        which: usize,
        place: &AffineExpr,
        (distances, lanes): (impl Iterator<Item = i64>, u32),
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let ty = if which < 2 { self.packed_type() } else { self.matmul.accumulator_type };
        let place = s.number_of(place)?;
        let place = s.lanes_of(place);
        let mut near = Vec::new();
        for &(array, scalar) in &self.panels[which].arrays {
            near.push((pointer(s.emitter.element_address(array, place, scalar))?, scalar));
        }
        let load = |distance: i64| {
            let part = |&(array, scalar): &(PointerValue<'ctx>, Scalar)| {
                s.emitter.load_lanes(array, s.number(distance), scalar, lanes, None).raw()
            };
            Value::from_raws(s.emitter, ty, &near.iter().map(part).collect::<Vec<_>>())
        };
        Ok(distances.map(load).collect())
    }

    /// Returns the address of an operand's element in its array, and the distance to the next row or column.
    pub fn strip(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        which: usize,
        free: &AffineExpr,
        sums: &[AffineExpr],
    ) -> Result<(Near<'ctx>, i64)> {
        let operand = self.matmul.operands[self.tiles.sides[which] as usize];
        let source = s.sources.get(&operand).cloned();
        let source = source.ok_or_else(|| {
            Error::internal(format!("matmul operand %{} is not in memory", s.graph()[operand].name()))
        })?;
        let strides = strides_of(&source.shape);
        let k = &self.tiles.sums;
        let first = position(&self.index(s, which, (free, k, sums), &mut None)?, &strides);
        let next = position(&self.index(s, which, (&free.clone().shifted(1), k, sums), &mut None)?, &strides);
        Ok((Near::new(s, &source, &first)?, next.offset() - first.offset()))
    }

    /// Loads the sums that an earlier block of K kept at a place.
    pub fn kept(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, place: &AffineExpr) -> Result<Vec<Value<'e, 'ctx>>> {
        let lanes = self.tiles.lanes;
        let starts = (0..self.tiles.rows * self.tiles.vectors).map(|number| (number * lanes) as i64);
        self.take(s, 2, place, (starts, lanes as u32))
    }

    /// Keeps sums at a place for the next block of K.
    pub fn keep(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, place: &AffineExpr, sums: &[Value<'e, 'ctx>]) -> Result<()> {
        for (number, &sum) in (0..).zip(sums) {
            let place = place.clone().shifted(number * self.tiles.lanes as i64);
            self.panels[2].put(s, &place, &parts(sum))?;
        }
        Ok(())
    }

    /// Stores sums as results, or the results that the kernel computes from them.
    pub fn store(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        [row, column]: [&AffineExpr; 2],
        sums: &[Value<'e, 'ctx>],
    ) -> Result<()> {
        if self.matmul.id != self.kernel.source.root {
            return self.store_computed(s, [row, column], sums);
        }
        let shape = &self.result.shape;
        let strides = strides_of(shape);
        let first = position(&self.result_index([row, column]), &strides);
        let next = position(&self.result_index([&row.clone().shifted(1), column]), &strides);
        let step = next.offset() - first.offset();
        let near = Near::new(s, self.result, &first)?;
        let starts = self.tiles.starts();
        for (number, sums) in (0..).zip(sums.chunks(starts.len())) {
            for (&start, &sum) in starts.iter().zip(sums) {
                let value = converted(s.emitter, sum, self.matmul.element_type)?;
                let value = converted(s.emitter, value, shape.element_type())?;
                near.store(s, number * step + start as i64, value);
            }
        }
        Ok(())
    }
}

impl<'e, 'ctx, 'm> BatchMatmul<'_, 'ctx, 'm> {
    /// Stores the results that the kernel computes from sums, while the sums are in registers (fused epilogue).
    fn store_computed(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        [row, column]: [&AffineExpr; 2],
        sums: &[Value<'e, 'ctx>],
    ) -> Result<()> {
        let (tiles, matmul) = (self.tiles, self.matmul);
        let starts = tiles.starts();
        let ty = s.graph()[matmul.id].shape().expect_array()?.element_type();
        for (number, sums) in (0..).zip(sums.chunks(starts.len())) {
            let row = row.clone().shifted(number);
            for (&start, &sum) in starts.iter().zip(sums) {
                let column = column.clone().shifted(start as i64);
                let columns = s.lanes_from(&column, tiles.lanes as u32, tiles.axes[1].extent)?;
                let index = self.result_index([&row, &columns]);
                let value = converted(s.emitter, sum, matmul.element_type)?;
                let value = converted(s.emitter, value, ty)?;
                s.values.insert((matmul.id, index.clone(), 0), vec![value]);
                self.kernel.store_all(s, &index)?;
            }
        }
        Ok(())
    }
}

/// Address in an array with neighbours at constant distances, which fold into the addressing modes of instructions.
pub(crate) struct Near<'ctx> {
    place: Source<'ctx>,
    distance: i64,
}

impl<'ctx> Near<'ctx> {
    fn new(s: &mut FusedEmitter<'_, 'ctx, '_>, source: &Source<'ctx>, at: &AffineExpr) -> Result<Near<'ctx>> {
        let distance = at.offset();
        let ty = source.shape.element_type();
        let parts = if ty.is_complex() { 2 } else { 1 };
        let number = s.number_of(&at.clone().shifted(-distance).scaled(parts))?;
        let address = s.emitter.element_address(source.base, s.lanes_of(number), elemental::stored_scalar(ty));
        Ok(Near { place: Source { base: pointer(address)?, shape: source.shape.clone() }, distance })
    }

    pub fn load<'e>(&self, s: &FusedEmitter<'e, 'ctx, '_>, distance: i64, lanes: u32) -> Value<'e, 'ctx> {
        let at = s.number(self.distance + distance);
        elemental::load(s.emitter, self.place.base, at, self.place.shape.element_type(), lanes, None)
    }

    fn store<'e>(&self, s: &FusedEmitter<'e, 'ctx, '_>, distance: i64, value: Value<'e, 'ctx>) {
        elemental::store(s.emitter, value, self.place.base, s.number(self.distance + distance), None);
    }
}

fn pointer(address: BasicValueEnum<'_>) -> Result<PointerValue<'_>> {
    match address {
        BasicValueEnum::PointerValue(pointer) => Ok(pointer),
        _ => Err(Error::internal("the address of one element is not a pointer")),
    }
}
