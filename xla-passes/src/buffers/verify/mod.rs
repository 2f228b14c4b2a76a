//! Verifier of buffer assignments: symbolically executes a module on tokens to prove that no value is overwritten too
//! early.
//!
//! Memory is a map from byte ranges to the tokens of the values stored there. Each step must find its operands' tokens
//! complete at the assigned locations, and then writes the tokens of its results. A loop runs once with new tokens for
//! its state. The results of the body must be at the locations that the next iteration reads, and the condition must
//! not modify the state. One iteration then represents all, since every iteration writes the same locations. Branches
//! each run from the same memory; afterwards only memory that none of them modified is intact. The verifier shares no
//! code with the assignment except [`may_share`].

use std::collections::{BTreeMap, HashMap, HashSet};

use xla_hlo::entity::EntityId;
use xla_hlo::{ArrayShape, CompId, Computation, Error, InstrId, Module, Op, Result};

use crate::analysis::alias::may_share;
use crate::analysis::alias::role::{Role, leaf_array, role};
use crate::buffers::types::{AllocationKind, BufferAssignment, Slice};

/// Checks that every leaf of every executed instruction is in an allocation that may hold it, and that no value is
/// overwritten while it is live. The error names the instruction and the lost value.
pub fn verify_assignment(module: &Module, assignment: &BufferAssignment) -> Result<()> {
    let mut checker = AssignmentChecker { module, assignment, memory: Memory::default(), next: 0 };
    checker.check_places()?;
    let entry = module.entry();
    let mut parameters = Vec::new();
    for &id in entry.parameters() {
        let tokens = checker.fresh(module.entry_id(), id)?;
        checker.place(module.entry_id(), id, &tokens)?;
        parameters.push(tokens);
    }
    checker.place_constants()?;
    let root = checker.run(module.entry_id(), &parameters)?;
    checker.expect(module.entry_id(), entry.root(), &root, "when the program ends")?;
    checker.check_outputs()
}

/// Identity of a value's bytes.
type Token = u64;

/// Tokens of an instruction's leaves; `None` for leaves without memory.
type Tokens = Vec<Option<Token>>;

/// Contents of memory: disjoint ranges per allocation, by offset, with end and token.
#[derive(Clone, Default)]
struct Memory {
    ranges: HashMap<usize, BTreeMap<usize, (usize, Token)>>,
}

impl Memory {
    fn write(&mut self, slice: Slice, token: Token) {
        if slice.size == 0 {
            return;
        }
        let ranges = self.ranges.entry(slice.allocation.index()).or_default();
        let end = slice.offset + slice.size;
        let reached: Vec<usize> =
            ranges.range(..end).rev().take_while(|(_, r)| r.0 > slice.offset).map(|r| *r.0).collect();
        for start in reached {
            ranges.remove(&start);
        }
        ranges.insert(slice.offset, (end, token));
    }

    fn holds(&self, slice: Slice, token: Token) -> bool {
        let range = self.ranges.get(&slice.allocation.index()).and_then(|r| r.get(&slice.offset));
        slice.size == 0 || range == Some(&(slice.offset + slice.size, token))
    }

    /// Keeps only the contents that `other` has as well.
    fn intersect(&mut self, other: &Memory) {
        for (allocation, ranges) in &mut self.ranges {
            let theirs = other.ranges.get(allocation);
            ranges.retain(|start, range| theirs.and_then(|t| t.get(start)) == Some(range));
        }
    }
}

struct AssignmentChecker<'a> {
    module: &'a Module,
    assignment: &'a BufferAssignment,
    memory: Memory,
    next: Token,
}

