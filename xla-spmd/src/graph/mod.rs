//! Values of a program and the operations between them, as propagation sees them: no tuples, no calls, one value for
//! all names of a loop's state.

mod build;
mod constants;
mod constraints;
mod control_flow;
mod leaves;
mod meshes;

use std::collections::HashMap;

use xla_hlo::sdy::{Direction, ResolvedSharding, ShardingRule};
use xla_hlo::{CompId, Error, InstrId, Module, Result};

pub use meshes::MeshTable;

/// Index of a [`Name`].
pub type NameId = usize;
/// Index of a [`Value`].
pub type ValueId = usize;
/// Index of a [`Node`].
pub type NodeId = usize;

/// Array in the program. A loop's state has three names for one value: its result, and the parameters of its body and
/// its condition.
#[derive(Debug)]
pub struct Name {
    pub value: ValueId,
    /// Uses, in program order. `None` is a use that propagation does not visit, such as the end of the program.
    pub users: Vec<Option<NodeId>>,
}

/// Sharding over one of the meshes of a [`MeshTable`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshSharding {
    pub mesh: usize,
    pub sharding: ResolvedSharding,
}

/// Names that have one sharding.
#[derive(Debug)]
pub struct Value {
    pub dims: Vec<usize>,
    /// `None` without a sharding, which is open in all dimensions.
    pub sharding: Option<MeshSharding>,
    /// Operation that computes it, or the data-flow edge into it.
    pub producer: Option<NodeId>,
    /// Its names; the first one is the producer's result.
    pub names: Vec<NameId>,
    /// Sharding group.
    pub group: Option<i64>,
}

/// Class of an operation, which decides the step and the directions of its propagation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Elementwise operations, constraints, reshapes, transposes, moves to and from the host.
    PassThrough,
    /// Join of the values that flow into loop states, branch results and barriers.
    Edge,
    /// Dynamic slices and their updates.
    DynamicSlice,
    /// Broadcasts.
    Broadcast,
    /// Barriers to propagation, which are of no class.
    Barrier(Direction),
    /// All others.
    Other,
}

/// Operation or data-flow edge.
#[derive(Clone, Debug)]
pub struct Node {
    pub class: Class,
    pub rule: ShardingRule,
    pub operands: Vec<NameId>,
    pub results: Vec<NameId>,
    /// Place in the program; copies of a constant have numbers from 1.
    pub place: (usize, usize),
    /// Computation, for constraints that replace later uses in their own.
    pub computation: CompId,
    pub role: NodeRole,
}

/// Special roles of operations while the graph is built.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeRole {
    Plain,
    /// The result is the operand, with this sharding.
    Constraint(MeshSharding),
    /// A manual region takes the operand with this sharding.
    Manual(MeshSharding),
    /// Depends on constants alone: each use gets a copy.
    Constant,
    /// Broadcast of a scalar: each use gets a copy.
    ScalarExpansion,
}

/// Result of the program.
#[derive(Debug)]
pub struct ProgramResult {
    pub name: NameId,
    pub sharding: Option<MeshSharding>,
}

/// Names of the arrays of an operand, by computation, user and operand number.
pub type OperandNames = HashMap<(CompId, InstrId, usize), Vec<NameId>>;

/// Whole program.
#[derive(Debug)]
pub struct Graph {
    pub meshes: MeshTable,
    pub names: Vec<Name>,
    pub values: Vec<Value>,
    /// Operations in program order.
    pub nodes: Vec<Node>,
    pub results: Vec<ProgramResult>,
    /// Names of the leaves of each instruction's result.
    pub leaves: HashMap<(CompId, InstrId), Vec<NameId>>,
    pub operands: OperandNames,
    /// Copies of values that depend on constants alone, and of broadcast scalars.
    pub copies: HashMap<NameId, Vec<NameId>>,
}

impl Graph {
    /// Builds the graph of a module: constants copied for each use, constraints applied to their operands, groups
    /// united.
    pub fn new(module: &Module) -> Result<Graph> {
        let mut graph = build::build(module)?;
        graph.nodes.retain(|node| !matches!(node.role, NodeRole::Constant | NodeRole::ScalarExpansion));
        graph.nodes.sort_by_key(|node| node.place);
        constraints::apply(&mut graph);
        graph.connect();
        graph.unite_groups()?;
        Ok(graph)
    }

    /// Records producers and users.
    fn connect(&mut self) {
        for (id, node) in self.nodes.iter().enumerate() {
            for &result in &node.results {
                let value = self.names[result].value;
                self.values[value].producer = Some(id);
            }
            for &operand in &node.operands {
                self.names[operand].users.push(Some(id));
            }
        }
        for result in &self.results {
            self.names[result.name].users.push(None);
        }
    }

    /// Copies the first sharding among the members of a group to all of them. Fails if their ranks differ.
    fn unite_groups(&mut self) -> Result<()> {
        let mut ranks: HashMap<i64, usize> = HashMap::new();
        let mut shardings: HashMap<i64, MeshSharding> = HashMap::new();
        for value in &self.values {
            if let Some(group) = value.group {
                let (rank, first) = (value.dims.len(), *ranks.entry(group).or_insert(value.dims.len()));
                if rank != first {
                    return Err(Error::invalid_argument(format!(
                        "sharding group {group} has members of rank {first} and {rank}, they must have one sharding"
                    )));
                }
            }
            if let (Some(group), Some(sharding)) = (value.group, &value.sharding) {
                shardings.entry(group).or_insert_with(|| sharding.clone());
            }
        }
        for value in &mut self.values {
            if let Some(sharding) = value.group.and_then(|group| shardings.get(&group)) {
                value.sharding = Some(sharding.clone());
            }
        }
        Ok(())
    }

    /// Adds a value with one name.
    fn add_value(&mut self, dims: &[usize], sharding: Option<MeshSharding>) -> NameId {
        let name = self.names.len();
        self.values.push(Value { dims: dims.to_vec(), sharding, producer: None, names: vec![name], group: None });
        self.names.push(Name { value: self.values.len() - 1, users: Vec::new() });
        name
    }

    /// Adds a name of a value.
    fn add_name(&mut self, value: ValueId) -> NameId {
        self.names.push(Name { value, users: Vec::new() });
        self.values[value].names.push(self.names.len() - 1);
        self.names.len() - 1
    }

    pub fn value(&self, name: NameId) -> &Value {
        &self.values[self.names[name].value]
    }
}
