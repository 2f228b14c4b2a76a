//! Packing of groups of K: 32-bit lanes with the neighbouring steps that a dot-product instruction multiplies at once.

use xla_hlo::Result;

use crate::elemental::Value;
use crate::fused::contraction::batch_matmul::BatchMatmul;
use crate::fused::contraction::groups::Groups;
use crate::fused::contraction::matmul::Along;
use crate::fused::contraction::tiling::{Place, within};
use crate::fused::core::convolution::zero;
use crate::fused::core::window::{raws_of, values_of};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::tuning::register_tiles::LARGEST_BLOCK;
use crate::lanes::Lanes;

/// Neighbouring groups along K from a step on.
#[derive(Clone, Copy)]
struct Piece<'a> {
    /// Counters of the outer loops over K.
    outer: &'a [AffineExpr],
    /// Number of the first group in the innermost loop.
    first: &'a AffineExpr,
    /// Number of elements of each group; fewer than its size only in the last one.
    elements: u64,
}

impl<'e, 'ctx, 'm> BatchMatmul<'_, 'ctx, 'm> {
    /// Packs the rows of a tile like [`BatchMatmul::pack_rows`].
    pub fn pack_row_groups(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, row: &AffineExpr, groups: Groups) -> Result<()> {
        let tiles = self.tiles;
        if tiles.places[0] == Place::Panel(Along::K) {
            let pitch = tiles.pitch() as i64;
            let width = self.width(s, 0, groups.full());
            let rows = s.full_range(tiles.rows, 1);
            return s.turns(rows, &mut |s, number| {
                let row = row.clone().plus(number);
                self.along_groups(s, groups, width, &mut |s, piece, width| {
                    let lanes = self.groups_along_k(s, 0, &row, (groups, piece), width)?;
                    let place = number.clone().scaled(pitch).plus(&self.group_number(piece));
                    self.panels[0].put(s, &place, &[lanes])
                })
            });
        }
        let width = self.width(s, 0, tiles.rows);
        self.along_groups(s, groups, 1, &mut |s, piece, _| {
            s.pieces(tiles.rows, width.into(), &mut |s, number| {
                let row = s.lanes_from(&row.clone().plus(number), width, tiles.axes[0].extent)?;
                let lanes = self.groups_across(s, 0, &row, (groups, piece), width)?;
                let place = self.group_number(piece).scaled(tiles.rows as i64).plus(number);
                self.panels[0].put(s, &place, &[lanes])
            })
        })
    }

    /// Packs a panel of columns like [`BatchMatmul::pack_columns`], with the offsets of its sums.
    pub fn pack_column_groups(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (panel, column): (&AffineExpr, &AffineExpr),
        groups: Groups,
    ) -> Result<()> {
        let tiles = self.tiles;
        let extent = tiles.columns().min(tiles.axes[1].extent);
        let block = within(tiles.lanes.min(LARGEST_BLOCK), groups.full()) as u32;
        let is_along_k =
            tiles.places[1] == Place::Panel(Along::K) && self.matmul.neighbours[tiles.sides[1] as usize].run > 1;
        let (block, across) = if is_along_k { (block, 1) } else { (1, self.width(s, 1, tiles.lanes)) };
        self.along_groups(s, groups, block, &mut |s, piece, block| {
            let width = if block > 1 { block } else { across };
            s.pieces(extent, width.into(), &mut |s, number| {
                let column = column.clone().plus(number);
                if block > 1 {
                    return self.transpose_groups(s, (panel, number), &column, (groups, piece), block);
                }
                let column = s.lanes_from(&column, width, tiles.axes[1].extent)?;
                let lanes = self.groups_across(s, 1, &column, (groups, piece), width)?;
                let place = self.place(panel, &self.group_number(piece)).plus(number);
                self.panels[1].put(s, &place, &[lanes])
            })
        })?;
        if groups.instruction.offsets_rows() { self.pack_offsets(s, panel, groups) } else { Ok(()) }
    }

