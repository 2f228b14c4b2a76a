//! Dataflow: the value in each leaf of each executed instruction.
//!
//! Tuples, their elements, barriers and bitcasts forward the values of their operands, so that only instructions that
//! compute something define a value. A *join* merges values where control flow meets, like a phi function in SSA form:
//! the state of a loop or the result of a conditional. Its sources are the values that flow into it. A state leaf that
//! every iteration passes on unchanged is no join but an alias of its initial value. So is a conditional's result if
//! all branches agree.

use xla_hlo::entity::SecondaryMap;
use xla_hlo::{CompId, Computation, Error, InstrId, Module, Result, Shape};

use super::ValueRef;
use super::role::{Role, leaf_array, leaf_count, role};

/// A value of a [`Flow`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct ValueId(pub(crate) u32);

impl ValueId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Maximum nesting of control flow. Each level costs stack; programs have a handful.
const MAX_NESTING: usize = 200;

/// Kind of definition of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    /// A leaf of an entry parameter.
    Parameter(usize),
    /// A leaf of a constant.
    Constant,
    /// Written by an instruction.
    Computed,
    /// A loop's state or a conditional's result.
    Join,
}

/// The value of a leaf.
#[derive(Clone, Debug)]
pub(crate) struct FlowValue {
    /// The instruction that defines the value: for a join, the while or conditional instruction.
    pub(crate) origin: ValueRef,
    pub(crate) kind: ValueKind,
    /// Size in bytes; 0 without memory.
    pub(crate) bytes: usize,
    /// Whether the value has memory; tokens and opaque values have none.
    pub(crate) in_memory: bool,
    /// Number `n` of `S(n)` in the layout.
    pub(crate) memory_space: i64,
}

/// Joins of control flow, by leaf of the instruction's value.
#[derive(Clone, Debug)]
pub(crate) struct Joins {
    /// Values after the join: joins of their own, or the values that they were simplified to.
    pub(crate) results: Vec<ValueId>,
    /// Incoming values: initial values and values after an iteration for a loop, one list per branch for a conditional.
    pub(crate) sources: Vec<Vec<ValueId>>,
}

/// Values and joins of an executed computation's instructions.
#[derive(Clone, Debug, Default)]
struct CompFlow {
    leaves: SecondaryMap<InstrId, Option<Vec<ValueId>>>,
    joins: SecondaryMap<InstrId, Option<Joins>>,
}

/// Values of a module, independent of schedules.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    values: Vec<FlowValue>,
    computations: SecondaryMap<CompId, Option<CompFlow>>,
    executed: Vec<CompId>,
}

impl Flow {
    /// Traces the values of all executed computations. Fails on computations with several callers.
    pub(crate) fn new(module: &Module) -> Result<Flow> {
        let mut builder = FlowBuilder {
            module,
            values: Vec::new(),
            same_as: Vec::new(),
            computations: SecondaryMap::default(),
            executed: Vec::new(),
        };
        let entry = module.entry();
        let mut parameters = Vec::new();
        for (number, &id) in entry.parameters().iter().enumerate() {
            parameters.push(builder.new_values(
                module.entry_id(),
                id,
                entry[id].shape(),
                &ValueKind::Parameter(number),
            )?);
        }
        builder.computation(module.entry_id(), &parameters, 0)?;
        Ok(builder.finish())
    }

    /// Returns all values, including unused ones that simplification replaced.
    pub(crate) fn values(&self) -> &[FlowValue] {
        &self.values
    }

    pub(crate) fn value(&self, id: ValueId) -> &FlowValue {
        &self.values[id.index()]
    }

    /// Returns the executed computations, callees before callers.
    pub(crate) fn executed(&self) -> &[CompId] {
        &self.executed
    }

    /// Returns the values of an instruction's leaves in depth-first order. Empty for instructions that are not
    /// executed.
    pub(crate) fn leaves(&self, computation: CompId, instruction: InstrId) -> &[ValueId] {
        let flow = self.computations[computation].as_ref();
        flow.and_then(|c| c.leaves[instruction].as_deref()).unwrap_or_default()
    }

