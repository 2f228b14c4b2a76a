//! Modules: computations that call each other, one of them the entry.

mod annotations;
mod attributes;
pub(crate) mod backend_config;
mod computation;
pub mod dynamic_result;
mod instruction;
pub(crate) mod names;
mod own_fusions;
mod users;

use std::collections::HashMap;

pub use annotations::{
    Annotations, DeviceList, FrontendAttributes, LeafSharding, Metadata, ShardGroup, Sharding, ShardingKind,
    SubgroupKind, TiledSharding,
};
pub use attributes::{
    FileLocation, InputOutputAlias, ModuleAttributes, ParameterLeaf, ProgramShape, StackFrame, StackTables,
};
pub use backend_config::BackendConfig;
pub use computation::{Computation, MAIN_THREAD};
pub use instruction::Instruction;

use crate::entity::{Arena, SecondaryMap, entity_id};
use crate::{Error, Result};

entity_id! {
    /// A computation of a module.
    CompId, "comp"
}
entity_id! {
    /// An instruction of a computation.
    InstrId, "i"
}

/// A program: computations in an arena, one of them the entry.
#[derive(Clone, Debug)]
pub struct Module {
    name: String,
    computations: Arena<CompId, Computation>,
    entry: Option<CompId>,
    names: HashMap<String, CompId>,
    next_suffix: HashMap<String, u32>,
    attributes: ModuleAttributes,
    revision: u64,
}

impl Module {
    /// A module without computations.
    pub fn new(name: impl Into<String>) -> Module {
        Module {
            name: name.into(),
            computations: Arena::default(),
            entry: None,
            names: HashMap::new(),
            next_suffix: HashMap::new(),
            attributes: ModuleAttributes::default(),
            revision: 0,
        }
    }

    /// The name in the header.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Changes the name in the header.
    pub fn set_name(&mut self, name: impl Into<String>) {
        self.revision += 1;
        self.name = name.into();
    }

    /// Attributes of the header besides the name.
    pub fn attributes(&self) -> &ModuleAttributes {
        &self.attributes
    }

    /// The header for writing.
    pub fn attributes_mut(&mut self) -> &mut ModuleAttributes {
        self.revision += 1;
        &mut self.attributes
    }

    /// Demands that the program is for one device; [`Error::Unimplemented`] says that `what` of several cannot be run.
    pub fn expect_one_device(&self, what: &str) -> Result<()> {
        match (self.attributes.replica_count.max(1), self.attributes.num_partitions.max(1)) {
            (1, 1) => Ok(()),
            (replicas, partitions) => Err(Error::unimplemented(format!(
                "{what} among several devices cannot be run ({replicas} replicas and {partitions} partitions)"
            ))),
        }
    }

    /// The entry's id. Panics before one was set: builders and the parser always set it.
    pub fn entry_id(&self) -> CompId {
        self.entry.expect("a finished module has an entry computation")
    }

    /// The entry's id, or `None` while the module is being built.
    pub fn entry_if_set(&self) -> Option<CompId> {
        self.entry
    }

    /// The entry computation.
    pub fn entry(&self) -> &Computation {
        &self[self.entry_id()]
    }

    /// Shapes of the entry's parameters and result in the layouts that callers ask for: those of the header, else those
    /// that the instructions have, else row major.
    pub fn entry_layout(&self) -> ProgramShape {
        let (entry, header) = (self.entry(), self.attributes.entry_computation_layout.as_ref());
        let parameters = entry.parameters().iter().enumerate();
        let parameter = |(i, &id): (usize, &InstrId)| {
            entry[id].shape().with_layouts_of(header.and_then(|header| header.parameters.get(i)))
        };
        ProgramShape {
            parameters: parameters.map(parameter).collect(),
            result: entry.result_shape().with_layouts_of(header.map(|header| &header.result)),
        }
    }

    /// Makes a computation the entry.
    pub fn set_entry(&mut self, id: CompId) {
        self.revision += 1;
        self.entry = Some(id);
    }

    /// Counts edits of the module and of its computations; grows with each.
    pub fn revision(&self) -> u64 {
        self.revision + self.computations.iter().map(|(_, c)| c.revision()).sum::<u64>()
    }

