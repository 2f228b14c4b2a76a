//! Concatenations: a tree of branches over the operands, so that an element evaluates only the operands that contain
//! it.

use std::cell::Cell;

use xla_hlo::{ElementType, Error, InstrId, Result, Scalar};

use crate::elemental::{self, Value};
use crate::fused::core::address::{Number, widened};
use crate::fused::core::addressing::Addressing;
use crate::fused::emitter::{FusedEmitter, LocalPositions};
use crate::fused::loops::affine::{AffineExpr, Index};
use crate::fused::mode::Mode;
use crate::fused::tuning::{FEW_OPERANDS, threads};
use crate::fused::value::Guard;
use crate::lanes::Lanes;

/// Concatenation at an index of its result.
struct Place<'a> {
    element_type: ElementType,
    dimension: usize,
    index: &'a Index,
    width: u32,
}

/// Operand that is not empty, with its first and its last coordinate in the result.
pub(crate) struct Part {
    pub operand: InstrId,
    low: i64,
    high: i64,
}

impl Part {
    /// Returns the operand's index for an element of a concatenation along `dimension`. Adds the condition that the
    /// operand contains the element, unless it is the only one that may.
    pub fn inside<'m, A: Addressing<'m>>(
        &self,
        s: &mut A,
        (dimension, is_only): (usize, bool),
        index: &Index,
        conditions: &mut Option<A::Condition>,
    ) -> Result<Index> {
        let mut index = index.clone();
        let coordinate = index[dimension].clone().shifted(-self.low);
        if !is_only {
            s.require_up_to(conditions, &coordinate, self.high - self.low)?;
        }
        index[dimension] = coordinate;
        Ok(index)
    }
}

/// Returns the operands of a concatenation along `dimension` that may contain the element at an index.
pub(crate) fn parts_at<'m, A: Addressing<'m>>(
    s: &A,
    id: InstrId,
    dimension: usize,
    index: &Index,
) -> Result<Vec<Part>> {
    let graph = s.graph();
    let bounds = index[dimension].bounds(s.symbols());
    let mut parts = Vec::new();
    let mut start = 0i64;
    for &operand in graph[id].operands() {
        let size = graph[operand].shape().expect_array()?.dims()[dimension] as i64;
        let (low, high) = (start, start + size - 1);
        start += size;
        if size > 0 && bounds.is_none_or(|(least, greatest)| greatest >= low && least <= high) {
            parts.push(Part { operand, low, high });
        }
    }
    Ok(parts)
}

/// Whether to choose among operands by a branch instead of a select per lane, given the number of lanes along the
/// concatenated dimension and the number of operands up to which selects are preferred.
///
/// Lanes along the concatenated dimension need most of the operands within two vector lengths.
pub(crate) fn is_by_branch(parts: &[Part], lanes: u32, most_selected: usize) -> bool {
    let [first, .., last] = parts else { return false };
    let is_long = lanes == 1 || last.high - first.low >= 2 * i64::from(lanes);
    is_long && parts.len() > most_selected
}

