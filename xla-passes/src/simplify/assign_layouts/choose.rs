//! Chooses an order of dimensions for each region, one region at a time.

use std::collections::{BTreeMap, BTreeSet};

use xla_hlo::InstrId;

use super::cost::Needs;
use super::order::DimOrder;
use super::view::{LayoutReader, LayoutView};

/// Number of orders that are tried per region: those that remove the largest transposes at its border.
const CANDIDATES: usize = 6;

/// Costs of the values that regions read or define.
struct Costs<'v, 'm> {
    view: &'v LayoutView<'m>,
    /// Reads of each value, except by the region that defines the value: these cost nothing in any order.
    needs: BTreeMap<InstrId, Needs>,
    /// Reads of each region: values, orders as written, and counts.
    reads: Vec<BTreeMap<InstrId, BTreeMap<DimOrder, usize>>>,
    /// Current order of each region.
    orders: Vec<DimOrder>,
}

/// Returns the order of each region. Each change of an order requires permission.
pub(super) fn orders(view: &LayoutView<'_>, mut allow: impl FnMut() -> bool) -> Vec<DimOrder> {
    let mut costs = Costs::of(view);
    for region in 0..view.members.len() {
        let present = costs.region(region, &DimOrder::default());
        if present == 0 {
            continue;
        }
        let tried = costs.candidates(region).into_iter().map(|order| (costs.tried(region, &order), order));
        let best = tried.min_by_key(|(cost, _)| *cost).filter(|(cost, _)| *cost < present);
        if let Some((_, order)) = best
            && allow()
        {
            costs.turn(region, &DimOrder::default(), &order);
            costs.orders[region] = order;
        }
    }
    costs.orders
}

impl<'v, 'm> Costs<'v, 'm> {
    fn of(view: &'v LayoutView<'m>) -> Self {
        let regions = view.members.len();
        let mut costs = Costs {
            view,
            needs: BTreeMap::new(),
            reads: vec![BTreeMap::new(); regions],
            orders: vec![DimOrder::default(); regions],
        };
        let members = view.members.iter().flatten();
        let mut values: BTreeSet<InstrId> = members.clone().copied().collect();
        for &member in members {
            let arrays = view.computation[member].operands().iter();
            let arrays = arrays.filter(|&&o| super::member::is_array(view.computation, member, o));
            values.extend(arrays.map(|&o| view.source(o).0));
        }
        values.into_iter().for_each(|value| costs.add(value));
        costs
    }

    /// Collects the reads of a value.
    fn add(&mut self, value: InstrId) {
        for (order, _, reader) in self.view.readers(value) {
            let needs = self.needs.entry(value).or_default();
            match reader {
                LayoutReader::Region(region) if order.is_identity() && self.view.region(value) == Some(region) => {}
                LayoutReader::Region(region) => {
                    *self.reads[region].entry(value).or_default().entry(order.clone()).or_default() += 1;
                    needs.add(order, 1);
                }
                LayoutReader::Fixed => needs.add(order, 1),
                LayoutReader::Free => needs.add_free(),
                LayoutReader::Keeping(kept) => needs.add_kept(order, kept),
            }
        }
    }

    /// Returns the bytes of transposes at a region's border if the region defines its values in this order.
    fn region(&self, region: usize, order: &DimOrder) -> usize {
        let inside = |value: &InstrId| self.view.region(*value) == Some(region);
        let own = self.view.members[region].iter().filter_map(|m| Some((m, self.needs.get(m)?)));
        let own: usize = own.map(|(&value, needs)| needs.cost(self.view, value, order)).sum();
        let read = self.reads[region].keys().filter(|value| !inside(value));
        let read = read.filter_map(|value| {
            let stored = self.view.region(*value).map(|r| self.orders[r].clone()).unwrap_or_default();
            Some(self.needs.get(value)?.cost(self.view, *value, &stored))
        });
        own + read.sum::<usize>()
    }

    /// Returns the bytes of transposes if the region both reads and defines its values in this order.
    fn tried(&mut self, region: usize, order: &DimOrder) -> usize {
        self.turn(region, &DimOrder::default(), order);
        let cost = self.region(region, order);
        self.turn(region, order, &DimOrder::default());
        cost
    }

    /// Changes the order in which a region reads its values.
    fn turn(&mut self, region: usize, from: &DimOrder, to: &DimOrder) {
        for (value, orders) in &self.reads[region] {
            let Some(needs) = self.needs.get_mut(value) else { continue };
            for (order, count) in orders {
                needs.remove(&order.then(from), *count);
            }
            for (order, count) in orders {
                needs.add(order.then(to), *count);
            }
        }
    }

    /// Returns the orders that would remove a transpose at the border of a region, most bytes first.
    fn candidates(&self, region: usize) -> Vec<DimOrder> {
        let mut bytes: BTreeMap<DimOrder, usize> = BTreeMap::new();
        for (value, orders) in &self.reads[region] {
            for order in orders.keys() {
                *bytes.entry(order.inverse()).or_default() += self.view.bytes(*value);
            }
        }
        for &member in &self.view.members[region] {
            for order in self.needs.get(&member).into_iter().flat_map(Needs::wishes) {
                *bytes.entry(order.clone()).or_default() += self.view.bytes(member);
            }
        }
        bytes.remove(&DimOrder::default());
        let mut candidates: Vec<(DimOrder, usize)> = bytes.into_iter().collect();
        candidates.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        candidates.into_iter().take(CANDIDATES).map(|(order, _)| order).collect()
    }
}