    /// Ids of live computations, oldest first.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = CompId> + '_ {
        self.computations.ids()
    }

    /// Live computations, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (CompId, &Computation)> {
        self.computations.iter()
    }

    /// Number of computations.
    pub fn len(&self) -> usize {
        self.computations.len()
    }

    /// Whether there is no computation.
    pub fn is_empty(&self) -> bool {
        self.computations.is_empty()
    }

    /// Instructions of all computations.
    pub fn instruction_count(&self) -> usize {
        self.iter().map(|(_, c)| c.len()).sum()
    }

    /// The computation, unless it was removed.
    pub fn get(&self, id: CompId) -> Option<&Computation> {
        self.computations.get(id)
    }

    /// A computation for editing.
    pub fn computation_mut(&mut self, id: CompId) -> &mut Computation {
        &mut self.computations[id]
    }

    /// The computation of that name.
    pub fn find(&self, name: &str) -> Option<CompId> {
        self.names.get(name).copied()
    }

    /// Adds a computation; a taken name gets a number.
    pub fn add(&mut self, mut computation: Computation) -> CompId {
        self.revision += 1;
        let mut name = computation.name().to_string();
        if self.names.contains_key(&name) {
            // Kernels are added by the hundred under one name; the search goes on from where it ended.
            let next = self.next_suffix.entry(name).or_insert(1);
            name = loop {
                let candidate = format!("{}.{next}", computation.name());
                *next += 1;
                if !self.names.contains_key(&candidate) {
                    break candidate;
                }
            };
        }
        if name != computation.name() {
            computation.set_name(name.clone());
        }
        let id = self.computations.push(computation);
        self.names.insert(name, id);
        id
    }

    /// Removes a computation that nobody calls (not checked here; the verifier reports dangling calls).
    pub fn remove(&mut self, id: CompId) -> Result<()> {
        if self.entry == Some(id) {
            return Err(Error::internal(format!("cannot remove the entry computation {}", self[id].name())));
        }
        if let Some(removed) = self.computations.remove(id) {
            self.names.remove(removed.name());
            // The removed edits stay counted, so that the revision never goes back.
            self.revision += removed.revision() + 1;
        }
        Ok(())
    }

    /// Computations with callees before callers, the entry last; those that nobody calls come in their place by id.
    ///
    /// Linear time, no recursion. The order for a cyclic call graph (which the verifier refuses) is unspecified.
    pub fn post_order(&self) -> Vec<CompId> {
        let mut order = Vec::with_capacity(self.len());
        let mut seen = SecondaryMap::<CompId, bool>::new(false);
        let others = self.ids().filter(|id| Some(*id) != self.entry);
        for start in others.chain(self.entry) {
            let mut stack = vec![(start, self.callees_if_new(start, &mut seen), 0usize)];
            while let Some((id, callees, next)) = stack.last_mut() {
                let Some(callees) = callees else {
                    stack.pop();
                    continue;
                };
                if let Some(&callee) = callees.get(*next) {
                    *next += 1;
                    let inner = self.callees_if_new(callee, &mut seen);
                    stack.push((callee, inner, 0));
                } else {
                    order.push(*id);
                    stack.pop();
                }
            }
        }
        order
    }

    fn callees_if_new(&self, id: CompId, seen: &mut SecondaryMap<CompId, bool>) -> Option<Vec<CompId>> {
        (!std::mem::replace(&mut seen[id], true)).then(|| self.callees(id))
    }

    /// Computations that `id` calls, in order of the first call, each once.
    pub fn callees(&self, id: CompId) -> Vec<CompId> {
        let mut out = Vec::new();
        for (_, instruction) in self[id].iter() {
            for callee in instruction.op().called_computations() {
                if !out.contains(&callee) && self.get(callee).is_some() {
                    out.push(callee);
                }
            }
        }
        out
    }
}

impl std::ops::Index<CompId> for Module {
    type Output = Computation;
    fn index(&self, id: CompId) -> &Computation {
        &self.computations[id]
    }
}
