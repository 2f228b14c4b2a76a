//! Converts classes of values that share memory into allocations and slices.

use std::collections::{BTreeMap, HashMap};

use xla_hlo::entity::EntityId;
use xla_hlo::{CompId, Error, InstrId, Module, Result};

use super::pack::{Item, Lender, Packing, lend_and_pack};
use super::types::{
    Allocation, AllocationId, AllocationKind, BufferAssignment, BufferOptions, LiveValue, OutputSlice, Peak, Slice,
};
use super::verify_assignment;
use crate::analysis::alias::ValueRef;
use crate::analysis::alias::classes::{Classes, parameter_leaf};
use crate::analysis::alias::flow::Flow;
use crate::analysis::alias::timeline::{NodeId, Timeline, TimelineStep};

/// Assigns each array leaf of each executed instruction a slice of an allocation.
///
/// Requires a scheduled module with copies inserted. Returns [`Error::FailedPrecondition`] with the place if two values
/// still conflict, and [`Error::ResourceExhausted`] with the largest values if the program exceeds the memory limit.
pub fn assign_buffers(module: &Module, options: &BufferOptions) -> Result<BufferAssignment> {
    if !options.alignment.is_power_of_two() {
        return Err(Error::invalid_argument(format!("alignment {} is not a power of two", options.alignment)));
    }
    let flow = Flow::new(module)?;
    let timeline = Timeline::new(module, &flow)?;
    let classes = Classes::of_buffers(module, &flow, &timeline)?;
    let mut assigner = Assigner {
        module,
        flow: &flow,
        timeline: &timeline,
        classes: &classes,
        options,
        allocations: Vec::new(),
        places: HashMap::new(),
    };
    assigner.own_allocations();
    let peak = assigner.temporaries()?;
    let assignment = assigner.finish(peak)?;
    if options.verify {
        verify_assignment(module, &assignment)?;
    }
    match options.memory_bytes {
        Some(limit) if assignment.total_bytes() as u64 > limit && options.reuse_after > 0 => {
            assign_buffers(module, &BufferOptions { reuse_after: 0, ..options.clone() })
        }
        Some(limit) if assignment.total_bytes() as u64 > limit => Err(too_large(&assignment, limit)),
        Some(_) | None => Ok(assignment),
    }
}

/// Number of values at the peak that an error names.
const NAMED: usize = 4;

fn too_large(assignment: &BufferAssignment, limit: u64) -> Error {
    let bytes = |wanted: fn(&AllocationKind) -> bool| -> usize {
        assignment.allocations().iter().filter(|a| wanted(&a.kind)).map(|a| a.size).fold(0, usize::saturating_add)
    };
    let largest: Vec<String> = assignment
        .peak
        .values
        .iter()
        .take(NAMED)
        .filter_map(|&i| assignment.values.get(i))
        .map(|value| format!("{} B of {}", value.slice.size, value.name))
        .collect();
    let peak = assignment.step_names.get(assignment.peak.step).map_or("", |name| name);
    let most =
        if largest.is_empty() { String::new() } else { format!("; most of these at {peak}: {}", largest.join(", ")) };
    Error::resource_exhausted(format!(
        "module {} needs {} bytes of memory, the limit is {limit}: {} for arguments, {} for constants, {} for results, {} temporary{most}",
        assignment.module_name,
        assignment.total_bytes(),
        bytes(|kind| matches!(kind, AllocationKind::Parameter { .. })),
        bytes(|kind| matches!(kind, AllocationKind::Constant { .. })),
        bytes(|kind| matches!(kind, AllocationKind::Output { .. })),
        assignment.temp_bytes(),
    ))
}

struct Assigner<'a> {
    module: &'a Module,
    flow: &'a Flow,
    timeline: &'a Timeline,
    classes: &'a Classes<'a>,
    options: &'a BufferOptions,
    allocations: Vec<Allocation>,
    /// Slices by representative of the class.
    places: HashMap<NodeId, Slice>,
}

/// Time of the peak, its bytes, and the classes that are live at it, by representative.
type PeakClasses = (u32, usize, Vec<NodeId>);

