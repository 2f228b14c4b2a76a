//! Computations: graphs of instructions with parameters and a root, and the only methods that edit them.

use std::collections::{HashMap, HashSet};

use super::{CompId, InstrId, Instruction, names};
use crate::entity::{Arena, SecondaryMap};
use crate::ops::Op;
use crate::{Error, Result, Shape};

/// Function: an arena of instructions, one of them the root.
///
/// Every edit is a method that keeps users and names consistent and increments the revision. A pass therefore cannot
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

/// Name of the thread that instructions run on by default.
pub const MAIN_THREAD: &str = "main";

impl Computation {
    /// Creates an empty computation.
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

    /// Returns the name, unique in its module, without `%`.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn set_name(&mut self, name: String) {
        self.name = name;
        self.revision += 1;
    }

    /// Returns the number of edits so far.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the name of the thread that this computation runs on.
    pub fn execution_thread(&self) -> &str {
        &self.execution_thread
    }

    /// Sets the name of the thread that this computation runs on.
    pub fn set_execution_thread(&mut self, thread: impl Into<String>) {
        self.execution_thread = thread.into();
        self.revision += 1;
    }

    /// Returns the parameters by number. They are complete and contiguous in a verified module.
    pub fn parameters(&self) -> &[InstrId] {
        &self.parameters
    }

    /// Returns the root. Panics if none was set yet: builders and the parser always set it.
    pub fn root(&self) -> InstrId {
        self.root.expect("a finished computation has a root")
    }

    /// Returns the root, or `None` while the computation is being built.
    pub fn root_if_set(&self) -> Option<InstrId> {
        self.root
    }

    /// Returns the shape of the result.
    pub fn result_shape(&self) -> &Shape {
        self[self.root()].shape()
    }

    /// Iterates over the ids of live instructions, oldest first. Use [`Computation::post_order`] if operands must come
    /// first.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = InstrId> + '_ {
        self.instructions.ids()
    }

    /// Iterates over live instructions, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (InstrId, &Instruction)> {
        self.instructions.iter()
    }

    /// Returns the number of instructions.
    pub fn len(&self) -> usize {
        self.instructions.len()
    }

    /// Whether there is no instruction.
    pub fn is_empty(&self) -> bool {
        self.instructions.is_empty()
    }

    /// Returns the instruction, unless it was removed.
    pub fn get(&self, id: InstrId) -> Option<&Instruction> {
        self.instructions.get(id)
    }

    /// Returns the instruction of that name.
    pub fn find(&self, name: &str) -> Option<InstrId> {
        self.names.get(name).copied()
    }

    /// Returns the shapes of an instruction's operands.
    pub fn operand_shapes(&self, id: InstrId) -> Vec<&Shape> {
        self[id].operands().iter().map(|&o| self[o].shape()).collect()
    }

    /// Returns the order in which instructions run, if one is set.
    pub fn schedule(&self) -> Option<&[InstrId]> {
        self.schedule.as_deref()
    }

    /// Sets or clears the order in which instructions run.
    pub fn set_schedule(&mut self, schedule: Option<Vec<InstrId>>) {
        self.schedule = schedule;
        self.revision += 1;
    }

    /// Returns all instructions, with operands and control predecessors before their users, otherwise oldest first.
    ///
    /// If the order of ids satisfies this already, it is returned unchanged. Takes linear time, without recursion.
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

    /// Returns the schedule if there is one, otherwise [`Computation::post_order`].
    pub fn sequence(&self) -> Vec<InstrId> {
        self.schedule.clone().unwrap_or_else(|| self.post_order())
    }

    /// Adds an instruction whose operands exist already. An empty name is replaced by the opcode's; a name that is
    /// taken gets a number appended.
    pub fn add(&mut self, instruction: Instruction) -> InstrId {
        let id = self.append(instruction);
        if let Op::Parameter(p) = &self[id].op {
            // Numbers may arrive in any order. Later parameters fill the gaps, and the verifier reports the gaps that
            // remain.
            let number = p.number;
            self.parameters.pop();
            let at = self.parameters.partition_point(|&p| self.parameter_number(p) < number);
            self.parameters.insert(at, id);
        }
        id
    }

    /// Adds an instruction like [`Computation::add`], but leaves parameters in the order of arrival until
    /// [`Computation::sort_parameters`]. This is faster for many parameters in arbitrary order.
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

    /// Sorts parameters by number; of equal numbers, the one added later is first.
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

    /// Replaces all operands of `user`; their number may change.
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

    /// Replaces `old` by `new` in every user of `old`, and as the root. If `new` uses `old`, it keeps doing so.
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

    /// Replaces the operation; operands, users and name are unchanged. For parameters, use add and remove instead.
    pub fn set_op(&mut self, id: InstrId, op: Op) {
        self.instructions[id].op = op;
        self.revision += 1;
    }

    /// Replaces the shape, without a check; the verifier checks the result.
    pub fn set_shape(&mut self, id: InstrId, shape: Shape) {
        if self[id].shape != shape {
            self.instructions[id].shape = shape;
            self.revision += 1;
        }
    }

    /// Renames an instruction to `name`; a number is appended if that is taken.
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

    /// Returns annotations for writing; not counted as an edit of the graph.
    pub fn annotations_mut(&mut self, id: InstrId) -> &mut super::Annotations {
        self.instructions[id].annotations_mut()
    }

    /// Requires that `before` runs before `after`.
    pub fn add_control_dependency(&mut self, before: InstrId, after: InstrId) {
        let (predecessors, successors) = (&self[after].control_predecessors, &self[before].control_successors);
        // Both lists contain the edge if it exists; search the shorter one.
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

    /// Removes the edge of a [`Computation::add_control_dependency`].
    pub fn remove_control_dependency(&mut self, before: InstrId, after: InstrId) {
        self.revision += 1;
        self.instructions[after].control_predecessors.retain(|&p| p != before);
        self.instructions[before].control_successors.retain(|&s| s != after);
    }

    /// Removes an instruction without users. An error names a remaining user.
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

    /// Removes instructions sequentially, as [`Computation::remove`] does, but with less time for a large number.
    pub fn remove_all(&mut self, ids: &[InstrId]) -> Result<()> {
        let schedule = self.schedule.take();
        let result = ids.iter().try_for_each(|&id| self.remove(id));
        self.schedule = schedule.map(|mut order| {
            order.retain(|&id| self.get(id).is_some());
            order
        });
        result
    }

    /// Replaces every called computation in every operation; used to clone and merge modules.
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
