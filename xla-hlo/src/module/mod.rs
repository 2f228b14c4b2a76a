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
    /// Id of a computation of a module.
    CompId, "comp"
}
entity_id! {
    /// Id of an instruction of a computation.
    InstrId, "i"
}

/// Program: computations in an arena, one of them the entry.
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
    /// Creates a module without computations.
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

    /// Returns the name in the header.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Changes the name in the header.
    pub fn set_name(&mut self, name: impl Into<String>) {
        self.revision += 1;
        self.name = name.into();
    }

    /// Returns the attributes of the header, except the name.
    pub fn attributes(&self) -> &ModuleAttributes {
        &self.attributes
    }

    /// Returns the header for writing.
    pub fn attributes_mut(&mut self) -> &mut ModuleAttributes {
        self.revision += 1;
        &mut self.attributes
    }

    /// Whether the program is for one device: one replica of one partition.
    pub fn is_for_one_device(&self) -> bool {
        self.attributes.replica_count <= 1 && self.attributes.num_partitions <= 1
    }

    /// Checks that the program is for one device. Otherwise fails with [`Error::Unimplemented`]; `what` names the
    /// operation that needs several.
    pub fn expect_one_device(&self, what: &str) -> Result<()> {
        if self.is_for_one_device() {
            return Ok(());
        }
        let (replicas, partitions) = (self.attributes.replica_count.max(1), self.attributes.num_partitions.max(1));
        Err(Error::unimplemented(format!(
            "{what} among several devices cannot be run ({replicas} replicas and {partitions} partitions)"
        )))
    }

    /// Returns the entry's id. Panics if none was set yet: builders and the parser always set it.
    pub fn entry_id(&self) -> CompId {
        self.entry.expect("a finished module has an entry computation")
    }

    /// Returns the entry's id, or `None` while the module is being built.
    pub fn entry_if_set(&self) -> Option<CompId> {
        self.entry
    }

    /// Returns the entry computation.
    pub fn entry(&self) -> &Computation {
        &self[self.entry_id()]
    }

    /// Returns the shapes of the entry's parameters and result with the layouts that callers use: those of the header
    /// if given, otherwise those of the instructions if given, otherwise row-major ones.
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

    /// Returns the number of edits of the module and of its computations so far.
    pub fn revision(&self) -> u64 {
        self.revision + self.computations.iter().map(|(_, c)| c.revision()).sum::<u64>()
    }

    /// Iterates over the ids of live computations, oldest first.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = CompId> + '_ {
        self.computations.ids()
    }

    /// Iterates over live computations, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (CompId, &Computation)> {
        self.computations.iter()
    }

    /// Returns the number of computations.
    pub fn len(&self) -> usize {
        self.computations.len()
    }

    /// Whether there is no computation.
    pub fn is_empty(&self) -> bool {
        self.computations.is_empty()
    }

    /// Returns the number of instructions of all computations.
    pub fn instruction_count(&self) -> usize {
        self.iter().map(|(_, c)| c.len()).sum()
    }

    /// Returns the computation, unless it was removed.
    pub fn get(&self, id: CompId) -> Option<&Computation> {
        self.computations.get(id)
    }

    /// Returns a computation for editing.
    pub fn computation_mut(&mut self, id: CompId) -> &mut Computation {
        &mut self.computations[id]
    }

    /// Returns the computation of that name.
    pub fn find(&self, name: &str) -> Option<CompId> {
        self.names.get(name).copied()
    }

    /// Adds a computation; a number is appended to a name that is taken.
    pub fn add(&mut self, mut computation: Computation) -> CompId {
        self.revision += 1;
        let mut name = computation.name().to_string();
        if self.names.contains_key(&name) {
            // Kernels are added by the hundred under one name, so resume the search where it ended.
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

    /// Removes a computation without callers (not checked here; the verifier reports dangling calls).
    pub fn remove(&mut self, id: CompId) -> Result<()> {
        if self.entry == Some(id) {
            return Err(Error::internal(format!("cannot remove the entry computation {}", self[id].name())));
        }
        if let Some(removed) = self.computations.remove(id) {
            self.names.remove(removed.name());
            // Keep the removed computation's edits in the count, so that the revision never decreases.
            self.revision += removed.revision() + 1;
        }
        Ok(())
    }

    /// Returns computations with callees before callers and the entry last; those without callers are ordered by id.
    ///
    /// Takes linear time, without recursion. The order for a cyclic call graph (which the verifier rejects) is
    /// unspecified.
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

    /// Returns the computations that the entry reaches through calls, each once, beginning with the entry.
    pub fn reachable(&self) -> Vec<CompId> {
        let mut reached: Vec<CompId> = self.entry.into_iter().collect();
        let mut seen = SecondaryMap::<CompId, bool>::new(false);
        let mut next = 0;
        while let Some(&id) = reached.get(next) {
            seen[id] = true;
            for callee in self.callees(id) {
                if !std::mem::replace(&mut seen[callee], true) {
                    reached.push(callee);
                }
            }
            next += 1;
        }
        reached
    }

    fn callees_if_new(&self, id: CompId, seen: &mut SecondaryMap<CompId, bool>) -> Option<Vec<CompId>> {
        (!std::mem::replace(&mut seen[id], true)).then(|| self.callees(id))
    }

    /// Returns the computations that `id` calls, each once, in the order of the first call.
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
