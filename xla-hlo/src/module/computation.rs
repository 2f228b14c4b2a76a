//! Computation: a graph of instructions with parameters and a root, and the few methods that may edit it.

use std::collections::{HashMap, HashSet};

use super::{CompId, InstrId, Instruction, names};
use crate::entity::{Arena, SecondaryMap};
use crate::ops::Op;
use crate::{Error, Result, Shape};

/// A function: instructions in an arena, one of them the root.
///
/// Every edit goes through a method that keeps users and names consistent and counts itself, so that a pass cannot
/// misreport whether it changed something (see [`Computation::revision`]).
#[derive(Clone, Debug)]
pub struct Computation {
    name: String,
    instructions: Arena<InstrId, Instruction>,
    parameters: Vec<InstrId>,
    root: Option<InstrId>,
    names: HashMap<String, InstrId>,
    next_suffix: HashMap<String, u32>,
    schedule: Option<Vec<InstrId>>,
    execution_thread: String,
    revision: u64,
}

/// The thread that instructions run on unless the text says otherwise.
pub const MAIN_THREAD: &str = "main";

impl Computation {
    /// An empty computation.
    pub fn new(name: impl Into<String>) -> Computation {
        Computation {
            name: name.into(),
            instructions: Arena::default(),
            parameters: Vec::new(),
            root: None,
            names: HashMap::new(),
            next_suffix: HashMap::new(),
            schedule: None,
            execution_thread: MAIN_THREAD.to_string(),
            revision: 0,
        }
    }

