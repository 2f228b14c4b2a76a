//! Rewrites computations: instructions on the parts of one device in place of instructions on global values.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use xla_hlo::ops::Collective;
use xla_hlo::sdy::{self, Meshes, Role, TensorSharding, target};
use xla_hlo::{ArrayShape, CompId, Computation, Error, InstrId, Instruction, Module, Op, Result, ResultExt, Shape};

use super::place::{ByPlaces, Form, Place, Split, Value, common, only};
use crate::join::entry::device_counts;
use crate::join::rewrite::{edge_of_results, in_order, is_edge, predecessors, says_only, unshard, without_shardings};
use crate::rewrite::builder::Inserter;
use crate::rewrite::growth::{MAX_INSTRUCTIONS, check_depth};

/// Program under construction.
pub(super) struct Rewriter<'m> {
    pub source: &'m Module,
    pub target: Module,
    /// Computation of the new program that receives instructions.
    pub at: CompId,
    pub meshes: Meshes,
    /// Number of replicas.
    pub replicas: usize,
    /// Number of partitions.
    pub devices: usize,
    /// Whether split values become whole where their splits cannot be kept.
    pub gathers: bool,
    /// Computations without boundaries of manual computations, mapped to their copies.
    pub copies: HashMap<CompId, Callee>,
    /// Places of the states of loops, by the places at the start of the search for a fixed point. A loop inside of
    /// another one is emitted several times.
    pub states: HashMap<(CompId, InstrId), ByPlaces<Vec<Place>>>,
    /// Numbers of the first leaves of the elements of tuples of the original program.
    leaf_starts: HashMap<(CompId, InstrId), Rc<[usize]>>,
    /// Forms of bodies, conditions and branches of the original program.
    pub forms: HashMap<CompId, ByPlaces<Form>>,
    /// Copies of forms, which convert the result to other places.
    pub converted_forms: HashMap<CompId, ByPlaces<CompId>>,
    /// Number of instructions and elements of tuples in each computation of the original program.
    weights: HashMap<CompId, usize>,
    /// Maximum number of instructions and elements of tuples to emit.
    limit: usize,
    /// Number of instructions and elements of tuples that were emitted for computations.
    emitted: usize,
    /// Depth of the computation that is emitted.
    depth: usize,
}

/// Copy of a computation.
#[derive(Clone, Copy)]
pub(super) struct Callee {
    pub copy: CompId,
    /// Whether it contains collectives, random numbers or side effects, so that its result depends on the device.
    is_of_device: bool,
}

impl<'m> Rewriter<'m> {
    pub fn new(source: &'m Module, entry: Computation, gathers: bool) -> Result<Rewriter<'m>> {
        let [replicas, devices] = device_counts(source)?;
        let mut target = Module::new(source.name());
        let mut copies: HashMap<CompId, Callee> = HashMap::new();
        for id in source.post_order() {
            let callees = |instruction: &Instruction| instruction.op().called_computations();
            let has_boundary = source[id].iter().any(|(_, instruction)| {
                is_boundary(instruction.op()) || callees(instruction).iter().any(|callee| !copies.contains_key(callee))
            });
            if id == source.entry_id() || has_boundary {
                continue;
            }
            let is_of_device = source[id].iter().any(|(_, instruction)| {
                is_of_device(instruction.op(), gathers)
                    || callees(instruction).iter().any(|callee| copies[callee].is_of_device)
            });
            let copy = without_shardings(&source[id], |callee| copies[&callee].copy)?;
            copies.insert(id, Callee { copy: target.add(copy), is_of_device });
        }
        let at = target.add(entry);
        let meshes = sdy::meshes(source)?;
        let weights: HashMap<CompId, usize> = source.ids().map(|id| (id, weight(&source[id]))).collect();
        Ok(Rewriter {
            source,
            target,
            at,
            meshes,
            replicas,
            devices,
            gathers,
            copies,
            states: HashMap::new(),
            leaf_starts: HashMap::new(),
            forms: HashMap::new(),
            converted_forms: HashMap::new(),
            limit: MAX_INSTRUCTIONS.max(4 * weights.values().sum::<usize>()),
            weights,
            emitted: 0,
            depth: 0,
        })
    }

    /// Returns an inserter for the current computation.
    pub fn inserter(&mut self) -> Inserter<'_> {
        Inserter::new(&mut self.target, self.at)
    }

    /// Computes the split of a global array.
    pub fn split(&self, sharding: Option<&TensorSharding>, shape: &ArrayShape) -> Result<Rc<Split>> {
        Split::new(&self.meshes, sharding, shape, self.devices).map(Rc::new)
    }

    /// Returns the new program.
    pub fn finish(mut self, root: InstrId) -> Result<Module> {
        self.target.computation_mut(self.at).set_root(root);
        self.target.set_entry(self.at);
        let reached: HashSet<CompId> = self.target.reachable().into_iter().collect();
        let unused: Vec<CompId> = self.target.ids().filter(|id| !reached.contains(id)).collect();
        for id in unused {
            self.target.remove(id)?;
        }
        Ok(self.target)
    }