    /// Returns the joins of a while or conditional instruction.
    pub(crate) fn joins(&self, computation: CompId, instruction: InstrId) -> Result<&Joins> {
        let flow = self.computations[computation].as_ref();
        flow.and_then(|c| c.joins[instruction].as_ref())
            .ok_or_else(|| Error::internal(format!("{instruction} of {computation} is not a while or conditional")))
    }

    /// Returns the values that an instruction reads: the leaves of all operands, in operand order.
    pub(crate) fn operand_leaves(&self, module: &Module, computation: CompId, id: InstrId) -> Vec<ValueId> {
        let operands = module[computation][id].operands();
        operands.iter().flat_map(|&o| self.leaves(computation, o)).copied().collect()
    }
}

struct FlowBuilder<'m> {
    module: &'m Module,
    values: Vec<FlowValue>,
    /// Union-find forest; maps each simplified join to the value that it is equal to.
    same_as: Vec<ValueId>,
    computations: SecondaryMap<CompId, Option<CompFlow>>,
    executed: Vec<CompId>,
}

impl FlowBuilder<'_> {
    /// Defines a value for each leaf of `shape`.
    fn new_values(
        &mut self,
        computation: CompId,
        instruction: InstrId,
        shape: &Shape,
        kind: &ValueKind,
    ) -> Result<Vec<ValueId>> {
        let mut out = Vec::new();
        for (path, leaf) in shape.leaves() {
            let index = u32::try_from(self.values.len())
                .map_err(|_| Error::resource_exhausted("the module has more than 2^32 values"))?;
            let array = leaf_array(leaf);
            self.values.push(FlowValue {
                origin: ValueRef { computation, instruction, path },
                kind: kind.clone(),
                bytes: array.map_or(0, |a| a.padded_byte_size()),
                in_memory: array.is_some(),
                memory_space: array.and_then(|a| a.layout()).map_or(0, |l| l.memory_space),
            });
            self.same_as.push(ValueId(index));
            out.push(ValueId(index));
        }
        Ok(out)
    }

    fn find(&mut self, mut id: ValueId) -> ValueId {
        while self.same_as[id.index()] != id {
            let next = self.same_as[self.same_as[id.index()].index()];
            self.same_as[id.index()] = next;
            id = next;
        }
        id
    }

    /// Traces a computation with the given values of its parameters. Returns the values of its root.
    fn computation(&mut self, id: CompId, parameters: &[Vec<ValueId>], depth: usize) -> Result<Vec<ValueId>> {
        let module = self.module;
        let computation = &module[id];
        if depth > MAX_NESTING {
            return Err(Error::unimplemented(format!(
                "control flow is nested deeper than {MAX_NESTING} computations, at {}",
                computation.name()
            )));
        }
        if self.computations[id].is_some() {
            return Err(Error::failed_precondition(format!(
                "computation {} is executed by several callers; flatten the call graph first",
                computation.name()
            )));
        }
        self.computations[id] = Some(CompFlow::default());
        let mut flow = CompFlow::default();
        for instr in computation.sequence() {
            let leaves = self.instruction(id, instr, &mut flow, parameters, depth)?;
            flow.leaves[instr] = Some(leaves);
        }
        let root = flow.leaves[computation.root()].clone().unwrap_or_default();
        self.computations[id] = Some(flow);
        self.executed.push(id);
        Ok(root)
    }

    fn instruction(
        &mut self,
        comp: CompId,
        id: InstrId,
        flow: &mut CompFlow,
        parameters: &[Vec<ValueId>],
        depth: usize,
    ) -> Result<Vec<ValueId>> {
        let computation = &self.module[comp];
        let instruction = &computation[id];
        let of = |flow: &CompFlow, i: usize| -> Result<Vec<ValueId>> {
            let leaves = instruction.operands().get(i).and_then(|&o| flow.leaves[o].clone());
            leaves.ok_or_else(|| invalid(computation, id))
        };
        match role(computation, id) {
            Role::Parameter(number) => parameters.get(number).cloned().ok_or_else(|| invalid(computation, id)),
            Role::Constant => self.new_values(comp, id, instruction.shape(), &ValueKind::Constant),
            Role::Compute => self.new_values(comp, id, instruction.shape(), &ValueKind::Computed),
            Role::Forward => {
                let all: Result<Vec<Vec<ValueId>>> = (0..instruction.operands().len()).map(|i| of(flow, i)).collect();
                Ok(all?.concat())
            }
            Role::First => of(flow, 0),
            Role::Element(index) => element(computation, id, &of(flow, 0)?, index),
            Role::Call(callee) => {
                let operands: Result<Vec<Vec<ValueId>>> =
                    (0..instruction.operands().len()).map(|i| of(flow, i)).collect();
                self.computation(callee, &operands?, depth + 1)
            }
            Role::While { condition, body } => {
                let init = of(flow, 0)?;
                let state = self.new_values(comp, id, instruction.shape(), &ValueKind::Join)?;
                self.computation(condition, std::slice::from_ref(&state), depth + 1)?;
                let next = self.computation(body, std::slice::from_ref(&state), depth + 1)?;
                for ((&joined, &first), &next) in state.iter().zip(&init).zip(&next) {
                    if self.find(next) == joined {
                        self.same_as[joined.index()] = self.find(first);
                    }
                }
                flow.joins[id] = Some(Joins { results: state.clone(), sources: vec![init, next] });
                Ok(state)
            }
            Role::Conditional(branches) => {
                let mut sources = Vec::with_capacity(branches.len());
                for (i, branch) in branches.into_iter().enumerate() {
                    sources.push(self.computation(branch, &[of(flow, i + 1)?], depth + 1)?);
                }
                let results = self.new_values(comp, id, instruction.shape(), &ValueKind::Join)?;
                for (leaf, &joined) in results.iter().enumerate() {
                    let mut from: Vec<ValueId> = sources.iter().filter_map(|s| s.get(leaf).copied()).collect();
                    from.iter_mut().for_each(|v| *v = self.find(*v));
                    from.dedup();
                    if let [only] = from[..] {
                        self.same_as[joined.index()] = only;
                    }
                }
                flow.joins[id] = Some(Joins { results: results.clone(), sources });
                Ok(results)
            }
        }
    }

    fn finish(mut self) -> Flow {
        let canonical: Vec<ValueId> = (0..self.values.len() as u32).map(|v| self.find(ValueId(v))).collect();
        let resolve = |list: &mut Vec<ValueId>| list.iter_mut().for_each(|v| *v = canonical[v.index()]);
        for &comp in &self.executed {
            let Some(flow) = &mut self.computations[comp] else { continue };
            for id in self.module[comp].ids() {
                if let Some(leaves) = &mut flow.leaves[id] {
                    resolve(leaves);
                }
                if let Some(joins) = &mut flow.joins[id] {
                    resolve(&mut joins.results);
                    joins.sources.iter_mut().for_each(resolve);
                }
            }
        }
        Flow { values: self.values, computations: self.computations, executed: self.executed }
    }
}

/// Returns the leaves of element `index` of operand 0, whose leaves are `all`.
fn element(computation: &Computation, id: InstrId, all: &[ValueId], index: usize) -> Result<Vec<ValueId>> {
    let tuple = computation[computation[id].operand(0)].shape();
    let elements = tuple.as_tuple().ok_or_else(|| invalid(computation, id))?;
    let start: usize = elements.iter().take(index).map(leaf_count).sum();
    let count = elements.get(index).map(leaf_count).ok_or_else(|| invalid(computation, id))?;
    all.get(start..start + count).map(<[ValueId]>::to_vec).ok_or_else(|| invalid(computation, id))
}

fn invalid(computation: &Computation, id: InstrId) -> Error {
    let name = computation[id].name();
    Error::internal(format!("%{name} in {} does not fit its operands; verify the module first", computation.name()))
}