impl Assigner<'_> {
    fn allocate(&mut self, kind: AllocationKind, size: usize, memory_space: i64) -> AllocationId {
        let id = AllocationId::from_index(self.allocations.len());
        self.allocations.push(Allocation { id, kind, size, alignment: self.options.alignment, memory_space });
        id
    }

    /// Adds allocations for parameters, constants and outputs, in this order.
    fn own_allocations(&mut self) {
        let mut owned: Vec<(usize, usize, NodeId, AllocationKind)> = Vec::new();
        let output_paths: Vec<Vec<usize>> =
            self.module.entry().result_shape().leaves().into_iter().map(|(path, _)| path).collect();
        for id in self.classes.representatives() {
            let Some(class) = self.classes.class(id) else { continue };
            let output = class.output.map(|leaf| output_paths[leaf].clone());
            if let Some(node) = class.parameter {
                let leaf = parameter_leaf(self.module, self.flow, node);
                let kind = AllocationKind::Parameter { leaf, output, written: class.contents() > 1 };
                owned.push((0, node.index(), id, kind));
            } else if let Some(node) = class.constant {
                let value = self.flow.values()[node.index()].origin.clone();
                owned.push((1, node.index(), id, AllocationKind::Constant { value }));
            } else if let (Some(path), Some(leaf)) = (output, class.output) {
                owned.push((2, leaf, id, AllocationKind::Output { path }));
            }
        }
        owned.sort_by_key(|(rank, order, _, _)| (*rank, *order));
        for (_, _, id, kind) in owned {
            let Some(class) = self.classes.class(id) else { continue };
            let allocation = self.allocate(kind, class.bytes, class.memory_space);
            self.places.insert(id, Slice { allocation, offset: 0, size: class.bytes });
        }
    }

    /// Adds one allocation per memory space for the values that are neither in another allocation nor placed in
    /// borrowed memory.
    fn temporaries(&mut self) -> Result<PeakClasses> {
        let mut spaces: BTreeMap<i64, Vec<(NodeId, Item)>> = BTreeMap::new();
        for id in self.classes.representatives() {
            let Some(class) = self.classes.class(id) else { continue };
            let Some((first, last)) = class.span() else { continue };
            if self.places.contains_key(&id) {
                continue;
            }
            let size = class.bytes.checked_next_multiple_of(self.options.alignment).ok_or_else(|| {
                Error::resource_exhausted(format!("a value of {} bytes cannot be addressed", class.bytes))
            })?;
            spaces.entry(class.memory_space).or_default().push((id, Item { size, used: class.bytes, first, last }));
        }
        for (space, items) in &mut spaces {
            let packing = self.borrow(*space, items)?;
            if items.is_empty() {
                continue;
            }
            let ends = items.iter().zip(&packing.offsets).map(|((id, _), offset)| offset + self.bytes(*id));
            let allocation = self.allocate(AllocationKind::Temporary, ends.max().unwrap_or(0), *space);
            for ((id, _), offset) in items.iter().zip(packing.offsets) {
                self.places.insert(*id, Slice { allocation, offset, size: self.bytes(*id) });
            }
        }
        let (time, most, classes) = peak(spaces.into_values().flatten());
        // The last value of a packing is not padded to the alignment. It may be the value with the most padding.
        let mut rounding: BTreeMap<i64, usize> = BTreeMap::new();
        for class in classes.iter().filter_map(|&id| self.classes.class(id)) {
            let most = rounding.entry(class.memory_space).or_default();
            *most = (class.bytes.next_multiple_of(self.options.alignment) - class.bytes).max(*most);
        }
        Ok((time, most - rounding.values().sum::<usize>(), classes))
    }

    fn bytes(&self, id: NodeId) -> usize {
        self.classes.class(id).map_or(0, |c| c.bytes)
    }

    /// Places values in the memory of results that are not written yet, and removes them from the list. Returns a
    /// packing of the remaining values.
    fn borrow(&mut self, space: i64, items: &mut Vec<(NodeId, Item)>) -> Result<Packing> {
        let mut lenders = Vec::new();
        let mut allocations = Vec::new();
        for id in self.classes.representatives() {
            let (Some(class), Some(place)) = (self.classes.class(id), self.places.get(&id)) else { continue };
            if class.output.is_some() && class.constant.is_none() && class.memory_space == space {
                lenders.push(Lender { size: class.bytes, busy: class.times().collect() });
                allocations.push(place.allocation);
            }
        }
        let kept = |item: &Item| Item { last: item.last.saturating_add(self.options.reuse_after), ..*item };
        let kept: Vec<Item> = items.iter().map(|(_, item)| kept(item)).collect();
        let (lent, packing) = lend_and_pack(&kept, &lenders)?;
        let mut lent = lent.into_iter();
        items.retain(|(id, _)| {
            let Some((lender, offset)) = lent.next().flatten() else { return true };
            self.places.insert(*id, Slice { allocation: allocations[lender], offset, size: self.bytes(*id) });
            false
        });
        Ok(packing)
    }

    fn finish(self, peak: PeakClasses) -> Result<BufferAssignment> {
        let (steps, step_names, number) = self.steps();
        let mut assignment = BufferAssignment {
            allocations: Vec::new(),
            leaves: HashMap::new(),
            outputs: Vec::new(),
            values: self.live_values(&number),
            steps,
            step_names,
            peak: Peak::default(),
            module_name: self.module.name().to_string(),
        };
        for &comp in self.flow.executed() {
            for (id, instruction) in self.module[comp].iter() {
                let values = self.flow.leaves(comp, id);
                let paths = instruction.shape().leaves().into_iter().map(|(path, _)| path);
                let leaves = paths.zip(values).map(|(path, &v)| (path, self.place(v.into()))).collect();
                assignment.leaves.insert((comp, id), leaves);
            }
        }
        assignment.outputs = self.outputs()?;
        assignment.peak = self.peak(peak, &assignment.values, &number);
        assignment.allocations = self.allocations;
        Ok(assignment)
    }

    fn place(&self, node: NodeId) -> Option<Slice> {
        self.places.get(&self.classes.find(node)).copied()
    }

    fn outputs(&self) -> Result<Vec<OutputSlice>> {
        let paths = self.module.entry().result_shape().leaves().into_iter().map(|(path, _)| path);
        let mut outputs = Vec::new();
        for (path, node) in paths.zip(&self.timeline.outputs) {
            let Some(node) = *node else { continue };
            let slice = self.place(node).ok_or_else(|| Error::internal(format!("output {path:?} has no slice")))?;
            let parameter = match &self.allocations[slice.allocation.index()].kind {
                AllocationKind::Parameter { leaf, .. } => Some(leaf.clone()),
                AllocationKind::Output { .. } | AllocationKind::Constant { .. } | AllocationKind::Temporary => None,
            };
            outputs.push(OutputSlice { path, slice, parameter });
        }
        Ok(outputs)
    }

    /// Returns the steps for reports, without moves, and the number of each time's step among them.
    fn steps(&self) -> (Vec<(CompId, InstrId)>, Vec<String>, Vec<usize>) {
        let entry = self.module.entry_id();
        let root = self.module.entry().root();
        let (mut steps, mut names, mut number) = (Vec::new(), Vec::new(), Vec::new());
        for step in &self.timeline.steps {
            number.push(steps.len());
            let (at, name) = match *step {
                TimelineStep::Move => continue,
                TimelineStep::Begin => ((entry, root), "begin".to_string()),
                TimelineStep::End => ((entry, root), "end".to_string()),
                TimelineStep::Compute(comp, id) | TimelineStep::Control(comp, id) => ((comp, id), self.name(comp, id)),
            };
            steps.push(at);
            names.push(name);
        }
        (steps, names, number)
    }

    fn name(&self, comp: CompId, id: InstrId) -> String {
        let computation = &self.module[comp];
        let instruction = &computation[id];
        format!("{} %{} in {}", instruction.opcode(), instruction.name(), computation.name())
    }

    fn live_values(&self, number: &[usize]) -> Vec<LiveValue> {
        let mut values = Vec::new();
        for (i, (value, node)) in self.flow.values().iter().zip(&self.timeline.nodes).enumerate() {
            let (Some(&(from, _)), Some(until)) = (node.live.first(), node.live.iter().map(|l| l.1).max()) else {
                continue;
            };
            let ValueRef { computation, instruction, path } = &value.origin;
            let Some(slice) = self.place(NodeId(i as u32)) else { continue };
            let computation = &self.module[*computation];
            let instruction = &computation[*instruction];
            let leaf = instruction.shape().subshape(path).map(|s| s.without_layout().to_string()).unwrap_or_default();
            let inside: Vec<String> = path.iter().map(ToString::to_string).collect();
            let inside = if path.is_empty() { String::new() } else { format!("{{{}}}", inside.join(",")) };
            values.push(LiveValue {
                value: value.origin.clone(),
                name: format!("%{}{inside} {leaf} in {}", instruction.name(), computation.name()),
                slice,
                from: number[from as usize],
                until: number[until as usize],
            });
        }
        values.sort_by_key(|v| v.from);
        values
    }

    fn peak(&self, (time, bytes, classes): PeakClasses, values: &[LiveValue], number: &[usize]) -> Peak {
        let step = number.get(time as usize).copied().unwrap_or(0);
        let mut by_slice: HashMap<Slice, Vec<usize>> = HashMap::new();
        for (i, value) in values.iter().enumerate() {
            by_slice.entry(value.slice).or_default().push(i);
        }
        let value_at = |class: NodeId| {
            let here = by_slice.get(self.places.get(&class)?)?;
            let needed = here.iter().find(|&&i| values[i].from <= step && step <= values[i].until);
            needed.or(here.first()).copied()
        };
        Peak { step, bytes, values: classes.into_iter().filter_map(value_at).collect() }
    }
}

/// Returns the time of peak usage, its bytes, and the classes that are live then, largest first.
fn peak(items: impl Iterator<Item = (NodeId, Item)>) -> PeakClasses {
    let items: Vec<(NodeId, Item)> = items.collect();
    let mut starts: Vec<&Item> = items.iter().map(|(_, item)| item).collect();
    starts.sort_by_key(|i| i.first);
    let mut ends = starts.clone();
    ends.sort_by_key(|i| i.last);
    let mut ended = ends.into_iter().peekable();
    let (mut bytes, mut most, mut time) = (0, 0, 0);
    for item in starts {
        while let Some(over) = ended.next_if(|e| e.last < item.first) {
            bytes -= over.size;
        }
        bytes += item.size;
        if bytes > most {
            (most, time) = (bytes, item.first);
        }
    }
    let mut there: Vec<&(NodeId, Item)> = items.iter().filter(|(_, i)| i.first <= time && time <= i.last).collect();
    there.sort_by_key(|(id, item)| (std::cmp::Reverse(item.size), *id));
    (time, most, there.into_iter().filter(|(_, i)| i.size > 0).map(|(id, _)| *id).collect())
}
