//! Sorts and top-k.

use xla_hlo::{ElementType, InstrId};

use super::callee::CalleeRole;
use super::graph::{Graph, Value};
use super::numbers::Numbers;

impl Graph<'_> {
    /// Generates a sort of several arrays. Keys must be equal on all platforms in every bit, since the order depends on
    /// them.
    pub(super) fn sort(&mut self) -> Option<Value> {
        let callees = self.callees;
        let orders: Vec<(_, &[ElementType])> = callees
            .iter()
            .filter_map(|callee| match &callee.role {
                CalleeRole::Order { types } => Some((callee.id, &types[..])),
                _ => None,
            })
            .collect();
        if orders.is_empty() {
            return None;
        }
        let (comparator, types) = self.random.pick(&orders);
        let (&first, others) = types.split_first()?;
        let mut arrays = vec![self.any(|v| v.ty() == first && v.rank() > 0 && v.numbers.is_pattern())?];
        let dims = arrays[0].dims().to_vec();
        for &ty in others {
            arrays.push(self.like(ty, &dims, Numbers::is_pattern));
        }
        let dimension = self.random.below(dims.len());
        let ids: Vec<InstrId> = arrays.iter().map(|array| array.id).collect();
        if let [array] = &arrays[..] {
            return self.put(Some(array.numbers), |b| b.sort(ids, dimension, comparator));
        }
        let sorted = self.b.sort(ids, dimension, comparator).ok()?;
        let mut last = None;
        for (i, array) in arrays.iter().enumerate() {
            last = self.put(Some(array.numbers), |b| b.get_tuple_element(sorted, i));
        }
        last
    }

    pub(super) fn top_k(&mut self) -> Option<Value> {
        let x = self.any(|v| v.rank() > 0 && !v.ty().is_complex() && v.numbers.is_pattern())?;
        let length = *x.dims().last()?;
        let most = if self.random.percent(30) { length } else { length.min(5) };
        let (k, largest) = (self.random.between(0, most), self.random.percent(70));
        let best = self.b.top_k(x.id, k, largest).ok()?;
        self.put(Some(x.numbers), |b| b.get_tuple_element(best, 0));
        let places = Numbers::rounded(ElementType::S32, length as f64, 1.0);
        self.put(Some(places), |b| b.get_tuple_element(best, 1))
    }
}
