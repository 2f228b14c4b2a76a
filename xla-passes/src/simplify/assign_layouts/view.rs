//! Layout view of a computation: values, the orders of their reads, and regions.

use std::collections::HashMap;

use xla_hlo::entity::SecondaryMap;
use xla_hlo::{ArrayShape, CompId, Computation, InstrId, Module, Op};

use super::member::{is_array, is_member, ordered};
use super::order::DimOrder;
use crate::TargetProfile;
use crate::framework::profile::ConvolutionOrder;
use crate::rewrite::graph;

/// Transposes and the regions adjacent to them. Other regions are not listed.
pub(super) struct LayoutView<'m> {
    module: &'m Module,
    pub computation: &'m Computation,
    pub profile: &'m TargetProfile,
    moved: HashMap<InstrId, (InstrId, DimOrder)>,
    regions: SecondaryMap<InstrId, Option<usize>>,
    pub members: Vec<Vec<InstrId>>,
}

/// The plan: an order for each region.
pub(super) struct LayoutPlan {
    pub moved: HashMap<InstrId, (InstrId, DimOrder)>,
    regions: SecondaryMap<InstrId, Option<usize>>,
    orders: Vec<DimOrder>,
}

/// Requirement of a read on the order of a value.
pub(super) enum LayoutReader {
    /// The order of a region.
    Region(usize),
    /// Exactly the order as written.
    Fixed,
    /// Any order.
    Free,
    /// Any order that keeps the relative order of the kept dimensions.
    Keeping(KeptOrder),
}

/// An operation that contracts or reduces dimensions at any position.
pub(super) struct KeptOrder {
    /// The kept dimensions in their required relative order.
    pub dims: Vec<usize>,
    /// Size in bytes of the result, if the result can be transposed instead of the operands.
    pub result: Option<usize>,
    /// Whether the reduced dimensions are minor and should stay so.
    pub minor: bool,
}

impl<'m> LayoutView<'m> {
    /// Builds the view of a computation; `None` if it contains no transpose.
    pub fn of(module: &'m Module, id: CompId, profile: &'m TargetProfile) -> Option<LayoutView<'m>> {
        let computation = &module[id];
        if !computation.iter().any(|(_, instruction)| matches!(instruction.op(), Op::Transpose(_))) {
            return None;
        }
        let (moved, regions, members) = (HashMap::new(), SecondaryMap::new(None), Vec::new());
        let mut view = LayoutView { module, computation, profile, moved, regions, members };
        let mut transposes = Vec::new();
        for id in computation.post_order() {
            let Op::Transpose(transpose) = computation[id].op() else { continue };
            if graph::is_free(&computation[id]) && ordered(computation, id).is_some() {
                let (base, order) = view.source(computation[id].operand(0));
                view.moved.insert(id, (base, order.then(&DimOrder::new(transpose.permutation.clone()))));
                transposes.push((id, base));
            }
        }
        for (id, base) in transposes {
            view.find_region(base);
            computation[id].users().iter().for_each(|&user| view.find_region(user));
        }
        Some(view)
    }

    /// Lists the region of an instruction, if it has one.
    fn find_region(&mut self, id: InstrId) {
        let region = self.members.len();
        let mut found = Vec::new();
        let mut work = vec![id];
        while let Some(id) = work.pop() {
            if self.regions[id].is_some() || !is_member(self.module, self.computation, id) {
                continue;
            }
            self.regions[id] = Some(region);
            found.push(id);
            let instruction = &self.computation[id];
            work.extend(instruction.operands().iter().filter(|&&o| is_array(self.computation, id, o)));
            work.extend(instruction.users().iter().filter(|&&user| is_array(self.computation, user, id)));
        }
        if !found.is_empty() {
            self.members.push(found);
        }
    }

    /// Returns the source of a value that is a transpose, and the value's order relative to it.
    pub fn source(&self, id: InstrId) -> (InstrId, DimOrder) {
        self.moved.get(&id).cloned().unwrap_or_else(|| (id, DimOrder::default()))
    }

    pub fn region(&self, id: InstrId) -> Option<usize> {
        self.regions[id]
    }

    pub fn into_plan(self, orders: Vec<DimOrder>) -> LayoutPlan {
        LayoutPlan { moved: self.moved, regions: self.regions, orders }
    }

    pub fn bytes(&self, id: InstrId) -> usize {
        self.computation[id].shape().as_array().map_or(0, ArrayShape::byte_size)
    }

    /// Returns the readers of a value with the order as written. Looks through transposes.
    pub fn readers(&self, base: InstrId) -> Vec<(DimOrder, InstrId, LayoutReader)> {
        let mut readers = Vec::new();
        let mut work = vec![(base, DimOrder::default())];
        while let Some((id, order)) = work.pop() {
            for &user in self.computation[id].users() {
                match self.moved.get(&user) {
                    Some((_, order)) => work.push((user, order.clone())),
                    None => self.add_readers(user, id, &order, &mut readers),
                }
            }
            if self.computation.root_if_set() == Some(id) {
                readers.push((order, id, LayoutReader::Fixed));
            }
        }
        readers
    }

    fn add_readers(
        &self,
        user: InstrId,
        id: InstrId,
        order: &DimOrder,
        to: &mut Vec<(DimOrder, InstrId, LayoutReader)>,
    ) {
        let instruction = &self.computation[user];
        let static_result = instruction.shape().as_array().is_some_and(ArrayShape::is_static);
        let mut add = |reader| to.push((order.clone(), user, reader));
        match (self.regions[user], instruction.op()) {
            (Some(region), _) => add(LayoutReader::Region(region)),
            _ if !static_result || !graph::is_free(instruction) => add(LayoutReader::Fixed),
            (None, Op::Broadcast(_)) => add(LayoutReader::Free),
            (None, Op::Convolution(_)) if self.profile.layout.convolution == ConvolutionOrder::Any => {
                add(LayoutReader::Free)
            }
            (None, Op::Dot(dot)) if self.profile.dot.any_operand_order => {
                let rank = self.computation[id].shape().as_array().map_or(0, ArrayShape::rank);
                let sides = dot.dims.operands([rank; 2]);
                for (_, side) in instruction.operands().iter().zip(sides).filter(|(o, _)| **o == id) {
                    let dims = side.free.into_iter().map(|d| order.dimension(d)).collect();
                    add(LayoutReader::Keeping(KeptOrder { dims, result: None, minor: false }));
                }
            }
            (None, Op::Reduce(reduce)) if instruction.operands().len() == 2 => {
                let rank = self.computation[id].shape().as_array().map_or(0, ArrayShape::rank);
                let kept: Vec<usize> = (0..rank).filter(|d| !reduce.dimensions.contains(d)).collect();
                let minor = order.is_identity() && kept.iter().enumerate().all(|(i, &d)| i == d);
                let dims = kept.into_iter().map(|d| order.dimension(d)).collect();
                let minor = minor && self.profile.layout.minor_reductions;
                add(LayoutReader::Keeping(KeptOrder { dims, result: Some(self.bytes(user)), minor }));
            }
            _ => add(LayoutReader::Fixed),
        }
    }
}

impl LayoutPlan {
    /// Returns the source of a value that is a transpose, and the value's order relative to it.
    pub fn source(&self, id: InstrId) -> (InstrId, DimOrder) {
        self.moved.get(&id).cloned().unwrap_or_else(|| (id, DimOrder::default()))
    }

    /// Returns the assigned order of a value.
    pub fn order(&self, id: InstrId) -> DimOrder {
        self.regions[id].map(|region| self.orders[region].clone()).unwrap_or_default()
    }
}
