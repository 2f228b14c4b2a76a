//! Copy insertion: copies values that would otherwise need the same buffer at the same time.
//!
//! A loop's state has one buffer per leaf, which holds the initial value, the value of each iteration and the result.
//! The same holds for the results of a conditional's branches. A program's outputs have buffers of their own, or those
//! of the parameters that `input_output_alias` names. A `copy` is inserted if a value cannot be written to that buffer
//! directly, because the old value is still live, or because the value's memory belongs to a caller, a constant or
//! another output. Copies are placed before the loop, or at the end of the body, branch or entry computation. All other
//! values share memory without a copy.
//!
//! An iota, the broadcast of a constant or a small fusion without inputs is computed again instead of copied.
//!
//! The `alias` module decides; this one edits. Copies are inserted into the schedules, and their order matters
//! (swapping two state leaves takes three copies in the right order): do not schedule again afterwards.

use std::collections::{BTreeMap, HashMap, HashSet};

use xla_hlo::ops::{Copy, GetTupleElement, Tuple};
use xla_hlo::{CompId, Computation, Error, InstrId, Instruction, Module, Op, Result, Shape};

use crate::analysis::alias::classes::{Classes, Kept};
use crate::analysis::alias::flow::Flow;
use crate::analysis::alias::role::leaf_count;
use crate::analysis::alias::timeline::{JoinPlace, Timeline};
use crate::{Pass, PassContext};

/// Pass that runs [`insert_copies`].
pub struct InsertCopies;

impl Pass for InsertCopies {
    fn name(&self) -> &'static str {
        "insert-copies"
    }

    fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
        insert_copies(module).map(|_| ())
    }
}

/// Inserts the copies that a scheduled module needs before buffers can be assigned. Returns their number.
///
/// Returns [`Error::FailedPrecondition`] if an executed computation has several callers (flatten the call graph first)
/// or no schedule.
pub fn insert_copies(module: &mut Module) -> Result<usize> {
    let edits = plan(module)?;
    let mut count = 0;
    let mut insertions: BTreeMap<CompId, Vec<Insertion>> = BTreeMap::new();
    for (place, leaves) in edits {
        count += leaves.iter().map(|(_, kept)| usize::from(kept.first) + usize::from(kept.second)).sum::<usize>();
        let (comp, insertion) = apply(module, place, &leaves);
        insertions.entry(comp).or_default().push(insertion);
    }
    for (comp, list) in insertions {
        reschedule(module.computation_mut(comp), &list)?;
    }
    Ok(count)
}

/// The remaining moves, by place in program order. The leaves of each place are in ascending order.
type CopyPlan = Vec<(JoinPlace, Vec<(usize, Kept)>)>;

fn plan(module: &Module) -> Result<CopyPlan> {
    let flow = Flow::new(module)?;
    for &id in flow.executed() {
        if module[id].schedule().is_none() {
            return Err(Error::failed_precondition(format!(
                "computation {} has no schedule; schedule the module before inserting copies",
                module[id].name()
            )));
        }
    }
    let timeline = Timeline::new(module, &flow)?;
    let mut classes = Classes::new(module, &flow, &timeline);
    classes.drop_moves()?;
    let mut plan: CopyPlan = Vec::new();
    for (m, kept) in classes.kept_moves() {
        match plan.last_mut() {
            Some((place, leaves)) if *place == m.place => leaves.push((m.leaf, kept)),
            _ => plan.push((m.place, vec![(m.leaf, kept)])),
        }
    }
    Ok(plan)
}

/// New instructions and the instruction before which they are inserted (`None`: the end).
struct Insertion {
    before: Option<InstrId>,
    new: Vec<InstrId>,
}

/// Copies leaves of the value at a place and uses the new value there.
fn apply(module: &mut Module, place: JoinPlace, leaves: &[(usize, Kept)]) -> (CompId, Insertion) {
    let (comp, before) = match place {
        JoinPlace::LoopEntry(comp, id) => (comp, Some(id)),
        JoinPlace::LoopBack(comp) | JoinPlace::Branch(comp) => (comp, None),
        JoinPlace::Output => (module.entry_id(), None),
    };
    let old = before.map_or_else(|| module[comp].root(), |id| module[comp][id].operand(0));
    let mut edit = Edit { module, comp, new: Vec::new(), elements: HashMap::new() };
    let copied = edit.copy_leaves(old, leaves);
    let value = edit.rebuild(old, 0, &copied);
    let new = edit.new;
    let computation = module.computation_mut(comp);
    match before {
        Some(id) => computation.replace_operand(id, 0, value),
        None => computation.set_root(value),
    }
    (comp, Insertion { before, new })
}

/// Maximum size in bytes of arrays that are copied as fast as they are computed again.
const CHEAP_COPY: usize = 64;

/// Maximum number of instructions of a fusion without inputs that costs little more than writing its result.
const CHEAP_FUSION: usize = 4;

struct Edit<'m> {
    module: &'m mut Module,
    comp: CompId,
    new: Vec<InstrId>,
    /// The `get-tuple-element` instructions among `new`.
    elements: HashMap<(InstrId, usize), InstrId>,
}