impl AssignmentChecker<'_> {
    fn slices(&self, comp: CompId, id: InstrId) -> Result<Vec<Option<Slice>>> {
        Ok(self.assignment.leaves(comp, id)?.iter().map(|(_, slice)| *slice).collect())
    }

    /// Returns new tokens for the leaves of an instruction.
    fn fresh(&mut self, comp: CompId, id: InstrId) -> Result<Tokens> {
        let slices = self.slices(comp, id)?;
        Ok(slices
            .iter()
            .map(|slice| {
                self.next += 1;
                slice.map(|_| self.next)
            })
            .collect())
    }

    /// Writes tokens at the locations of an instruction's leaves.
    fn place(&mut self, comp: CompId, id: InstrId, tokens: &Tokens) -> Result<()> {
        for (slice, token) in self.slices(comp, id)?.into_iter().zip(tokens) {
            if let (Some(slice), Some(token)) = (slice, token) {
                self.memory.write(slice, *token);
            }
        }
        Ok(())
    }

    /// Checks that the tokens are at the locations of an instruction's leaves.
    fn expect(&self, comp: CompId, id: InstrId, tokens: &Tokens, when: &str) -> Result<()> {
        let slices = self.slices(comp, id)?;
        if slices.len() != tokens.len() {
            return Err(self.error(comp, id, "differs in its number of leaves from the value that it holds"));
        }
        for (leaf, (slice, token)) in slices.into_iter().zip(tokens).enumerate() {
            match (slice, token) {
                (Some(slice), Some(token)) if !self.memory.holds(slice, *token) => {
                    let place = format!("{}[{}..+{}]", slice.allocation, slice.offset, slice.size);
                    return Err(self.error(comp, id, &format!("is not in leaf {leaf} at {place} {when}")));
                }
                (Some(_), Some(_)) | (None, None) => {}
                (Some(_), None) | (None, Some(_)) => {
                    return Err(self.error(
                        comp,
                        id,
                        &format!("has memory for leaf {leaf} only where it is not needed"),
                    ));
                }
            }
        }
        Ok(())
    }

    fn error(&self, comp: CompId, id: InstrId, what: &str) -> Error {
        let computation = &self.module[comp];
        Error::internal(format!(
            "buffer assignment is wrong: %{} in {} {what}",
            computation[id].name(),
            computation.name()
        ))
    }

    /// Executes a computation whose parameters hold these tokens. Returns the tokens of its root.
    fn run(&mut self, comp: CompId, parameters: &[Tokens]) -> Result<Tokens> {
        let computation = &self.module[comp];
        let mut values: HashMap<InstrId, Tokens> = HashMap::new();
        for id in computation.sequence() {
            let instruction = &computation[id];
            let operands: Vec<Tokens> =
                instruction.operands().iter().map(|o| values.get(o).cloned().unwrap_or_default()).collect();
            let tokens = match role(computation, id) {
                Role::Parameter(number) => parameters.get(number).cloned().unwrap_or_default(),
                Role::Constant => self.constant(comp, id)?,
                Role::Forward => operands.concat(),
                Role::First => operands[0].clone(),
                Role::Element(index) => {
                    let tuple = computation[instruction.operand(0)].shape().leaves();
                    let inside = tuple.iter().map(|(path, _)| path.first() == Some(&index));
                    inside.zip(&operands[0]).filter(|(inside, _)| *inside).map(|(_, token)| *token).collect()
                }
                Role::Compute => self.compute(comp, id, &operands)?,
                Role::Call(callee) => self.run(callee, &operands)?,
                Role::While { condition, body } => self.run_loop(comp, id, condition, body, &operands)?,
                Role::Conditional(branches) => self.run_branches(comp, id, &branches, &operands)?,
            };
            values.insert(id, tokens);
        }
        Ok(values.remove(&computation.root()).unwrap_or_default())
    }

    fn check_operands(&self, comp: CompId, id: InstrId, operands: &[Tokens]) -> Result<()> {
        let computation = &self.module[comp];
        for (&operand, tokens) in computation[id].operands().iter().zip(operands) {
            self.expect(comp, operand, tokens, &format!("when %{} reads it", computation[id].name()))?;
        }
        Ok(())
    }

    fn compute(&mut self, comp: CompId, id: InstrId, operands: &[Tokens]) -> Result<Tokens> {
        self.check_operands(comp, id, operands)?;
        self.check_outputs_against_operands(comp, id)?;
        let computation = &self.module[comp];
        let slices = self.slices(comp, id)?;
        let is_copy = matches!(computation[id].op(), Op::Copy(_)) && may_share(self.module, comp, id, &[], 0, &[]);
        if is_copy && slices == self.slices(comp, computation[id].operand(0))? {
            return Ok(operands[0].clone());
        }
        let tokens = if is_copy { operands[0].clone() } else { self.fresh(comp, id)? };
        for (i, slice) in slices.iter().flatten().enumerate() {
            if slices.iter().flatten().skip(i + 1).any(|s| s.overlaps(slice)) {
                return Err(self.error(comp, id, "writes two results to the same place"));
            }
            let kind = &self.assignment.allocation(slice.allocation).kind;
            if slice.size > 0 && !is_writable(kind) {
                return Err(self.error(comp, id, &format!("writes to {}, which is read-only", slice.allocation)));
            }
        }
        self.place(comp, id, &tokens)?;
        Ok(tokens)
    }

    /// Checks that an output overlaps an operand only exactly, and only if the instruction permits it.
    fn check_outputs_against_operands(&self, comp: CompId, id: InstrId) -> Result<()> {
        let instruction = &self.module[comp][id];
        for (out_path, out) in self.assignment.leaves(comp, id)? {
            let Some(out) = out else { continue };
            for (number, &operand) in instruction.operands().iter().enumerate() {
                for (path, slice) in self.assignment.leaves(comp, operand)? {
                    let Some(slice) = slice else { continue };
                    let shared = slice == out && may_share(self.module, comp, id, out_path, number, path);
                    if slice.overlaps(out) && !shared {
                        return Err(self.error(
                            comp,
                            id,
                            &format!("writes over its operand {number} while reading it"),
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    fn run_loop(
        &mut self,
        comp: CompId,
        id: InstrId,
        condition: CompId,
        body: CompId,
        operands: &[Tokens],
    ) -> Result<Tokens> {
        self.check_operands(comp, id, operands)?;
        let module = self.module;
        let name = module[comp][id].name();
        let parameter = |c: CompId| (c, module[c].parameters()[0]);
        let places =
            [(comp, module[comp][id].operand(0)), parameter(condition), parameter(body), (body, module[body].root())];
        for (c, i) in places {
            if self.slices(c, i)? != self.slices(comp, id)? {
                return Err(self.error(c, i, &format!("is not in the buffers of the state of %{name}")));
            }
        }
        // A leaf that the body passes on unchanged keeps its token, so that its memory may be shared or a caller's.
        let constant = self.unchanged(body);
        let mut state = self.fresh(comp, id)?;
        for (leaf, token) in state.iter_mut().enumerate() {
            if constant.contains(&leaf) {
                *token = operands[0][leaf];
            }
        }
        self.place(comp, id, &state)?;
        let decision = self.run(condition, std::slice::from_ref(&state))?;
        self.expect(condition, module[condition].root(), &decision, "when the condition was computed")?;
        self.expect(comp, id, &state, "after its condition")?;
        let next = self.run(body, std::slice::from_ref(&state))?;
        self.expect(body, module[body].root(), &next, "at the end of the loop body")?;
        for &leaf in &constant {
            if next[leaf] != state[leaf] {
                return Err(self.error(
                    body,
                    module[body].root(),
                    "changes a loop state that was assumed to be invariant",
                ));
            }
        }
        let result = self.join(comp, id, &state, &constant)?;
        self.place(comp, id, &result)?;
        Ok(result)
    }

    /// Returns the tokens after a join: new ones, except for unchanged leaves.
    fn join(&mut self, comp: CompId, id: InstrId, tokens: &Tokens, same: &HashSet<usize>) -> Result<Tokens> {
        let mut result = self.fresh(comp, id)?;
        for &leaf in same {
            result[leaf] = tokens[leaf];
        }
        Ok(result)
    }

    /// Returns the leaves of a loop's state that the body returns unchanged. Executes the body on marks instead of
    /// tokens and follows only tuples and their elements, including inner loops.
    fn unchanged(&self, body: CompId) -> HashSet<usize> {
        let root = self.module[body].root();
        let parameter = self.module[body].parameters()[0];
        let count = self.module[body][parameter].shape().leaves().len();
        let marks: Vec<Option<usize>> = (0..count).map(Some).collect();
        let found = self.follow(body, root, &[marks]);
        found.iter().enumerate().filter(|(leaf, mark)| **mark == Some(*leaf)).map(|(leaf, _)| leaf).collect()
    }

    /// Returns the parameter leaf (as a mark) that each leaf of `root` forwards; `None` for all others.
    fn follow(&self, comp: CompId, root: InstrId, parameters: &[Vec<Option<usize>>]) -> Vec<Option<usize>> {
        let computation = &self.module[comp];
        let mut marks: HashMap<InstrId, Vec<Option<usize>>> = HashMap::new();
        for id in computation.sequence() {
            let instruction = &computation[id];
            let of = |i: usize| instruction.operands().get(i).and_then(|o| marks.get(o)).cloned().unwrap_or_default();
            let found = match role(computation, id) {
                Role::Parameter(number) => parameters.get(number).cloned().unwrap_or_default(),
                Role::Forward => (0..instruction.operands().len()).flat_map(of).collect(),
                Role::First => of(0),
                Role::Element(index) => element_marks(computation, id, &of(0), index),
                Role::Call(callee) => {
                    let operands: Vec<_> = (0..instruction.operands().len()).map(of).collect();
                    self.follow(callee, self.module[callee].root(), &operands)
                }
                Role::While { body, .. } => {
                    let same = self.unchanged(body);
                    of(0).into_iter().enumerate().map(|(leaf, mark)| mark.filter(|_| same.contains(&leaf))).collect()
                }
                Role::Conditional(branches) => {
                    let results = branches.iter().enumerate();
                    let results = results.map(|(i, &b)| self.follow(b, self.module[b].root(), &[of(i + 1)]));
                    results
                        .reduce(|a, b| a.iter().zip(&b).map(|(a, b)| a.filter(|_| a == b)).collect())
                        .unwrap_or_default()
                }
                Role::Constant | Role::Compute => vec![None; instruction.shape().leaves().len()],
            };
            marks.insert(id, found);
        }
        marks.remove(&root).unwrap_or_default()
    }

    fn run_branches(&mut self, comp: CompId, id: InstrId, branches: &[CompId], operands: &[Tokens]) -> Result<Tokens> {
        self.check_operands(comp, id, operands)?;
        let before = self.memory.clone();
        let mut after: Option<Memory> = None;
        let mut results: Vec<Tokens> = Vec::new();
        for (i, &branch) in branches.iter().enumerate() {
            self.memory = before.clone();
            let root = self.module[branch].root();
            let tokens = self.run(branch, std::slice::from_ref(&operands[i + 1]))?;
            self.expect(branch, root, &tokens, "at the end of the branch")?;
            if self.slices(branch, root)? != self.slices(comp, id)? {
                return Err(self.error(branch, root, "is not in the buffers of the conditional's result"));
            }
            match &mut after {
                Some(after) => after.intersect(&self.memory),
                None => after = Some(self.memory.clone()),
            }
            results.push(tokens);
        }
        self.memory = after.unwrap_or(before);
        let first = results.first().cloned().unwrap_or_default();
        let same = (0..first.len()).filter(|&leaf| results.iter().all(|r| r[leaf] == first[leaf])).collect();
        let result = self.join(comp, id, &first, &same)?;
        self.place(comp, id, &result)?;
        Ok(result)
    }

    fn constant(&mut self, comp: CompId, id: InstrId) -> Result<Tokens> {
        let leaves = self.slices(comp, id)?;
        // Each constant is in an allocation that is filled when the program is loaded and never written.
        let tokens = leaves.iter().map(|s| s.map(|s| CONSTANTS + s.allocation.index() as Token)).collect();
        Ok(tokens)
    }

    fn place_constants(&mut self) -> Result<()> {
        for allocation in self.assignment.allocations() {
            if let AllocationKind::Constant { .. } = allocation.kind {
                let slice = Slice { allocation: allocation.id, offset: 0, size: allocation.size };
                self.memory.write(slice, CONSTANTS + allocation.id.index() as Token);
            }
        }
        Ok(())
    }

    /// Checks that every slice is inside its allocation, is aligned and has the size of its array.
    fn check_places(&self) -> Result<()> {
        for ((comp, id), leaves) in &self.assignment.leaves {
            let shape = self.module[*comp][*id].shape();
            for ((path, slice), (shape_path, leaf)) in leaves.iter().zip(shape.leaves()) {
                let Some(slice) = slice else { continue };
                let allocation = self.assignment.allocation(slice.allocation);
                let end = slice.offset.checked_add(slice.size);
                let fits = end.is_some_and(|end| end <= allocation.size)
                    && slice.offset.is_multiple_of(allocation.alignment)
                    && slice.size == leaf_array(leaf).map_or(0, ArrayShape::padded_byte_size)
                    && *path == shape_path;
                let space = leaf_array(leaf).and_then(ArrayShape::layout).map_or(0, |layout| layout.memory_space);
                if space != allocation.memory_space {
                    let what = format!(
                        "requires memory space {space} at {path:?}, but {} is in another one",
                        slice.allocation
                    );
                    return Err(self.error(*comp, *id, &what));
                }
                if !fits {
                    return Err(self.error(*comp, *id, &format!("does not fit at {path:?} into {}", slice.allocation)));
                }
            }
        }
        Ok(())
    }

    /// Checks that each output leaf is a whole allocation that may be an output.
    fn check_outputs(&self) -> Result<()> {
        let (entry, root) = (self.module.entry_id(), self.module.entry().root());
        let mut seen = HashSet::new();
        for output in self.assignment.output_slices() {
            let own = match &self.assignment.allocation(output.slice.allocation).kind {
                AllocationKind::Parameter { output: path, .. } => path.as_ref() == Some(&output.path),
                AllocationKind::Output { path } => *path == output.path,
                AllocationKind::Constant { .. } | AllocationKind::Temporary => false,
            };
            let there = self.assignment.slice(entry, root, &output.path)? == output.slice;
            if !own || !there || !seen.insert(output.slice.allocation) {
                return Err(self.error(entry, root, &format!("has no memory of its own for output {:?}", output.path)));
            }
        }
        Ok(())
    }
}

/// First token of constants.
const CONSTANTS: Token = 1 << 62;

fn is_writable(kind: &AllocationKind) -> bool {
    match kind {
        AllocationKind::Parameter { written, output, .. } => *written || output.is_some(),
        AllocationKind::Output { .. } | AllocationKind::Temporary => true,
        AllocationKind::Constant { .. } => false,
    }
}

fn element_marks(computation: &Computation, id: InstrId, marks: &[Option<usize>], index: usize) -> Vec<Option<usize>> {
    let tuple = computation[computation[id].operand(0)].shape().leaves();
    let inside = tuple.iter().map(|(path, _)| path.first() == Some(&index));
    inside.zip(marks).filter(|(inside, _)| *inside).map(|(_, mark)| *mark).collect()
}
