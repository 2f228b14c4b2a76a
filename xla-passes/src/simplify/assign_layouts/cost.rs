//! Cost of a value's order of dimensions, given the orders in which it is read.

use std::collections::{BTreeMap, BTreeSet};

use xla_hlo::ops::Dot;
use xla_hlo::{ArrayShape, InstrId, Op};

use super::order::DimOrder;
use super::view::{KeptOrder, LayoutView};
use crate::framework::profile::ConvolutionOrder;

/// Constants so small are put in order when the program is compiled.
const CONSTANT_BYTES: usize = 64 << 10;

/// The orders in which a value is read.
#[derive(Default)]
pub(super) struct Needs {
    /// Number of readers that want exactly an order.
    orders: BTreeMap<DimOrder, usize>,
    /// Those that need an order in part, without those that need the same.
    kept: BTreeMap<(DimOrder, Vec<usize>), KeptBy>,
    /// Whether somebody takes it in any order.
    free: bool,
}

/// Needs of an order in part.
#[derive(Default)]
struct KeptBy {
    /// Contractions, whose operands must be put in order.
    dots: bool,
    /// Bytes of results of reductions, which may be put in order instead.
    reductions: usize,
    /// Reductions of minor dimensions that had better stay so.
    minor: bool,
}

impl Needs {
    /// Adds `count` reads of the value in exactly that order.
    pub fn add(&mut self, order: DimOrder, count: usize) {
        *self.orders.entry(order).or_default() += count;
    }

    /// Removes `count` such reads.
    pub fn remove(&mut self, order: &DimOrder, count: usize) {
        if let Some(present) = self.orders.get_mut(order) {
            *present = present.saturating_sub(count);
            if *present == 0 {
                self.orders.remove(order);
            }
        }
    }

    pub fn add_free(&mut self) {
        self.free = true;
    }

    pub fn add_kept(&mut self, order: DimOrder, kept: KeptOrder) {
        let by = self.kept.entry((order, kept.dims)).or_default();
        by.dots |= kept.result.is_none();
        by.reductions += kept.result.unwrap_or(0);
        by.minor |= kept.minor;
    }

    /// Orders in which the value is read, as those who read it would have it.
    pub fn wishes(&self) -> impl Iterator<Item = &DimOrder> {
        self.orders.keys().chain(self.kept.keys().map(|(order, _)| order))
    }

    /// Bytes of transposes if the value is made in the order `stored`.
    pub fn cost(&self, view: &LayoutView<'_>, value: InstrId, stored: &DimOrder) -> usize {
        if is_made_in_any_order(view, value) || self.is_served(view, value) {
            return 0;
        }
        let (bytes, rank) = (view.bytes(value), view.computation[value].shape().as_array().map_or(0, ArrayShape::rank));
        let mut copies: BTreeSet<&DimOrder> = self.orders.keys().filter(|&order| order != stored).collect();
        let mut more = 0;
        let unserved = self.kept.iter().filter(|((_, dims), _)| !keeps(stored, rank, dims));
        let unserved: Vec<_> = unserved.collect();
        copies.extend(unserved.iter().filter(|(_, by)| by.dots).map(|((order, _), _)| order));
        for ((order, _), by) in unserved {
            more += if copies.contains(order) { 0 } else { by.reductions.min(bytes) };
        }
        for ((_, dims), by) in &self.kept {
            let leading = (0..dims.len()).all(|place| dims.contains(&stored.dimension(place)));
            more += if by.minor && !leading { bytes } else { 0 };
        }
        copies.len().saturating_mul(bytes).saturating_add(more)
    }

    /// Whether the one order that is wanted comes from what makes the value, if that is told so.
    fn is_served(&self, view: &LayoutView<'_>, value: InstrId) -> bool {
        if self.free || !self.kept.is_empty() || self.orders.len() != 1 {
            return false;
        }
        match view.computation[value].op() {
            Op::Dot(dot) => swapped(view, value, dot).is_some_and(|order| self.orders.contains_key(&order)),
            Op::Convolution(_) => view.profile.layout.convolution == ConvolutionOrder::Any,
            _ => false,
        }
    }
}

/// Whether `dims` stand one after the other as listed in an order.
fn keeps(order: &DimOrder, rank: usize, dims: &[usize]) -> bool {
    (0..rank).map(|place| order.dimension(place)).filter(|d| dims.contains(d)).eq(dims.iter().copied())
}

/// Whether a value is made of nothing, or of something small, as well in one order as in another.
fn is_made_in_any_order(view: &LayoutView<'_>, value: InstrId) -> bool {
    match view.computation[value].op() {
        Op::Broadcast(_) | Op::Iota(_) => crate::rewrite::graph::is_free(&view.computation[value]),
        Op::Constant(_) => view.bytes(value) <= CONSTANT_BYTES,
        _ => false,
    }
}

/// The order of a contraction's result if its operands change places.
fn swapped(view: &LayoutView<'_>, value: InstrId, dot: &Dot) -> Option<DimOrder> {
    let instruction = &view.computation[value];
    let lhs = view.computation[instruction.operand(0)].shape().as_array()?.rank();
    let rank = instruction.shape().as_array()?.rank();
    let batch = dot.dims.lhs_batch.len();
    let rows = batch..lhs - dot.dims.lhs_contracting.len();
    let columns = rows.end..rank;
    (!rows.is_empty() && !columns.is_empty()).then(|| DimOrder::new((0..batch).chain(columns).chain(rows).collect()))
}
