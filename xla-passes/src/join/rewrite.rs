//! Rewrites computations: emits each instruction once per lane, or once for lanes that compute the same.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use xla_hlo::sdy::{self, ManualEdge, Meshes, Role, target};
use xla_hlo::{Annotations, CompId, Computation, Error, InstrId, Instruction, Module, Op, Result, ResultExt};

use super::lanes::{ByHand, Lanes, Value};
use crate::rewrite::builder::Inserter;
use crate::rewrite::growth::check_inlining;
use crate::trip_count;

/// Maximum number of instructions of the program, in which instructions are emitted once per lane.
const MAX_INSTRUCTIONS: usize = 1 << 20;

/// A program under construction.
pub(super) struct Rewriter<'m> {
    pub source: &'m Module,
    pub target: Module,
    pub meshes: Meshes,
    /// Computations that are unchanged on one device, mapped to computations of the new program.
    plain: HashMap<CompId, CompId>,
    /// Whether each device has its own values at the entry, and communicates.
    pub is_per_device: bool,
    /// Computations with side effects in addition to collectives.
    pub effects: HashSet<CompId>,
    added: usize,
}

impl<'m> Rewriter<'m> {
    /// Creates a program without an entry. `is_per_device` states whether each device has its own values.
    pub fn new(source: &'m Module, is_per_device: bool) -> Result<Rewriter<'m>> {
        let mut target = Module::new(source.name());
        let mut plain: HashMap<CompId, CompId> = HashMap::new();
        let mut effects: HashSet<CompId> = HashSet::new();
        for id in source.post_order() {
            if has_effects(&source[id], &effects) {
                effects.insert(id);
            }
            if id == source.entry_id() || !is_plain(&source[id], &plain) {
                continue;
            }
            let copy = without_shardings(&source[id], |callee| plain[&callee])?;
            plain.insert(id, target.add(copy));
        }
        // Calls without operands are inlined because their lanes depend on their users.
        check_inlining(source, |id| !plain.contains_key(&id) || source[id].parameters().is_empty())?;
        Ok(Rewriter { source, target, meshes: sdy::meshes(source)?, plain, is_per_device, effects, added: 0 })
    }

    /// Returns the new computation for one that is unchanged on one device.
    pub fn plain(&self, id: CompId) -> Result<CompId> {
        self.plain
            .get(&id)
            .copied()
            .ok_or_else(|| Error::unimplemented("the computation of an operation contains collectives"))
    }

    /// Emits a computation into `at`. Returns its root.
    pub fn write(&mut self, at: CompId, id: CompId, parameters: &[Value], around: &Rc<Lanes>) -> Result<Value> {
        let computation = &self.source[id];
        let mut values: HashMap<InstrId, Value> = HashMap::with_capacity(computation.len());
        for instruction_id in in_order(computation) {
            let instruction = &computation[instruction_id];
            let operands: Vec<Value> = instruction.operands().iter().map(|operand| values[operand].clone()).collect();
            let value = match instruction.op() {
                Op::Parameter(parameter) => parameters[parameter.number].clone(),
                _ => self
                    .instruction(at, id, instruction_id, &operands, around)
                    .context(|| format!("%{} of {}", instruction.name(), computation.name()))?,
            };
            for before in &predecessors(computation, instruction_id) {
                // An annotation of its operand has no instruction of its own.
                let is_operand = |id: &InstrId| operands.iter().any(|operand| operand.ids.contains(id));
                let pairs = values[before].ids.iter().zip(&value.ids);
                for (&before, &after) in pairs.filter(|(before, after)| before != after && !is_operand(after)) {
                    self.target.computation_mut(at).add_control_dependency(before, after);
                }
            }
            values.insert(instruction_id, value);
        }
        Ok(values[&computation.root()].clone())
    }

    fn instruction(
        &mut self,
        at: CompId,
        computation: CompId,
        id: InstrId,
        operands: &[Value],
        around: &Rc<Lanes>,
    ) -> Result<Value> {
        let instruction = &self.source[computation][id];
        let lanes = operands.iter().map(|operand| &operand.lanes).max_by_key(|lanes| lanes.devices.len());
        let lanes = lanes.unwrap_or(around).clone();
        let operands: Vec<Value> = operands.iter().map(|operand| operand.inside(&lanes)).collect::<Result<_>>()?;
        let operands = &operands[..];
        match instruction.op() {
            Op::Collective(op) => self.collective(at, op, operands, &lanes),
            Op::CustomCall(call) if call.target == target::GROUP => {
                Ok(Value::same(Inserter::new(&mut self.target, at).tuple(&[])?, &lanes))
            }
            Op::CustomCall(call) if says_only(&call.target) => match operands {
                [operand] => Ok(operand.clone()),
                _ => Err(Error::invalid_argument("it takes one operand")),
            },
            Op::CustomCall(call) if is_edge(&call.target) => match sdy::role(self.source, computation, id)? {
                Some(Role::GlobalToLocal(edge)) => self.split(at, &edge, operands, &lanes),
                Some(Role::LocalToGlobal(edge)) => self.unite(at, &edge, operands, &lanes),
                _ => Err(Error::internal("the custom call is not a boundary of a manual computation")),
            },
            Op::Call(call) if !self.plain.contains_key(&call.computation) || operands.is_empty() => {
                // Without operands, the users of the results determine the lanes.
                let lanes = match edge_of_results(self.source, computation, id)? {
                    Some(edge) if operands.is_empty() => ByHand::new(&edge, &self.meshes)?.inside(&lanes)?,
                    _ => lanes,
                };
                self.write(at, call.computation, operands, &lanes)
            }
            Op::While(op) if !self.plain.contains_key(&op.body) || !self.plain.contains_key(&op.condition) => {
                let is_counted = trip_count(self.source, computation, id).is_some();
                self.while_loop(at, op, operands, is_counted)
            }
            Op::Conditional(op) if op.branches.iter().any(|branch| !self.plain.contains_key(branch)) => {
                self.conditional(at, op, operands)
            }
            _ => self.copy(at, instruction, operands, &lanes),
        }
    }

    /// Emits the same operation for each lane.
    fn copy(&mut self, at: CompId, instruction: &Instruction, operands: &[Value], lanes: &Rc<Lanes>) -> Result<Value> {
        let mut op = instruction.op().clone();
        for callee in op.called_computations() {
            self.plain(callee)?;
        }
        op.map_called_computations(&mut |callee| self.plain[&callee]);
        let is_same = operands.iter().all(Value::is_same) && !op.has_side_effect() && !matches!(op, Op::Rng(_));
        let count = if is_same { 1 } else { lanes.devices.len() };
        self.added += count;
        if self.added > MAX_INSTRUCTIONS {
            return Err(Error::resource_exhausted(format!(
                "the program for all of its devices has more than {MAX_INSTRUCTIONS} instructions"
            )));
        }
        let graph = self.target.computation_mut(at);
        let mut ids = Vec::with_capacity(lanes.devices.len());
        for lane in 0..count {
            let row: Vec<InstrId> = operands.iter().map(|operand| operand.ids[lane]).collect();
            let mut copy = Instruction::new(op.clone(), instruction.shape().clone(), row);
            copy = copy.with_name(instruction.name());
            if let Some(annotations) = instruction.annotations() {
                let mut annotations = annotations.clone();
                unshard(&mut annotations);
                copy = copy.with_annotations(Some(Box::new(annotations)));
            }
            ids.push(graph.add(copy));
        }
        let first = ids[0];
        ids.resize(lanes.devices.len(), first);
        Ok(Value { ids, lanes: lanes.clone() })
    }
}

/// Returns the instructions in their current order, which is the order of effects, if it is topological; otherwise
/// operands first.
pub(crate) fn in_order(computation: &Computation) -> Vec<InstrId> {
    let standing: Vec<InstrId> = computation.ids().collect();
    let place: HashMap<InstrId, usize> = standing.iter().enumerate().map(|(place, &id)| (id, place)).collect();
    let is_ordered = standing.iter().all(|id| {
        let instruction = &computation[*id];
        instruction.operands().iter().chain(instruction.control_predecessors()).all(|before| place[before] < place[id])
    });
    if is_ordered { standing } else { computation.sequence() }
}

/// Returns the control predecessors of an instruction. Annotations may have no instruction of their own in the new
/// program, so the predecessors of an annotation follow it.
pub(crate) fn predecessors(computation: &Computation, id: InstrId) -> Vec<InstrId> {
    let mut list = computation[id].control_predecessors().to_vec();
    let (mut seen, mut next): (HashSet<InstrId>, usize) = (list.iter().copied().collect(), 0);
    while let Some(&before) = list.get(next) {
        next += 1;
        if matches!(computation[before].op(), Op::CustomCall(call) if says_only(&call.target)) {
            list.extend(computation[before].control_predecessors().iter().filter(|&&id| seen.insert(id)));
        }
    }
    list
}

/// Returns the end of the manual computation that the results of an instruction leave, possibly through annotations and
/// elements of tuples.
pub(crate) fn edge_of_results(module: &Module, computation: CompId, id: InstrId) -> Result<Option<ManualEdge>> {
    let (graph, mut next) = (&module[computation], vec![id]);
    while let Some(id) = next.pop() {
        for &user in graph[id].users() {
            match graph[user].op() {
                Op::GetTupleElement(_) => next.push(user),
                Op::CustomCall(call) if says_only(&call.target) => next.push(user),
                _ => {
                    if let Some(Role::LocalToGlobal(edge)) = sdy::role(module, computation, user)? {
                        return Ok(Some(edge));
                    }
                }
            }
        }
    }
    Ok(None)
}

/// Returns a copy of a computation without shardings and annotations of them, which calls other computations.
pub(crate) fn without_shardings(
    computation: &Computation,
    mut callee: impl FnMut(CompId) -> CompId,
) -> Result<Computation> {
    let mut copy = computation.clone();
    drop_roles(&mut copy)?;
    copy.map_called_computations(&mut callee);
    let annotated: Vec<InstrId> = copy.ids().filter(|&id| copy[id].annotations().is_some()).collect();
    annotated.into_iter().for_each(|id| unshard(copy.annotations_mut(id)));
    Ok(copy)
}

/// Removes sharding annotations: on one device, nothing is split.
pub(crate) fn unshard(annotations: &mut Annotations) {
    annotations.sharding = None;
    annotations.frontend_attributes.retain(|name, _| !name.starts_with("xla.sdy."));
}

/// Whether a custom call only annotates the split of its operand.
pub(crate) fn says_only(name: &str) -> bool {
    [target::CONSTRAINT, target::FUNCTION_RESULT, target::GROUP, target::BARRIER, target::DATA_FLOW_EDGE]
        .contains(&name)
}

/// Whether a custom call is the boundary of a manual computation.
pub(crate) fn is_edge(name: &str) -> bool {
    [target::GLOBAL_TO_LOCAL, target::LOCAL_TO_GLOBAL, target::FULL_TO_SHARD, target::SHARD_TO_FULL].contains(&name)
}

/// Removes instructions that only annotate the split of a value.
fn drop_roles(computation: &mut Computation) -> Result<()> {
    let says = |id: &InstrId| matches!(computation[*id].op(), Op::CustomCall(call) if says_only(&call.target));
    let roles: Vec<InstrId> = computation.ids().filter(says).collect();
    for id in roles {
        let operand = computation[id].operands().first().copied();
        if let Some(operand) = operand.filter(|&x| computation[x].shape().compatible(computation[id].shape())) {
            computation.replace_all_uses(id, operand);
        }
        if computation[id].users().is_empty() && computation.root() != id {
            let after = computation[id].control_successors().to_vec();
            for before in operand.into_iter().chain(predecessors(computation, id)) {
                after.iter().filter(|&&after| after != before).for_each(|&after| {
                    computation.add_control_dependency(before, after);
                });
            }
            computation.remove(id)?;
        }
    }
    Ok(())
}

/// Whether a computation has side effects other than those of collectives and boundaries, or calls one that has.
fn has_effects(computation: &Computation, effects: &HashSet<CompId>) -> bool {
    computation.iter().any(|(_, instruction)| {
        let op = instruction.op();
        let is_ours = match op {
            Op::Collective(_) => true,
            Op::CustomCall(call) => says_only(&call.target) || is_edge(&call.target),
            _ => false,
        };
        let calls = op.called_computations();
        op.has_side_effect() && !is_ours && calls.is_empty() || calls.iter().any(|callee| effects.contains(callee))
    })
}

/// Whether a computation has the same meaning on one device.
fn is_plain(computation: &Computation, plain: &HashMap<CompId, CompId>) -> bool {
    computation.iter().all(|(_, instruction)| {
        let is_own = match instruction.op() {
            Op::Collective(_) => false,
            Op::CustomCall(call) => !is_edge(&call.target),
            _ => true,
        };
        is_own && instruction.op().called_computations().iter().all(|callee| plain.contains_key(callee))
    })
}