    /// Packs a square block of columns and groups that is contiguous along K, transposing it in registers.
    fn transpose_groups(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (panel, number): (&AffineExpr, &AffineExpr),
        column: &AffineExpr,
        (groups, piece): (Groups, Piece<'_>),
        block: u32,
    ) -> Result<()> {
        let columns = (0..block).map(|lane| {
            let column = column.clone().shifted(lane.into());
            self.groups_along_k(s, 1, &column, (groups, piece), block)
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let first = self.group_number(piece);
        for (step, lanes) in (0..).zip(Lanes::transposed(columns, 1)) {
            let place = self.place(panel, &first.clone().shifted(step)).plus(number);
            self.panels[1].put(s, &place, &[lanes])?;
        }
        Ok(())
    }

    /// Stores the values that the sums of a panel's columns start from, so that they are not changed by the rows'
    /// offset.
    fn pack_offsets(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, panel: &AffineExpr, groups: Groups) -> Result<()> {
        let (tiles, ty) = (self.tiles, self.matmul.accumulator_type);
        let lanes = tiles.lanes as u32;
        let starts: Vec<i64> = tiles.starts().into_iter().map(|start| start as i64).collect();
        let types = vec![ty; starts.len()];
        let zeros = vec![zero(s.emitter, ty).splat(lanes); starts.len()];
        let raws = s.nested(&[tiles.depth], 1, &mut Vec::new(), raws_of(&zeros), &mut |s, step, carried| {
            let totals = values_of(s, &types, carried);
            let step = step.first().cloned().unwrap_or_default();
            let columns = self.take(s, 1, &self.place(panel, &step), (starts.iter().copied(), lanes))?;
            let add = |(&total, column): (&Value<'e, 'ctx>, &Value<'e, 'ctx>)| {
                groups.instruction.add_offset(total, column.lanes())
            };
            Ok(raws_of(&totals.iter().zip(&columns).map(add).collect::<Vec<_>>()))
        })?;
        for (total, &start) in values_of(s, &types, &raws).into_iter().zip(&starts) {
            let place = panel.clone().scaled(tiles.columns() as i64).shifted(start);
            self.panels[3].put(s, &place, &[total.lanes() * -1])?;
        }
        Ok(())
    }

    /// Loads `width` neighbouring groups along K.
    fn groups_along_k(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        which: usize,
        free: &AffineExpr,
        (groups, piece): (Groups, Piece<'_>),
        width: u32,
    ) -> Result<Lanes<'e, 'ctx>> {
        if piece.elements < groups.size() {
            return self.groups_across(s, which, free, (groups, piece), width);
        }
        let first = piece.first.clone().scaled(groups.size() as i64);
        let count = width * groups.size() as u32;
        let inner = s.lanes_from(&first, count, groups.extent)?;
        let elements = self.loaded(s, which, (free, &[piece.outer, &[inner]].concat()), count)?;
        groups.instruction.joined(which, elements)
    }

    /// Loads one group along K of `width` neighbouring rows or columns.
    fn groups_across(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        which: usize,
        free: &AffineExpr,
        (groups, piece): (Groups, Piece<'_>),
        width: u32,
    ) -> Result<Lanes<'e, 'ctx>> {
        let first = piece.first.clone().scaled(groups.size() as i64);
        let mut elements = Vec::new();
        for number in 0..piece.elements {
            let sums = [piece.outer, &[first.clone().shifted(number as i64)]].concat();
            elements.push(self.loaded(s, which, (free, &sums), width)?);
        }
        let none = zero(s.emitter, xla_hlo::ElementType::S32).splat(width).lanes();
        Ok(groups.instruction.combined(which, &elements)?.unwrap_or(none))
    }

    /// Returns the number of the first group of a piece in all of K.
    fn group_number(&self, piece: Piece<'_>) -> AffineExpr {
        self.tiles.packing[0].step(&[piece.outer, std::slice::from_ref(piece.first)].concat())
    }

    /// Runs `body` for all groups of K in pieces of `width` groups, and for the last group alone if it is not full.
    fn along_groups(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        groups: Groups,
        width: u32,
        body: &mut dyn FnMut(&mut FusedEmitter<'e, 'ctx, 'm>, Piece<'_>, u32) -> Result<()>,
    ) -> Result<()> {
        let outer = &self.tiles.packing[0].outer;
        s.nested(outer, 1, &mut Vec::new(), Vec::new(), &mut |s, outer, _| {
            if groups.full() > 0 {
                s.pieces(groups.full(), width.into(), &mut |s, first| {
                    body(s, Piece { outer, first, elements: groups.size() }, width)
                })?;
            }
            if groups.rest() > 0 {
                let first = &AffineExpr::constant(groups.full() as i64);
                body(s, Piece { outer, first, elements: groups.rest() }, 1)?;
            }
            Ok(Vec::new())
        })?;
        Ok(())
    }
}
