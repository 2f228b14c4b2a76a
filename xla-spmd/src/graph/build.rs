//! Construction of the graph from the instructions of a module.

use std::collections::HashSet;

use xla_hlo::sdy::{self, Role, RuleBuilder, RuleContext, ShardingRule, TensorSharding};
use xla_hlo::{CompId, Error, InstrId, Module, Op, Result, ResultExt};

use super::constants::Templates;
use super::leaves::{check_arrays, leaves_before, source_of};
use super::meshes::MeshTable;
use super::{Class, Graph, MeshSharding, NameId, Node, NodeRole, ProgramResult};

/// Deepest nesting of loops, branches and calls.
const MAX_DEPTH: usize = 200;

/// Builds the graph; its nodes are in no order, and templates of constants are still among them.
pub fn build(module: &Module) -> Result<Graph> {
    let graph = Graph {
        meshes: MeshTable::new(module)?,
        names: Vec::new(),
        values: Vec::new(),
        nodes: Vec::new(),
        results: Vec::new(),
        leaves: Default::default(),
        operands: Default::default(),
        copies: Default::default(),
    };
    let mut builder =
        Builder { module, graph, templates: Templates::default(), place: 0, visited: HashSet::new(), depth: 0 };
    let entry = module.entry_id();
    let mut parameters = Vec::new();
    for &parameter in module[entry].parameters() {
        parameters.push(builder.fresh(entry, parameter)?);
    }
    let roots = builder.walk(entry, parameters)?;
    let stated = builder.result_shardings(entry, roots.len())?;
    for (name, sharding) in roots.into_iter().zip(stated) {
        let name = builder.templates.for_use(&mut builder.graph, name)?;
        builder.graph.results.push(ProgramResult { name, sharding });
    }
    builder.graph.copies = builder.templates.into_copies();
    Ok(builder.graph)
}

pub(super) struct Builder<'m> {
    pub module: &'m Module,
    pub graph: Graph,
    pub templates: Templates,
    /// Position in the program of the instruction that is added.
    pub place: usize,
    visited: HashSet<CompId>,
    depth: usize,
}

