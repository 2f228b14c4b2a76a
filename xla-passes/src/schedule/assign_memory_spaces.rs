//! Assigns values to a device's small fast memory spaces, such as scratchpads.
//!
//! ```text
//! profile: S(1) has 4 KiB         a = f32[16,16]{1,0:S(1)} dot(x, w)
//! order, copies, lifetimes  ─>    b = f32[16,16]{1,0:S(1)} dot(a, w)
//! values live at each step        c = f32[64,64]{1,0} broadcast(b)       too large
//! ```
//!
//! Requires a schedule and inserted copies: all values that share memory get the same space. The fastest space is
//! filled first, with the values that are read and written most often, as long as all values that are live at any step
//! fit. Then operands are copied into it for the operations that request this. The values of a space are packed in a
//! trial as [`assign_buffers`](crate::buffers::assign_buffers) will pack them, so that the limit holds for the real
//! allocation.

use std::collections::{BTreeMap, HashMap, HashSet};

use xla_hlo::ops::Copy;
use xla_hlo::{ArrayShape, CompId, Error, InstrId, Instruction, Layout, Module, Op, Result, Shape};

use crate::analysis::alias::classes::{Class, Classes};
use crate::analysis::alias::flow::Flow;
use crate::analysis::alias::role::{leaf_array, leaf_count};
use crate::analysis::alias::shares;
use crate::analysis::alias::timeline::{NodeId, Timeline, TimelineStep};
use crate::analysis::cost::times;
use crate::buffers::{Item, pack};
use crate::{MemorySpaceProfile, Pass, PassContext};

/// Sets the memory space in the layouts of values that fit into the spaces of the target's profile. Does nothing if the
/// profile has no such spaces or the module has no schedule, and skips spaces that the program already uses. Runs after
/// [`InsertCopies`](crate::InsertCopies).
pub struct AssignMemorySpaces;

impl Pass for AssignMemorySpaces {
    fn name(&self) -> &'static str {
        "assign-memory-spaces"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        if !module.attributes().is_scheduled {
            return Ok(());
        }
        for space in &cx.profile().memory_spaces {
            let mut allow = || cx.allow_rewrite(self.name());
            if color(module, space, &mut allow)? {
                stage(module, space, &mut allow)?;
            }
        }
        Ok(())
    }
}

/// The values of a module and their alias classes.
struct Memory<'a> {
    module: &'a Module,
    flow: &'a Flow,
    timeline: &'a Timeline,
    classes: Classes<'a>,
}