impl Edit<'_> {
    fn add(&mut self, op: Op, shape: Shape, operands: Vec<InstrId>) -> InstrId {
        let id = self.module.computation_mut(self.comp).add(Instruction::new(op, shape, operands));
        self.new.push(id);
        id
    }

    /// Copies an array, or computes it again if that only writes memory.
    fn copy(&mut self, id: InstrId) -> InstrId {
        let source = &self.computation()[id];
        let (shape, operands) = (source.shape().clone(), source.operands().to_vec());
        match self.made_again(id) {
            Some(op) => self.add(op, shape, operands),
            None => self.add(Copy.into(), shape, vec![id]),
        }
    }

    /// Returns the operation that computes the same array without reading one.
    fn made_again(&mut self, id: InstrId) -> Option<Op> {
        let source = &self.computation()[id];
        if source.shape().as_array()?.byte_size() <= CHEAP_COPY {
            return None;
        }
        match source.op() {
            Op::Iota(_) => Some(source.op().clone()),
            Op::Broadcast(_) => {
                let is_constant = matches!(self.computation()[source.operand(0)].op(), Op::Constant(_));
                is_constant.then(|| source.op().clone())
            }
            Op::Fusion(fusion) if source.operands().is_empty() => {
                let mut fusion = fusion.clone();
                let fused = self.module.get(fusion.computation).filter(|f| f.len() <= CHEAP_FUSION)?.clone();
                // The computation of a fusion must have one caller.
                fusion.computation = self.module.add(fused);
                Some(fusion.into())
            }
            _ => None,
        }
    }

    fn computation(&self) -> &Computation {
        &self.module[self.comp]
    }

    /// Copies some leaves of `value`: all first halves of moves, then all second halves. Returns the copies by leaf.
    fn copy_leaves(&mut self, value: InstrId, leaves: &[(usize, Kept)]) -> BTreeMap<usize, InstrId> {
        let mut copied: BTreeMap<usize, InstrId> = BTreeMap::new();
        for &(leaf, _) in leaves {
            copied.insert(leaf, self.leaf(value, leaf));
        }
        let halves: [fn(&Kept) -> bool; 2] = [|k| k.first, |k| k.second];
        for half in halves {
            for (leaf, _) in leaves.iter().filter(|(_, kept)| half(kept)) {
                if let Some(source) = copied.get(leaf).copied() {
                    let copy = self.copy(source);
                    copied.insert(*leaf, copy);
                }
            }
        }
        copied
    }

    /// Returns an instruction whose value is leaf `number` of `value`.
    fn leaf(&mut self, mut value: InstrId, mut number: usize) -> InstrId {
        while let Shape::Tuple(elements) = self.computation()[value].shape() {
            let mut index = 0;
            for element in elements {
                let count = leaf_count(element);
                if number < count {
                    break;
                }
                number -= count;
                index += 1;
            }
            value = self.element(value, index);
        }
        value
    }

    /// Returns an instruction whose value is element `index` of the tuple `value`.
    fn element(&mut self, value: InstrId, index: usize) -> InstrId {
        let tuple = &self.computation()[value];
        if let Op::Tuple(_) = tuple.op() {
            return tuple.operand(index);
        }
        let shape = tuple.shape().subshape(&[index]).cloned().unwrap_or(Shape::Tuple(Vec::new()));
        if let Some(&known) = self.elements.get(&(value, index)) {
            return known;
        }
        let id = self.add(GetTupleElement { index }.into(), shape, vec![value]);
        self.elements.insert((value, index), id);
        id
    }

    /// Rebuilds `value`, whose first leaf has number `first`, with copied leaves in place of the old ones.
    fn rebuild(&mut self, value: InstrId, first: usize, copied: &BTreeMap<usize, InstrId>) -> InstrId {
        let shape = self.computation()[value].shape().clone();
        let Shape::Tuple(elements) = &shape else { return copied.get(&first).copied().unwrap_or(value) };
        let count = leaf_count(&shape);
        if copied.range(first..first + count).next().is_none() {
            return value;
        }
        let mut operands = Vec::with_capacity(elements.len());
        let mut leaf = first;
        for (index, element) in elements.iter().enumerate() {
            let old = self.element(value, index);
            operands.push(self.rebuild(old, leaf, copied));
            leaf += leaf_count(element);
        }
        let tuple = self.add(Tuple.into(), shape, operands);
        if let Some(annotations) = self.computation()[value].annotations().cloned() {
            *self.module.computation_mut(self.comp).annotations_mut(tuple) = annotations;
        }
        tuple
    }
}

/// Inserts new instructions into the schedule. Removes tuples and elements that became unused.
fn reschedule(computation: &mut Computation, insertions: &[Insertion]) -> Result<()> {
    let at: BTreeMap<Option<InstrId>, &[InstrId]> = insertions.iter().map(|i| (i.before, &*i.new)).collect();
    let mut order = Vec::with_capacity(computation.len());
    for id in computation.sequence() {
        order.extend(at.get(&Some(id)).copied().unwrap_or_default());
        order.push(id);
    }
    order.extend(at.get(&None).copied().unwrap_or_default());
    let mut unused: HashSet<InstrId> = HashSet::new();
    for &id in order.iter().rev() {
        let instruction = &computation[id];
        let passes_on = matches!(instruction.op(), Op::Tuple(_) | Op::GetTupleElement(_));
        let ordered = !instruction.control_predecessors().is_empty() || !instruction.control_successors().is_empty();
        let wanted = computation.root() == id || instruction.users().iter().any(|u| !unused.contains(u));
        if passes_on && !ordered && !wanted {
            unused.insert(id);
        }
    }
    for id in order.iter().rev().filter(|id| unused.contains(id)) {
        computation.remove(*id)?;
    }
    order.retain(|id| !unused.contains(id));
    computation.set_schedule(Some(order));
    Ok(())
}