    /// The name, unique in its module, without `%`.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn set_name(&mut self, name: String) {
        self.name = name;
        self.revision += 1;
    }

    /// Counts edits; grows with each.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The thread this computation runs on.
    pub fn execution_thread(&self) -> &str {
        &self.execution_thread
    }

    /// Sets the thread this computation runs on.
    pub fn set_execution_thread(&mut self, thread: impl Into<String>) {
        self.execution_thread = thread.into();
        self.revision += 1;
    }

    /// Parameters by number. Complete and contiguous in a verified module.
    pub fn parameters(&self) -> &[InstrId] {
        &self.parameters
    }

    /// The root. Panics before one was set: builders and the parser always set it.
    pub fn root(&self) -> InstrId {
        self.root.expect("a finished computation has a root")
    }

    /// The root, or `None` while the computation is being built.
    pub fn root_if_set(&self) -> Option<InstrId> {
        self.root
    }

    /// The shape of the result.
    pub fn result_shape(&self) -> &Shape {
        self[self.root()].shape()
    }

    /// Ids of live instructions, oldest first. Use [`Computation::post_order`] where operands must come first.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = InstrId> + '_ {
        self.instructions.ids()
    }

    /// Live instructions, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (InstrId, &Instruction)> {
        self.instructions.iter()
    }

    /// Number of instructions.
    pub fn len(&self) -> usize {
        self.instructions.len()
    }

    /// Whether there is no instruction.
    pub fn is_empty(&self) -> bool {
        self.instructions.is_empty()
    }

    /// The instruction, unless it was removed.
    pub fn get(&self, id: InstrId) -> Option<&Instruction> {
        self.instructions.get(id)
    }

    /// The instruction of that name.
    pub fn find(&self, name: &str) -> Option<InstrId> {
        self.names.get(name).copied()
    }

    /// Shapes of an instruction's operands.
    pub fn operand_shapes(&self, id: InstrId) -> Vec<&Shape> {
        self[id].operands().iter().map(|&o| self[o].shape()).collect()
    }

    /// The order in which instructions run, once scheduled.
    pub fn schedule(&self) -> Option<&[InstrId]> {
        self.schedule.as_deref()
    }

    /// Sets or clears the order in which instructions run.
    pub fn set_schedule(&mut self, schedule: Option<Vec<InstrId>>) {
        self.schedule = schedule;
        self.revision += 1;
    }

    /// All instructions, operands and control predecessors before their users, otherwise oldest first.
    ///
    /// A list that already is in that order by id comes back unchanged. Linear time, no recursion.
    pub fn post_order(&self) -> Vec<InstrId> {
        let mut order = Vec::with_capacity(self.len());
        let mut seen = SecondaryMap::<InstrId, bool>::new(false);
        let mut stack: Vec<(InstrId, usize)> = Vec::new();
        for start in self.ids() {
            if seen[start] {
                continue;
            }
            seen[start] = true;
            stack.push((start, 0));
            while let Some((id, next)) = stack.last_mut() {
                let instruction = &self[*id];
                let before = instruction.operands.iter().chain(&instruction.control_predecessors).nth(*next);
                *next += 1;
                match before {
                    Some(&operand) if !seen[operand] => {
                        seen[operand] = true;
                        stack.push((operand, 0));
                    }
                    Some(_) => {}
                    None => {
                        order.push(*id);
                        stack.pop();
                    }
                }
            }
        }
        order
    }

    /// The schedule if there is one, else [`Computation::post_order`].
    pub fn sequence(&self) -> Vec<InstrId> {
        self.schedule.clone().unwrap_or_else(|| self.post_order())
    }

    /// Adds an instruction whose operands are already here. An empty name becomes the opcode's; a taken name gets a
    /// number.
    pub fn add(&mut self, instruction: Instruction) -> InstrId {
        let id = self.append(instruction);
        if let Op::Parameter(p) = &self[id].op {
            // Numbers may come in any order; holes are filled by later parameters, and the verifier reports those that
            // remain.
            let number = p.number;
            self.parameters.pop();
            let at = self.parameters.partition_point(|&p| self.parameter_number(p) < number);
            self.parameters.insert(at, id);
        }
        id
    }

    /// Like [`Computation::add`], but parameters stay in the order in which they come, until
    /// [`Computation::sort_parameters`]: that takes less time where there are many, in any order.
    pub(crate) fn append(&mut self, mut instruction: Instruction) -> InstrId {
        self.revision += 1;
        let wish = if instruction.name.is_empty() { instruction.opcode().name() } else { &instruction.name };
        let name = self.unique_name(wish);
        instruction.name.clone_from(&name);
        instruction.users.clear();
        instruction.control_successors.clear();
        let operands = instruction.operands.clone();
        let predecessors = std::mem::take(&mut instruction.control_predecessors);
        let is_parameter = matches!(instruction.op, Op::Parameter(_));
        let id = self.instructions.push(instruction);
        self.names.insert(name, id);
        for operand in operands {
            self.instructions[operand].users.insert(id);
        }
        for predecessor in predecessors {
            self.add_control_dependency(predecessor, id);
        }
        if is_parameter {
            self.parameters.push(id);
        }
        id
    }

    /// Puts parameters in the order of their numbers; of equal numbers the one that came later is first.
    pub(crate) fn sort_parameters(&mut self) {
        let mut parameters = std::mem::take(&mut self.parameters);
        parameters.sort_by_key(|&p| (self.parameter_number(p), std::cmp::Reverse(p)));
        self.parameters = parameters;
    }

    fn parameter_number(&self, id: InstrId) -> usize {
        match &self[id].op {
            Op::Parameter(p) => p.number,
            _ => usize::MAX,
        }
    }

    fn unique_name(&mut self, wish: &str) -> String {
        names::unique(wish, &mut self.next_suffix, |name| self.names.contains_key(name))
    }

    fn add_user(&mut self, operand: InstrId, user: InstrId) {
        self.instructions[operand].users.insert(user);
    }

    fn drop_user(&mut self, operand: InstrId, user: InstrId) {
        if !self[user].operands.contains(&operand) {
            self.instructions[operand].users.remove(user);
        }
    }

    /// Makes `id` the root.
    pub fn set_root(&mut self, id: InstrId) {
        if self.root != Some(id) {
            self.root = Some(id);
            self.revision += 1;
        }
    }

    /// Replaces operand `i` of `user`.
    pub fn replace_operand(&mut self, user: InstrId, i: usize, new: InstrId) {
        let old = self[user].operands[i];
        if old == new {
            return;
        }
        self.revision += 1;
        self.instructions[user].operands[i] = new;
        self.add_user(new, user);
        self.drop_user(old, user);
    }

    /// Replaces all operands of `user`, of which there may be another number afterwards.
    pub fn set_operands(&mut self, user: InstrId, operands: Vec<InstrId>) {
        self.revision += 1;
        let old = std::mem::replace(&mut self.instructions[user].operands, operands.clone());
        for operand in operands {
            self.add_user(operand, user);
        }
        for operand in old {
            self.drop_user(operand, user);
        }
    }

    /// Lets every user of `old`, and the root if it is `old`, use `new` instead. `new` itself may use `old` and keeps
    /// doing so.
    pub fn replace_all_uses(&mut self, old: InstrId, new: InstrId) {
        if old == new {
            return;
        }
        for user in self[old].users().to_vec() {
            if user == new {
                continue;
            }
            self.revision += 1;
            for operand in &mut self.instructions[user].operands {
                if *operand == old {
                    *operand = new;
                }
            }
            self.add_user(new, user);
            self.drop_user(old, user);
        }
        if self.root == Some(old) {
            self.set_root(new);
        }
    }

    /// Replaces the operation, keeping operands, users and name. For parameters, use add and remove.
    pub fn set_op(&mut self, id: InstrId, op: Op) {
        self.instructions[id].op = op;
        self.revision += 1;
    }

    /// Replaces the shape; the verifier judges the result.
    pub fn set_shape(&mut self, id: InstrId, shape: Shape) {
        if self[id].shape != shape {
            self.instructions[id].shape = shape;
            self.revision += 1;
        }
    }

    /// Renames an instruction to `name`, or to that with a number when it is taken.
    pub fn rename(&mut self, id: InstrId, name: &str) {
        if self[id].name == name {
            return;
        }
        let unique = self.unique_name(name);
        self.revision += 1;
        let old = std::mem::replace(&mut self.instructions[id].name, unique.clone());
        self.names.remove(&old);
        self.names.insert(unique, id);
    }

    /// Annotations for writing; not counted as an edit of the graph.
    pub fn annotations_mut(&mut self, id: InstrId) -> &mut super::Annotations {
        self.instructions[id].annotations_mut()
    }

    /// Demands that `before` runs before `after`.
    pub fn add_control_dependency(&mut self, before: InstrId, after: InstrId) {
        let (predecessors, successors) = (&self[after].control_predecessors, &self[before].control_successors);
        // Either list has the answer, and one of them may be long.
        let known = if predecessors.len() < successors.len() {
            predecessors.contains(&before)
        } else {
            successors.contains(&after)
        };
        if known {
            return;
        }
        self.revision += 1;
        self.instructions[after].control_predecessors.push(before);
        self.instructions[before].control_successors.push(after);
    }

    /// Inverse of [`Computation::add_control_dependency`].
    pub fn remove_control_dependency(&mut self, before: InstrId, after: InstrId) {
        self.revision += 1;
        self.instructions[after].control_predecessors.retain(|&p| p != before);
        self.instructions[before].control_successors.retain(|&s| s != after);
    }

    /// Removes an instruction that nobody uses. An error says who still does.
    pub fn remove(&mut self, id: InstrId) -> Result<()> {
        let instruction = &self[id];
        if let Some(&user) = instruction.users().first() {
            return Err(Error::internal(format!("cannot remove {}: {} uses it", instruction.name, self[user].name)));
        }
        if self.root == Some(id) {
            return Err(Error::internal(format!(
                "cannot remove {}: it is the root of {}",
                instruction.name, self.name
            )));
        }
        let before = instruction.control_predecessors.clone();
        let after = instruction.control_successors.clone();
        self.revision += 1;
        for b in before {
            self.remove_control_dependency(b, id);
        }
        for a in after {
            self.remove_control_dependency(id, a);
        }
        let Some(removed) = self.instructions.remove(id) else { return Ok(()) };
        self.names.remove(&removed.name);
        if matches!(removed.op, Op::Parameter(_)) {
            self.parameters.retain(|&p| p != id);
        }
        let operands: HashSet<InstrId> = removed.operands.into_iter().collect();
        for operand in operands {
            self.instructions[operand].users.remove(id);
        }
        if let Some(schedule) = &mut self.schedule {
            schedule.retain(|&s| s != id);
        }
        Ok(())
    }

    /// Removes instructions one after the other as [`Computation::remove`] does; of many this takes less time.
    pub fn remove_all(&mut self, ids: &[InstrId]) -> Result<()> {
        let schedule = self.schedule.take();
        let result = ids.iter().try_for_each(|&id| self.remove(id));
        self.schedule = schedule.map(|mut order| {
            order.retain(|&id| self.get(id).is_some());
            order
        });
        result
    }

    /// Replaces every called computation in every operation; for cloning and merging modules.
    pub fn map_called_computations(&mut self, f: &mut dyn FnMut(CompId) -> CompId) {
        let ids: Vec<InstrId> = self.ids().collect();
        for id in ids {
            self.revision += u64::from(self.instructions[id].op.map_called_computations(f));
        }
    }
}

impl std::ops::Index<InstrId> for Computation {
    type Output = Instruction;
    fn index(&self, id: InstrId) -> &Instruction {
        &self.instructions[id]
    }
}