impl<'a> Memory<'a> {
    /// Computes the classes; `None` if copies are missing.
    fn new(module: &'a Module, flow: &'a Flow, timeline: &'a Timeline) -> Result<Option<Memory<'a>>> {
        match Classes::of_buffers(module, flow, timeline) {
            Ok(classes) => Ok(Some(Memory { module, flow, timeline, classes })),
            Err(Error::FailedPrecondition(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn of(&self, space: i64) -> impl Iterator<Item = (NodeId, &Class)> {
        let all = self.classes.representatives().filter_map(|id| Some((id, self.classes.class(id)?)));
        all.filter(move |(_, class)| class.memory_space == space)
    }

    /// Counts the accesses to each class; `None` if an operation may access the class that only supports the default
    /// memory.
    fn accesses(&self) -> HashMap<NodeId, Option<u64>> {
        let runs = times(self.module);
        let mut accesses: HashMap<NodeId, Option<u64>> = HashMap::new();
        for step in &self.timeline.steps {
            let TimelineStep::Compute(comp, id) = *step else { continue };
            let instruction = &self.module[comp][id];
            let is_own = !matches!(
                instruction.op(),
                Op::CustomCall(_) | Op::Transfer(_) | Op::Collective(_) | Op::Async(_) | Op::Dynamic(_)
            );
            let values = self.flow.operand_leaves(self.module, comp, id);
            for &value in values.iter().chain(self.flow.leaves(comp, id)) {
                let count = accesses.entry(self.classes.find(value.into())).or_insert(Some(0));
                *count = count.filter(|_| is_own).map(|count| count.saturating_add(runs[comp].max(1)));
            }
        }
        accesses
    }

    /// Whether all values of a space fit into it.
    fn fits(&self, space: &MemorySpaceProfile, more: &HashSet<NodeId>) -> Result<bool> {
        let mut items = Vec::new();
        let mut constants = 0usize;
        for (id, class) in self.of(space.space).chain(self.of(0).filter(|(id, _)| more.contains(id))) {
            match item(class, space) {
                Some(item) if class.constant.is_some() => constants = constants.saturating_add(item.size),
                Some(item) => items.push((id, item)),
                None => {}
            }
        }
        // Packs in the order that buffer assignment uses.
        items.sort_by_key(|(id, _)| *id);
        let packing = pack(&items.into_iter().map(|(_, item)| item).collect::<Vec<_>>())?;
        Ok(packing.size.saturating_add(constants) <= space.bytes)
    }
}

/// Returns a class as an item to pack in the space; `None` if it needs no memory or its size overflows.
fn item(class: &Class, space: &MemorySpaceProfile) -> Option<Item> {
    let (first, last) = class.span()?;
    let size = class.bytes.checked_next_multiple_of(space.alignment.max(1))?;
    Some(Item { size, used: class.bytes, first, last })
}

/// Moves values into a space. Returns whether this pass manages the space: whether the program does not use it yet.
fn color(module: &mut Module, space: &MemorySpaceProfile, allow: &mut dyn FnMut() -> bool) -> Result<bool> {
    let Ok(flow) = Flow::new(module) else { return Ok(false) };
    let timeline = Timeline::new(module, &flow)?;
    let Some(memory) = Memory::new(module, &flow, &timeline)? else { return Ok(false) };
    if space.space == 0 || memory.of(space.space).next().is_some() {
        return Ok(false);
    }
    let accesses = memory.accesses();
    let mut candidates: Vec<(u64, Item, NodeId)> = Vec::new();
    for (id, class) in memory.of(0) {
        let count = accesses.get(&id).copied().flatten().unwrap_or(0);
        let may = class.parameter.is_none() && class.output.is_none() && (class.constant.is_none() || space.constants);
        if may && count > 0 && (1..=space.max_value_bytes).contains(&class.bytes) {
            candidates.extend(item(class, space).map(|item| (count, item, id)));
        }
    }
    // Most accesses per byte first, then the shortest live ranges.
    candidates.sort_by_key(|(count, item, id)| (std::cmp::Reverse(*count), item.last - item.first, item.size, *id));
    let mut load = Load::new(timeline.steps.len());
    candidates.retain(|(_, item, _)| load.add(item, space.bytes));
    let mut chosen: HashSet<NodeId> = candidates.iter().map(|(.., id)| *id).collect();
    while !chosen.is_empty() && !memory.fits(space, &chosen)? {
        // Packing leaves gaps. Dropping the least important eighth of the values reduces them.
        for _ in 0..candidates.len().div_ceil(8) {
            if let Some((.., id)) = candidates.pop() {
                chosen.remove(&id);
            }
        }
    }
    chosen = candidates.iter().map(|(.., id)| *id).filter(|_| allow()).collect();
    let shapes = colored(&memory, &chosen, space.space);
    for (comp, id, shape) in shapes {
        module.computation_mut(comp).set_shape(id, shape);
    }
    Ok(true)
}

/// Returns the new shapes of all instructions that hold a value of the chosen classes.
fn colored(memory: &Memory<'_>, chosen: &HashSet<NodeId>, space: i64) -> Vec<(CompId, InstrId, Shape)> {
    let mut shapes = Vec::new();
    for &comp in memory.flow.executed() {
        for (id, instruction) in memory.module[comp].iter() {
            let leaves = instruction.shape().leaves();
            let values = memory.flow.leaves(comp, id);
            let arrays = leaves.iter().zip(values).filter(|((_, leaf), _)| leaf_array(leaf).is_some());
            let mut is_chosen = arrays.map(|(_, &value)| chosen.contains(&memory.classes.find(value.into())));
            let shape = instruction.shape().map_layouts(&mut |array| match is_chosen.next() {
                Some(true) => Some(in_space(array, space)),
                Some(false) | None => array.layout().cloned(),
            });
            if shape != *instruction.shape() {
                shapes.push((comp, id, shape));
            }
        }
    }
    shapes
}

fn in_space(array: &ArrayShape, space: i64) -> Layout {
    let layout = array.layout().cloned().unwrap_or_else(|| Layout::row_major(array.rank()));
    Layout { memory_space: space, ..layout }
}

/// An operand that is copied into the space for one user.
#[derive(Clone, Copy)]
struct Staged {
    comp: CompId,
    user: InstrId,
    operand: InstrId,
}

/// Copies operands into the space for the operations that request this.
fn stage(module: &mut Module, space: &MemorySpaceProfile, allow: &mut dyn FnMut() -> bool) -> Result<()> {
    let mut wanted = wanted(module, space)?;
    // Operands that fit at each step may still leave gaps when packed.
    while !wanted.is_empty() {
        let mut trial = module.clone();
        insert(&mut trial, &wanted, space.space);
        let flow = Flow::new(&trial)?;
        let timeline = Timeline::new(&trial, &flow)?;
        let memory = Memory::new(&trial, &flow, &timeline)?;
        if memory.map_or(Ok(false), |memory| memory.fits(space, &HashSet::new()))? {
            break;
        }
        wanted.truncate(wanted.len() / 2);
    }
    wanted.retain(|_| allow());
    insert(module, &wanted, space.space);
    Ok(())
}

/// Returns the operands that fit, most frequently read first.
fn wanted(module: &Module, space: &MemorySpaceProfile) -> Result<Vec<Staged>> {
    let flow = Flow::new(module)?;
    let timeline = Timeline::new(module, &flow)?;
    let Some(memory) = Memory::new(module, &flow, &timeline)? else { return Ok(Vec::new()) };
    let mut load = Load::new(timeline.steps.len());
    for (_, class) in memory.of(space.space) {
        if let Some(item) = item(class, space) {
            load.add(&item, usize::MAX);
        }
    }
    let runs = times(module);
    let mut wanted: Vec<(u64, Item, Staged)> = Vec::new();
    for (time, step) in timeline.steps.iter().enumerate() {
        let TimelineStep::Compute(comp, user) = *step else { continue };
        if !space.staged.contains(&module[comp][user].opcode()) {
            continue;
        }
        let mut operands = module[comp][user].operands().to_vec();
        // Operands that are updated in place are not copied.
        let updated = updated_operands(module, comp, user);
        operands.retain(|operand| !updated.contains(operand));
        operands.sort_unstable();
        operands.dedup();
        for operand in operands {
            let Some(array) = module[comp][operand].shape().as_array() else { continue };
            let used = array.padded_byte_size();
            let is_there = array.layout().is_some_and(|layout| layout.memory_space == space.space);
            let Some(size) = used.checked_next_multiple_of(space.alignment.max(1)) else { continue };
            if !is_there && (1..=space.max_value_bytes).contains(&used) {
                let item = Item { size, used, first: time as u32, last: time as u32 };
                wanted.push((runs[comp], item, Staged { comp, user, operand }));
            }
        }
    }
    wanted.sort_by_key(|(runs, item, _)| (std::cmp::Reverse(*runs), item.first));
    wanted.retain(|(_, item, _)| load.add(item, space.bytes));
    Ok(wanted.into_iter().map(|(.., staged)| staged).collect())
}

fn updated_operands(module: &Module, comp: CompId, user: InstrId) -> Vec<InstrId> {
    let graph = &module[comp];
    let leaves: Vec<InstrId> =
        graph[user].operands().iter().flat_map(|&o| std::iter::repeat_n(o, leaf_count(graph[o].shape()))).collect();
    shares(module, graph, user)
        .iter()
        .filter(|s| s.is_update())
        .filter_map(|s| leaves.get(s.operand).copied())
        .collect()
}

/// Inserts the copies, each directly before its user.
fn insert(module: &mut Module, staged: &[Staged], space: i64) {
    let mut by_program: BTreeMap<CompId, Vec<Staged>> = BTreeMap::new();
    staged.iter().for_each(|&staged| by_program.entry(staged.comp).or_default().push(staged));
    for (comp, staged) in by_program {
        let graph = module.computation_mut(comp);
        let order = graph.sequence();
        let mut before: HashMap<InstrId, Vec<InstrId>> = HashMap::new();
        for Staged { user, operand, .. } in staged {
            let Some(array) = graph[operand].shape().as_array() else { continue };
            let shape = array.clone().with_layout(Some(in_space(array, space)));
            let copy = graph.add(Instruction::new(Copy.into(), shape.into(), vec![operand]));
            let operands = graph[user].operands().iter().map(|&o| if o == operand { copy } else { o }).collect();
            graph.set_operands(user, operands);
            before.entry(user).or_default().push(copy);
        }
        let with_copies = |id: InstrId| before.get(&id).into_iter().flatten().copied().chain([id]);
        graph.set_schedule(Some(order.into_iter().flat_map(with_copies).collect()));
    }
}

/// Bytes in use at each step: a segment tree with range addition and range maximum in logarithmic time.
struct Load {
    steps: usize,
    /// Maximum of the range below a node, without the additions at its ancestors.
    highest: Vec<usize>,
    /// Bytes added to the whole range of a node.
    added: Vec<usize>,
}

impl Load {
    fn new(steps: usize) -> Load {
        let steps = steps.max(1).next_power_of_two();
        Load { steps, highest: vec![0; 2 * steps], added: vec![0; 2 * steps] }
    }

    /// Adds an item's bytes to its steps if no step then exceeds `limit`.
    fn add(&mut self, item: &Item, limit: usize) -> bool {
        let range = (item.first as usize, item.last as usize);
        let fits = self.most(1, (0, self.steps - 1), range).checked_add(item.size).is_some_and(|most| most <= limit);
        if fits {
            self.raise(1, (0, self.steps - 1), range, item.size);
        }
        fits
    }

    fn most(&self, node: usize, (first, last): (usize, usize), range: (usize, usize)) -> usize {
        if range.1 < first || last < range.0 {
            return 0;
        }
        if range.0 <= first && last <= range.1 {
            return self.highest[node];
        }
        let middle = first.midpoint(last);
        let left = self.most(2 * node, (first, middle), range);
        self.added[node] + left.max(self.most(2 * node + 1, (middle + 1, last), range))
    }

    fn raise(&mut self, node: usize, (first, last): (usize, usize), range: (usize, usize), bytes: usize) {
        if range.1 < first || last < range.0 {
            return;
        }
        if range.0 <= first && last <= range.1 {
            self.highest[node] += bytes;
            self.added[node] += bytes;
            return;
        }
        let middle = first.midpoint(last);
        self.raise(2 * node, (first, middle), range, bytes);
        self.raise(2 * node + 1, (middle + 1, last), range, bytes);
        self.highest[node] = self.added[node] + self.highest[2 * node].max(self.highest[2 * node + 1]);
    }
}