    /// Counts emitted instructions and elements of tuples. Returns an error if the program becomes too large.
    pub fn count(&mut self, added: usize) -> Result<()> {
        self.emitted += added;
        let limit = self.limit;
        match self.emitted > limit {
            true => Err(Error::resource_exhausted(format!(
                "the program of each device has more than {limit} instructions and elements of tuples"
            ))),
            false => Ok(()),
        }
    }

    /// Emits the instructions of a computation into the current one. Returns its root.
    pub fn computation(&mut self, id: CompId, parameters: &[Value]) -> Result<Value> {
        let graph = &self.source[id];
        self.depth += 1;
        check_depth(self.depth)?;
        self.count(self.weights[&id])?;
        let mut values: HashMap<InstrId, Value> = HashMap::with_capacity(graph.len());
        for at in in_order(graph) {
            let instruction = &graph[at];
            let operands: Vec<Value> = instruction.operands().iter().map(|operand| values[operand].clone()).collect();
            let value = match instruction.op() {
                Op::Parameter(parameter) => parameters[parameter.number].clone(),
                _ => self
                    .instruction(id, at, &operands)
                    .context(|| format!("%{} of {}", instruction.name(), graph.name()))?,
            };
            for before in &predecessors(graph, at) {
                let (before, after) = (values[before].id, value.id);
                // An annotation of its operand has no instruction of its own.
                if before != after && !operands.iter().any(|operand| operand.id == after) {
                    self.target.computation_mut(self.at).add_control_dependency(before, after);
                }
            }
            values.insert(at, value);
        }
        self.depth -= 1;
        Ok(values[&graph.root()].clone())
    }

    fn instruction(&mut self, computation: CompId, id: InstrId, operands: &[Value]) -> Result<Value> {
        let instruction = &self.source[computation][id];
        match instruction.op() {
            Op::CustomCall(call) if call.target == target::GROUP => {
                Ok(Value { id: self.inserter().tuple(&[])?, places: Rc::new([]) })
            }
            Op::CustomCall(call) if says_only(&call.target) || is_edge(&call.target) => {
                match sdy::role(self.source, computation, id)? {
                    Some(Role::GlobalToLocal(edge)) => {
                        self.enter(&edge, &self.source[computation].operand_shapes(id), operands)
                    }
                    Some(Role::LocalToGlobal(edge)) => self.leave(&edge, instruction.shape(), operands),
                    Some(Role::Constraint(sharding) | Role::Reshard(sharding) | Role::FunctionResult(sharding)) => {
                        self.constrain(&sharding, instruction.shape(), operands)
                    }
                    _ => only(operands),
                }
            }
            Op::Call(call) if self.is_rewritten(instruction, operands) => {
                if !(instruction.control_predecessors().is_empty() && instruction.control_successors().is_empty()) {
                    return Err(Error::unimplemented("a call on global values has control dependencies"));
                }
                self.computation(call.computation, operands)
            }
            Op::While(op) if self.is_rewritten(instruction, operands) => match operands {
                [init] => self.while_loop(computation, id, op, init),
                _ => Err(Error::internal("while has no state operand")),
            },
            Op::Conditional(op) if self.is_rewritten(instruction, operands) => {
                self.conditional(computation, id, op, operands)
            }
            Op::OptBarrier(_) | Op::AddDependency(_) => {
                let Some(value) = operands.first() else { return Err(Error::internal("it has no operand")) };
                let shape = self.target[self.at][value.id].shape().clone();
                let ids = operands.iter().map(|operand| operand.id).collect();
                let id = self.emit(instruction, instruction.op().clone(), shape, ids);
                Ok(Value { id, places: value.places.clone() })
            }
            Op::Tuple(_) => {
                let ids: Vec<InstrId> = operands.iter().map(|operand| operand.id).collect();
                let places = operands.iter().flat_map(|operand| operand.places.iter().cloned()).collect();
                Ok(Value { id: self.inserter().tuple(&ids)?, places })
            }
            Op::GetTupleElement(op) => {
                let starts = self.leaf_starts(computation, instruction.operand(0));
                let places = operands[0].places[starts[op.index]..starts[op.index + 1]].into();
                // An instruction that waits for others, or others for it, has an instruction of its own.
                let is_ordered =
                    !(instruction.control_predecessors().is_empty() && instruction.control_successors().is_empty());
                let id = match is_ordered {
                    true => self.inserter().get(operands[0].id, op.index)?,
                    false => self.element(operands[0].id, op.index)?,
                };
                Ok(Value { id, places })
            }
            _ => self.copy(computation, id, operands),
        }
    }

    /// Whether computations that an instruction calls are rewritten: they contain boundaries, or operands are split.
    fn is_rewritten(&self, instruction: &Instruction, operands: &[Value]) -> bool {
        let callees = instruction.op().called_computations();
        callees.iter().any(|callee| !self.copies.contains_key(callee)) || is_any_split(operands)
    }