impl Builder<'_> {
    /// Walks a computation whose parameters have these names; returns the names of its results.
    pub(super) fn walk(&mut self, id: CompId, parameters: Vec<Vec<NameId>>) -> Result<Vec<NameId>> {
        let computation = &self.module[id];
        if !self.visited.insert(id) {
            return Err(Error::unimplemented(format!(
                "propagation of shardings through computation %{}, which has several callers: run flatten-call-graph \
                 first",
                computation.name()
            )));
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::resource_exhausted(format!("control flow is nested more than {MAX_DEPTH} deep")));
        }
        for (&parameter, names) in computation.parameters().iter().zip(parameters) {
            self.graph.leaves.insert((id, parameter), names);
        }
        for instruction in computation.post_order() {
            if matches!(computation[instruction].op(), Op::Parameter(_)) {
                continue;
            }
            self.place += 1;
            let names =
                self.instruction(id, instruction).context(|| format!("%{}", computation[instruction].name()))?;
            self.graph.leaves.insert((id, instruction), names);
        }
        self.depth -= 1;
        Ok(self.graph.leaves[&(id, computation.root())].clone())
    }

    /// Names of all arrays of an operand, as they are.
    pub(super) fn operand(&self, id: CompId, instruction: InstrId, i: usize) -> Vec<NameId> {
        let operand = self.module[id][instruction].operand(i);
        self.graph.leaves.get(&(id, operand)).cloned().unwrap_or_default()
    }

    /// Names of all arrays of an operand, for a use by an operation that is not constant.
    pub(super) fn used(&mut self, id: CompId, instruction: InstrId, i: usize) -> Result<Vec<NameId>> {
        let names = self.operand(id, instruction, i);
        let names = names.into_iter().map(|name| self.templates.for_use(&mut self.graph, name));
        let names = names.collect::<Result<Vec<NameId>>>()?;
        self.graph.operands.insert((id, instruction, i), names.clone());
        Ok(names)
    }

    /// Names of the arrays of all operands, see [`Builder::used`].
    pub(super) fn all_used(&mut self, id: CompId, at: InstrId) -> Result<Vec<NameId>> {
        let mut names = Vec::new();
        for i in 0..self.module[id][at].operands().len() {
            names.extend(self.used(id, at, i)?);
        }
        Ok(names)
    }

    /// Adds values for the arrays of an instruction's result, with the shardings that it states.
    pub(super) fn fresh(&mut self, id: CompId, instruction: InstrId) -> Result<Vec<NameId>> {
        let stated = sdy::shardings(self.module, id, instruction)?.unwrap_or_default();
        let shape = self.module[id][instruction].shape();
        let mut names = Vec::new();
        for (i, (_, leaf)) in shape.leaves().iter().enumerate() {
            let sharding = stated.get(i).map(|sharding| self.resolve(sharding, leaf.dims())).transpose()?;
            names.push(self.graph.add_value(leaf.dims(), sharding));
        }
        Ok(names)
    }

    pub(super) fn resolve(&mut self, sharding: &TensorSharding, dims: &[usize]) -> Result<MeshSharding> {
        let resolved = self.graph.meshes.resolve(sharding)?;
        if resolved.sharding.dims.len() != dims.len() && !self.graph.meshes.is_maximal(resolved.mesh) {
            return Err(Error::invalid_argument(format!(
                "the sharding {sharding} has {} dimensions, the array has {}",
                resolved.sharding.dims.len(),
                dims.len()
            )));
        }
        Ok(resolved)
    }

    fn instruction(&mut self, id: CompId, at: InstrId) -> Result<Vec<NameId>> {
        let instruction = &self.module[id][at];
        match instruction.op() {
            Op::Tuple(_) => Ok((0..instruction.operands().len()).flat_map(|i| self.operand(id, at, i)).collect()),
            Op::GetTupleElement(element) => {
                let before = leaves_before(self.module[id][instruction.operand(0)].shape(), element.index);
                let count = instruction.shape().leaves().len();
                let names = self.operand(id, at, 0);
                Ok(names.into_iter().skip(before).take(count).collect())
            }
            Op::While(op) => self.while_loop(id, at, op),
            Op::Conditional(op) => self.conditional(id, at, op),
            Op::Call(op) => {
                let parameters = (0..instruction.operands().len()).map(|i| self.operand(id, at, i)).collect();
                self.walk(op.computation, parameters)
            }
            Op::OptBarrier(_) => {
                let (sources, results) = (self.used(id, at, 0)?, self.fresh(id, at)?);
                for (&source, &result) in sources.iter().zip(&results) {
                    self.edge(id, vec![source], result);
                }
                Ok(results)
            }
            _ => match sdy::role(self.module, id, at)? {
                Some(role) => self.role(id, at, role),
                None => self.operation(id, at),
            },
        }
    }

    pub(super) fn push(
        &mut self,
        id: CompId,
        class: Class,
        rule: ShardingRule,
        arrays: (Vec<NameId>, Vec<NameId>),
        role: NodeRole,
    ) {
        let (operands, results) = arrays;
        self.graph.nodes.push(Node { class, rule, operands, results, place: (self.place, 0), computation: id, role });
    }

    /// Adds a data-flow edge: the sources and the target have one sharding.
    pub(super) fn edge(&mut self, id: CompId, sources: Vec<NameId>, target: NameId) {
        let dims = self.graph.value(target).dims.clone();
        let rule = identity(&dims, sources.len());
        self.push(id, Class::Edge, rule, (sources, vec![target]), NodeRole::Plain);
    }

    fn operation(&mut self, id: CompId, at: InstrId) -> Result<Vec<NameId>> {
        let instruction = &self.module[id][at];
        let count = instruction.operands().len();
        let rule = instruction.op().sharding_rule(&RuleContext::new(self.module, id, at))?;
        let plain: Vec<NameId> = (0..count).flat_map(|i| self.operand(id, at, i)).collect();
        let is_constant = match instruction.op() {
            Op::Constant(_) | Op::Iota(_) => true,
            Op::Broadcast(_) | Op::Reshape(_) | Op::Slice(_) => self.are_constant(&plain),
            _ => rule.as_ref().is_some_and(|rule| rule.is_elementwise) && self.are_constant(&plain),
        };
        let is_scalar = |name: &NameId| self.graph.value(*name).dims.is_empty();
        let is_expansion = matches!(instruction.op(), Op::Broadcast(_)) && plain.iter().all(is_scalar);
        let (role, operands) = match (is_constant, is_expansion) {
            (true, _) => (NodeRole::Constant, plain),
            (false, true) => (NodeRole::ScalarExpansion, plain),
            (false, false) => (NodeRole::Plain, self.all_used(id, at)?),
        };
        let results = self.fresh(id, at)?;
        let is_template = role != NodeRole::Plain;
        // Constants without a rule still need a node to be copied.
        let rule = rule.or_else(|| is_template.then(|| identity(&[], 0)));
        if let Some(rule) = rule {
            self.push(id, class(instruction.op(), &rule), rule, (operands, results.clone()), role);
            if is_template {
                self.templates.add_last(&self.graph);
            }
        }
        Ok(results)
    }

    fn are_constant(&self, names: &[NameId]) -> bool {
        names.iter().all(|&name| self.templates.is_constant(&self.graph, name))
    }

    fn role(&mut self, id: CompId, at: InstrId, role: Role) -> Result<Vec<NameId>> {
        check_arrays(&self.module[id], at, &role)?;
        match role {
            Role::Constraint(sharding) | Role::Reshard(sharding) => {
                let plain = self.operand(id, at, 0);
                let is_constant = self.are_constant(&plain);
                let operands = if is_constant { plain } else { self.used(id, at, 0)? };
                let results = self.fresh(id, at)?;
                let dims = self.graph.value(results[0]).dims.clone();
                let resolved = self.resolve(&sharding, &dims)?;
                let role = if is_constant { NodeRole::Constant } else { NodeRole::Constraint(resolved) };
                let rule = ShardingRule { is_elementwise: true, ..identity(&dims, 1) };
                self.push(id, Class::PassThrough, rule, (operands, results.clone()), role);
                if is_constant {
                    self.templates.add_last(&self.graph);
                }
                Ok(results)
            }
            Role::FunctionResult(_) => Ok(self.operand(id, at, 0)),
            Role::Group(group) => {
                for name in self.used(id, at, 0)? {
                    let value = self.graph.names[name].value;
                    self.graph.values[value].group = Some(group);
                    self.graph.names[name].users.push(None);
                }
                self.fresh(id, at)
            }
            Role::Barrier(direction) => self.identity_node(id, at, Class::Barrier(direction)),
            Role::DataFlowEdge(_) => self.identity_node(id, at, Class::Edge),
            Role::GlobalToLocal(edge) => self.manual_operands(id, at, &edge),
            Role::LocalToGlobal(edge) => self.manual_results(id, at, &edge),
        }
    }

    fn identity_node(&mut self, id: CompId, at: InstrId, class: Class) -> Result<Vec<NameId>> {
        let (operands, results) = (self.used(id, at, 0)?, self.fresh(id, at)?);
        let dims = self.graph.value(results[0]).dims.clone();
        let rule = ShardingRule { is_elementwise: class != Class::Edge, ..identity(&dims, 1) };
        self.push(id, class, rule, (operands, results.clone()), NodeRole::Plain);
        Ok(results)
    }

    /// Shardings that the program states for its results.
    fn result_shardings(&mut self, entry: CompId, count: usize) -> Result<Vec<Option<MeshSharding>>> {
        let computation = &self.module[entry];
        let mut shardings = Vec::new();
        for leaf in 0..count {
            let (source, _) = source_of(computation, computation.root(), leaf);
            let stated = match sdy::role(self.module, entry, source)? {
                Some(Role::FunctionResult(sharding)) => {
                    Some(self.resolve(&sharding, computation[source].shape().dims())?)
                }
                _ => None,
            };
            shardings.push(stated);
        }
        Ok(shardings)
    }
}

/// Rule of an operation whose operands and result are one array of these dimensions.
pub(super) fn identity(dims: &[usize], operands: usize) -> ShardingRule {
    let mut builder = RuleBuilder::with_dims(vec![dims.to_vec(); operands], vec![dims.to_vec()]);
    builder.pointwise_dims(dims, |_| sdy::FactorKind::PassThrough);
    builder.finish()
}

fn class(op: &Op, rule: &ShardingRule) -> Class {
    match op {
        Op::Reshape(_) | Op::Transpose(_) => Class::PassThrough,
        Op::DynamicSlice(_) | Op::DynamicUpdateSlice(_) => Class::DynamicSlice,
        Op::Broadcast(_) => Class::Broadcast,
        Op::CustomCall(call) if ["MoveToHost", "MoveToDevice"].contains(&call.target.as_str()) => Class::PassThrough,
        _ if rule.is_elementwise => Class::PassThrough,
        _ => Class::Other,
    }
}