/// Sides of a boundary between operands that the lanes of an index fall on.
enum Sides<'e, 'ctx> {
    /// All lanes are on one side; the condition holds if it is the lower one.
    One(Lanes<'e, 'ctx>),
    /// Conditions that any lane is on the lower side and that any is on the upper side, and the mask of the lower
    /// lanes.
    Both { lower: Lanes<'e, 'ctx>, upper: Lanes<'e, 'ctx>, mask: Lanes<'e, 'ctx> },
}

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Computes the element of a concatenation along `dimension`.
    pub(crate) fn concatenated(&mut self, id: InstrId, dimension: usize, index: &Index) -> Result<Value<'e, 'ctx>> {
        let graph = self.graph();
        let element_type = graph[id].shape().expect_array()?.element_type();
        let parts = parts_at(self, id, dimension, index)?;
        let place = Place { element_type, dimension, index, width: self.width(index) };
        if parts.is_empty() {
            // A guard excludes positions that are in no operand.
            let zero = elemental::constant(self.emitter, element_type, Scalar::zero(element_type));
            return Ok(zero.splat(place.width));
        }
        self.among(&parts, &place)
    }

    /// Computes the element from a range of neighbouring operands.
    fn among(&mut self, parts: &[Part], place: &Place<'_>) -> Result<Value<'e, 'ctx>> {
        if !self.branches(parts, place) {
            return self.selected(parts, place);
        }
        let (lower, upper) = parts.split_at(parts.len() / 2);
        let many = parts.len() > FEW_OPERANDS;
        match self.sides(&place.index[place.dimension], upper[0].low)? {
            Sides::One(condition) => self.either_value(
                place.element_type,
                condition,
                |s| s.in_branch(None, many, |s| s.among(lower, place)),
                |s| s.in_branch(None, many, |s| s.among(upper, place)),
            ),
            Sides::Both { lower: any_lower, upper: any_upper, mask } => {
                let zero = elemental::constant(self.emitter, place.element_type, Scalar::zero(place.element_type));
                let first = self.either_value(
                    place.element_type,
                    any_lower,
                    |s| s.in_branch(Some(mask), many, |s| s.among(lower, place)),
                    |_| Ok(zero.splat(place.width)),
                )?;
                self.either_value(
                    place.element_type,
                    any_upper,
                    |s| {
                        let second = s.in_branch(Some(!mask), many, |s| s.among(upper, place))?;
                        Ok(elemental::select_lanes(widened(mask, place.width), first, second))
                    },
                    |_| Ok(first),
                )
            }
        }
    }

    /// Whether to choose among operands by a branch. Threads keep several loads in flight, and threads that reduce
    /// together must not diverge.
    fn branches(&self, parts: &[Part], place: &Place<'_>) -> bool {
        let lanes = self.width(std::slice::from_ref(&place.index[place.dimension]));
        let most_selected = match &self.mode {
            Mode::Vector(_) => 1,
            Mode::Threads(mode) if mode.group.is_none() && mode.tile.is_none() => threads::MOST_SELECTED,
            Mode::Threads(_) => usize::MAX,
        };
        is_by_branch(parts, lanes, most_selected)
    }

    /// Computes the element by evaluating all operands, with a select per operand and lane.
    fn selected(&mut self, parts: &[Part], place: &Place<'_>) -> Result<Value<'e, 'ctx>> {
        let mut chosen: Option<Value<'e, 'ctx>> = None;
        for part in parts {
            let mut conditions = None;
            let index = part.inside(self, (place.dimension, parts.len() == 1), place.index, &mut conditions)?;
            chosen = Some(match chosen {
                // The first operand covers all lanes that no other claims: its guard is needed, but no select.
                None => self.guarded_element(part.operand, &index, conditions)?.splat(place.width),
                Some(other) => self.choose(conditions, place.width, part.operand, &index, other)?,
            });
        }
        chosen.ok_or_else(|| Error::internal("a concatenation has no operand at this index"))
    }

    /// Returns the sides of a boundary that a coordinate is on; coordinates below it are on the lower side.
    fn sides(&mut self, coordinate: &AffineExpr, boundary: i64) -> Result<Sides<'e, 'ctx>> {
        let number = self.number_of(coordinate)?;
        Ok(match number {
            Number::Uniform(at) => Sides::One(at.lt(boundary)),
            Number::Strided { base, stride, width } => {
                let last = base + stride * i64::from(width - 1);
                let (least, greatest) = if stride > 0 { (base, last) } else { (last, base) };
                let lanes = match coordinate.fits_32_bits(&self.symbols) {
                    true => base.trunc(32).splat(width) + self.emitter.lane_numbers(32, width) * stride,
                    false => self.lanes_of(number),
                };
                Sides::Both { lower: least.lt(boundary), upper: greatest.ge(boundary), mask: lanes.lt(boundary) }
            }
            Number::Varying(lanes) => {
                let mask = lanes.lt(boundary);
                Sides::Both { lower: mask.any(), upper: (!mask).any(), mask }
            }
        })
    }

    /// Runs `f` in a branch that is taken for the lanes of a mask, or for all lanes. Values computed by `f` stay in the
    /// branch. If there are `many` branches, addresses stay in it too, even if they are loop-invariant.
    fn in_branch<R>(
        &mut self,
        mask: Option<Lanes<'e, 'ctx>>,
        many: bool,
        f: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        let (outer, level) = (self.guard, self.depth());
        let wanted = (outer > 0).then(|| self.guards[outer - 1].mask);
        let always = self.number(0).mask(true);
        let mask = match (wanted, mask) {
            (Some(a), Some(b)) => {
                let width = a.width().max(b.width());
                widened(a, width) & widened(b, width)
            }
            (a, b) => a.or(b).unwrap_or(always),
        };
        self.guards.push(Guard { mask, level });
        self.guard = self.guards.len();
        let outer_branch = std::mem::replace(&mut self.branch, self.guard);
        if wanted.is_none() && mask.width() > 1 {
            self.guards.push(Guard { mask: always, level });
            self.any_lane.insert(self.guard, self.guards.len());
        }
        if many {
            self.local_positions.push(LocalPositions { level, known: Default::default() });
        }
        let result = f(self);
        if many {
            self.local_positions.pop();
        }
        (self.guard, self.branch) = (outer, outer_branch);
        result
    }

    /// Returns the value of `first` if the scalar condition holds, otherwise the value of `second`.
    fn either_value(
        &mut self,
        element_type: ElementType,
        condition: Lanes<'e, 'ctx>,
        first: impl FnOnce(&mut Self) -> Result<Value<'e, 'ctx>>,
        second: impl FnOnce(&mut Self) -> Result<Value<'e, 'ctx>>,
    ) -> Result<Value<'e, 'ctx>> {
        let stored = Cell::new(false);
        let raws = self.either(
            condition,
            |s| {
                let value = first(s)?;
                stored.set(value.is_stored());
                Ok(value.raws_in(stored.get()))
            },
            |s| second(s).map(|value| value.raws_in(stored.get())),
        )?;
        Ok(match &raws[..] {
            [lanes] if stored.get() => Value::stored(element_type, self.emitter.lanes(*lanes)),
            raws => Value::from_raws(self.emitter, element_type, raws),
        })
    }
}
