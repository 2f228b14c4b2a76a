//! Cost of a value's order of dimensions, given the orders of its reads.

use std::collections::{BTreeMap, BTreeSet};

use xla_hlo::ops::Dot;
use xla_hlo::{ArrayShape, InstrId, Op};

use super::order::DimOrder;
use super::view::{KeptOrder, LayoutView};
use crate::framework::profile::ConvolutionOrder;

/// Maximum size of a constant that is reordered at compile time, in bytes.
const CONSTANT_BYTES: usize = 64 << 10;

/// Orders of the reads of a value.
#[derive(Default)]
pub(super) struct Needs {
    /// Number of readers that require each exact order.
    orders: BTreeMap<DimOrder, usize>,
    /// Readers that require a partial order; readers with equal requirements are merged.
    kept: BTreeMap<(DimOrder, Vec<usize>), KeptBy>,
    /// Whether a reader accepts any order.
    free: bool,
}

/// Readers that require a partial order.
#[derive(Default)]
struct KeptBy {
    /// Whether contractions are among the readers; their operands must be in order.
    dots: bool,
    /// Total size of the results of reductions in bytes. A result may be transposed instead of the operand.
    reductions: usize,
    /// Whether reductions are among the readers that should keep their reduced dimensions minor.
    minor: bool,
}

impl Needs {
    /// Adds `count` reads of the value in exactly this order.
    pub fn add(&mut self, order: DimOrder, count: usize) {
        *self.orders.entry(order).or_default() += count;
    }

    /// Removes `count` reads of the value in exactly this order.
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

    /// Iterates over the orders that readers prefer.
    pub fn wishes(&self) -> impl Iterator<Item = &DimOrder> {
        self.orders.keys().chain(self.kept.keys().map(|(order, _)| order))
    }

    /// Returns the bytes of transposes if the value is stored in the order `stored`.
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

    /// Whether the instruction that defines the value can produce the only required order itself.
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

/// Whether `dims` occur in an order in the sequence listed.
fn keeps(order: &DimOrder, rank: usize, dims: &[usize]) -> bool {
    (0..rank).map(|place| order.dimension(place)).filter(|d| dims.contains(d)).eq(dims.iter().copied())
}

/// Whether a value is generated or so small that each order costs the same.
fn is_made_in_any_order(view: &LayoutView<'_>, value: InstrId) -> bool {
    match view.computation[value].op() {
        Op::Broadcast(_) | Op::Iota(_) => crate::rewrite::graph::is_free(&view.computation[value]),
        Op::Constant(_) => view.bytes(value) <= CONSTANT_BYTES,
        _ => false,
    }
}

/// Returns the order of a contraction's result after a swap of its operands.
fn swapped(view: &LayoutView<'_>, value: InstrId, dot: &Dot) -> Option<DimOrder> {
    let instruction = &view.computation[value];
    let lhs = view.computation[instruction.operand(0)].shape().as_array()?.rank();
    let rank = instruction.shape().as_array()?.rank();
    let batch = dot.dims.lhs_batch.len();
    let rows = batch..lhs - dot.dims.lhs_contracting.len();
    let columns = rows.end..rank;
    (!rows.is_empty() && !columns.is_empty()).then(|| DimOrder::new((0..batch).chain(columns).chain(rows).collect()))
}