    /// Emits an operation.
    fn copy(&mut self, computation: CompId, id: InstrId, operands: &[Value]) -> Result<Value> {
        let instruction = &self.source[computation][id];
        let mut op = instruction.op().clone();
        let callees = op.called_computations();
        if callees.iter().any(|callee| !self.copies.contains_key(callee)) {
            return Err(Error::unimplemented(format!("{} calls a manual computation", op.opcode())));
        }
        let is_of_device =
            is_of_device(&op, self.gathers) || callees.iter().any(|callee| self.copies[callee].is_of_device);
        let is_global = operands.iter().flat_map(|operand| operand.places.iter()).any(|place| place.split().is_some());
        if is_global && is_of_device {
            let cause =
                "may have an effect or differ between devices, and takes a global value, which needs a partitioner";
            return Err(Error::unimplemented(format!("{} {cause}", op.opcode())));
        }
        if is_any_split(operands) {
            return match self.on_parts(computation, id, operands) {
                Err(Error::Unimplemented(_)) if self.gathers => {
                    let operands = self.gathered_operands(computation, id, operands)?;
                    match is_any_split(&operands) {
                        true => self.on_parts(computation, id, &operands),
                        false => self.copy(computation, id, &operands),
                    }
                }
                value => value,
            };
        }
        let mut place = common(operands.iter().flat_map(|operand| operand.places.iter()))?;
        if place == Place::Same && is_of_device {
            if !is_id(&op) && edge_of_results(self.source, computation, id)?.is_none() {
                return Err(Error::unimplemented("its effect does not belong to a manual computation"));
            }
            place = Place::Local;
        }
        op.map_called_computations(&mut |callee| self.copies[&callee].copy);
        let places = self.places(&place, instruction.shape())?;
        let ids = operands.iter().map(|operand| operand.id).collect();
        Ok(Value { id: self.emit(instruction, op, instruction.shape().clone(), ids), places })
    }

    /// Adds an instruction with the name and the annotations of another one, except for shardings.
    pub fn emit(&mut self, source: &Instruction, op: impl Into<Op>, shape: Shape, operands: Vec<InstrId>) -> InstrId {
        let mut copy = Instruction::new(op.into(), shape, operands).with_name(source.name());
        if let Some(annotations) = source.annotations() {
            let mut annotations = annotations.clone();
            unshard(&mut annotations);
            copy = copy.with_annotations(Some(Box::new(annotations)));
        }
        self.target.computation_mut(self.at).add(copy)
    }

    /// Returns the places of all leaves of a result whose operands have this place.
    fn places(&self, place: &Place, shape: &Shape) -> Result<Rc<[Place]>> {
        let leaves = shape.leaves().into_iter();
        let places = leaves.map(|(_, leaf)| match (place, leaf.as_array()) {
            (_, None) => Ok(Place::Same),
            (Place::Part(split), Some(array)) if split.is_replicated() => Ok(Place::Part(self.split(None, array)?)),
            _ => Ok(place.clone()),
        });
        places.collect()
    }

    /// Returns the number of the first leaf of each element of a tuple, and the number of leaves.
    pub fn leaf_starts(&mut self, computation: CompId, tuple: InstrId) -> Rc<[usize]> {
        let source = self.source;
        let starts = || {
            let elements = source[computation][tuple].shape().as_tuple().unwrap_or_default();
            let ends = elements.iter().scan(0, |end, element| {
                *end += element.leaves().len();
                Some(*end)
            });
            std::iter::once(0).chain(ends).collect()
        };
        self.leaf_starts.entry((computation, tuple)).or_insert_with(starts).clone()
    }

    /// Returns an element of a tuple.
    pub fn element(&mut self, tuple: InstrId, index: usize) -> Result<InstrId> {
        let instruction = &self.target[self.at][tuple];
        match (instruction.op(), instruction.operands().get(index)) {
            (Op::Tuple(_), Some(&element)) => Ok(element),
            _ => self.inserter().get(tuple, index),
        }
    }
}

/// Returns the number of instructions of a computation, where each element of a tuple counts.
pub(super) fn weight(graph: &Computation) -> usize {
    graph.iter().map(|(_, instruction)| instruction.shape().leaves().len().max(1)).sum()
}

/// Whether an operand, or an element of one, is split or has partial values.
pub(super) fn is_any_split(operands: &[Value]) -> bool {
    let mut splits = operands.iter().flat_map(|operand| operand.places.iter()).filter_map(Place::split);
    splits.any(|split| !split.is_replicated())
}

/// Whether an operation returns the number of a device, without an effect.
fn is_id(op: &Op) -> bool {
    matches!(op, Op::Collective(Collective::PartitionId | Collective::ReplicaId))
}

fn is_boundary(op: &Op) -> bool {
    matches!(op, Op::CustomCall(call) if is_edge(&call.target))
}

/// Whether the result or the effect of an operation differs between devices, although its operands are equal. With
/// gathers, custom calls without side effects are operations on global values.
fn is_of_device(op: &Op, gathers: bool) -> bool {
    match op {
        Op::Collective(_) | Op::Rng(_) => true,
        Op::CustomCall(_) if gathers && !op.has_side_effect() => false,
        Op::CustomCall(call) => !says_only(&call.target),
        op => op.has_side_effect() && op.called_computations().is_empty(),
    }
}
