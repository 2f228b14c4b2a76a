//! Alias classes: sets of values that share memory. Classes are merged pairwise unless two of their values interfere.

use std::collections::{BTreeSet, HashMap};

use xla_hlo::{Module, ParameterLeaf, Result};

use super::flow::Flow;
use super::live::Time;
use super::timeline::{Donation, Fixed, JoinPlace, Move, NodeId, Timeline, TimelineStep};

/// A piece of memory and the live ranges of the values stored in it.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    /// Live ranges as `(first, last, content)`. They are disjoint, except that an instruction may overwrite a value at
    /// its last read.
    live: BTreeSet<(Time, Time, NodeId)>,
    pub(crate) bytes: usize,
    pub(crate) memory_space: i64,
    /// The entry parameter whose memory the class uses, by node.
    pub(crate) parameter: Option<NodeId>,
    /// The constant whose memory the class uses.
    pub(crate) constant: Option<NodeId>,
    /// The leaf of the program's result that is stored in this class.
    pub(crate) output: Option<usize>,
    /// Number of nodes in the class.
    members: usize,
}

impl Class {
    /// Returns the span from the first to the last time the class holds a value; `None` if it never does.
    pub(crate) fn span(&self) -> Option<(Time, Time)> {
        let first = self.live.first()?.0;
        // Intervals overlap at most at their ends, so that their ends ascend with their starts.
        self.live.last().map(|&(_, last, _)| (first, last))
    }

    /// Iterates over the live ranges stored in the class, in ascending order.
    pub(crate) fn times(&self) -> impl Iterator<Item = (Time, Time)> + '_ {
        self.live.iter().map(|&(first, last, _)| (first, last))
    }

    /// Returns the union of both classes. The shorter list of intervals is inserted into the longer one.
    fn united(self, other: Class) -> Class {
        let (few, mut many) = if self.live.len() < other.live.len() { (self, other) } else { (other, self) };
        for interval in few.live {
            insert(&mut many.live, interval);
        }
        many.parameter = many.parameter.or(few.parameter);
        many.constant = many.constant.or(few.constant);
        many.output = many.output.or(few.output);
        many.members += few.members;
        many
    }

    /// Returns the number of distinct contents that are stored here over time.
    pub(crate) fn contents(&self) -> usize {
        let contents: std::collections::HashSet<NodeId> = self.live.iter().map(|&(_, _, c)| c).collect();
        contents.len()
    }
}

/// Partition of a timeline's nodes into [`Class`]es.
#[derive(Debug)]
pub(crate) struct Classes<'a> {
    flow: &'a Flow,
    module: &'a Module,
    timeline: &'a Timeline,
    donations: HashMap<NodeId, Donation>,
    parent: Vec<NodeId>,
    /// Class data, stored at the representative of each class.
    classes: Vec<Option<Class>>,
}

impl<'a> Classes<'a> {
    /// Creates a class of its own for each node that needs memory.
    pub(crate) fn new(module: &'a Module, flow: &'a Flow, timeline: &'a Timeline) -> Classes<'a> {
        let donations = Timeline::donations(module);
        let mut by_node = HashMap::new();
        for (i, node) in timeline.nodes.iter().enumerate() {
            if let Fixed::Parameter { donated: true } = node.fixed {
                let leaf = parameter_leaf(module, flow, NodeId(i as u32));
                by_node.extend(donations.get(&leaf).map(|d| (NodeId(i as u32), *d)));
            }
        }
        let class = |(i, node): (usize, &super::timeline::TimelineNode)| {
            let id = NodeId(i as u32);
            let mut class = Class {
                live: BTreeSet::new(),
                bytes: node.bytes,
                memory_space: node.memory_space,
                parameter: matches!(node.fixed, Fixed::Parameter { .. }).then_some(id),
                constant: (node.fixed == Fixed::Constant).then_some(id),
                output: if let Fixed::Output(leaf) = node.fixed { Some(leaf) } else { None },
                members: 1,
            };
            for &(start, end) in &node.live {
                insert(&mut class.live, (start, end, node.content));
            }
            (!node.live.is_empty()).then_some(class)
        };
        Classes {
            flow,
            module,
            timeline,
            donations: by_node,
            parent: (0..timeline.nodes.len()).map(|i| NodeId(i as u32)).collect(),
            classes: timeline.nodes.iter().enumerate().map(class).collect(),
        }
    }

    /// Computes the classes that become buffers: merges every pair of values that can share memory.
    ///
    /// Copies must have been inserted. If two values of a move still interfere, returns
    /// [`Error::FailedPrecondition`](xla_hlo::Error::FailedPrecondition) with the place of the move.
    pub(crate) fn of_buffers(module: &'a Module, flow: &'a Flow, timeline: &'a Timeline) -> Result<Classes<'a>> {
        let mut classes = Classes::new(module, flow, timeline);
        classes.drop_moves()?;
        if let Some((kept, _)) = classes.kept_moves().next() {
            return Err(xla_hlo::Error::failed_precondition(format!(
                "leaf {} of {} cannot share its buffer; insert copies before assigning buffers",
                kept.leaf,
                kept.place.describe(module)
            )));
        }
        classes.use_donors();
        classes.share_operands();
        Ok(classes)
    }

    /// Returns the representative of a node's class.
    pub(crate) fn find(&self, mut node: NodeId) -> NodeId {
        while self.parent[node.index()] != node {
            node = self.parent[node.index()];
        }
        node
    }

    /// Returns the class of a node; `None` for values without memory.
    pub(crate) fn class(&self, node: NodeId) -> Option<&Class> {
        self.classes[self.find(node).index()].as_ref()
    }

    /// Whether two nodes share memory.
    pub(crate) fn same(&self, a: NodeId, b: NodeId) -> bool {
        self.find(a) == self.find(b)
    }

    /// Iterates over the representatives of all classes in ascending order.
    pub(crate) fn representatives(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.classes.len()).filter(|&i| self.classes[i].is_some()).map(|i| NodeId(i as u32))
    }

    /// Merges the classes of two nodes unless values with different contents interfere. Returns whether the two nodes
    /// share memory afterwards.
    pub(crate) fn merge(&mut self, a: NodeId, b: NodeId) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return true;
        }
        let (Some(x), Some(y)) = (&self.classes[a.index()], &self.classes[b.index()]) else { return false };
        let (few, many) = if x.live.len() < y.live.len() { (x, y) } else { (y, x) };
        let fits = x.bytes == y.bytes && x.memory_space == y.memory_space && self.owners_agree(x, y);
        if !fits || !few.live.iter().all(|&interval| self.has_room(many, interval)) {
            return false;
        }
        let (Some(x), Some(y)) = (self.classes[a.index()].take(), self.classes[b.index()].take()) else { return false };
        let (kept, gone) = if x.members < y.members { (b, a) } else { (a, b) };
        self.parent[gone.index()] = kept;
        self.classes[kept.index()] = Some(x.united(y));
        true
    }

    /// Whether one piece of memory can serve the parameter, the constant and the output of both classes.
    fn owners_agree(&self, x: &Class, y: &Class) -> bool {
        let parameter = x.parameter.or(y.parameter);
        let output = x.output.or(y.output);
        if (x.parameter.is_some() && y.parameter.is_some())
            || (x.output.is_some() && y.output.is_some())
            || (x.constant.is_some() && y.constant.is_some())
        {
            return false;
        }
        if x.constant.or(y.constant).is_some() {
            return parameter.is_none() && output.is_none();
        }
        let (Some(parameter), Some(output)) = (parameter, output) else { return true };
        match self.donations.get(&parameter) {
            None => false,
            Some(Donation::Any) => true,
            Some(Donation::Output { output: allowed, .. }) => *allowed == output,
        }
    }

    /// Whether the class holds no other content during the interval.
    fn has_room(&self, class: &Class, (start, end, content): (Time, Time, NodeId)) -> bool {
        let until = (end, Time::MAX, NodeId(u32::MAX));
        for &(s, e, other) in class.live.range(..=until).rev() {
            if e < start {
                break;
            }
            let fits = other == content
                || (e == start && self.writes_over(start, other, content))
                || (end == s && self.writes_over(end, content, other));
            if !fits {
                return false;
            }
        }
        true
    }

    /// Whether the instruction at `time` reads `old` and may overwrite it with `new`.
    fn writes_over(&self, time: Time, old: NodeId, new: NodeId) -> bool {
        let Some(TimelineStep::Compute(comp, id)) = self.timeline.steps.get(time as usize) else { return false };
        let Some(shares) = self.timeline.shares.get(&(*comp, *id)) else { return false };
        let content = |n: NodeId| self.timeline.nodes[n.index()].content;
        let outputs = self.flow.leaves(*comp, *id);
        let Some(output) = outputs.iter().position(|&v| content(v.into()) == new) else { return false };
        let read = self.flow.operand_leaves(self.module, *comp, *id);
        let mut of_old = read.iter().enumerate().filter(|(_, v)| content((**v).into()) == old).peekable();
        of_old.peek().is_some() && of_old.all(|(i, _)| shares.iter().any(|s| s.output == output && s.operand == i))
    }

    /// Removes moves greedily, the most expensive copies first: deepest loop nest, then largest size.
    ///
    /// The second half of each move is in the join's memory by definition, and so is a parameter that must alias the
    /// output.
    pub(crate) fn drop_moves(&mut self) -> Result<()> {
        let timeline = self.timeline;
        for m in &timeline.moves {
            if !self.merge(m.second, m.join) {
                return Err(xla_hlo::Error::internal(format!(
                    "a move cannot share the buffer of leaf {} of its join",
                    m.leaf
                )));
            }
        }
        self.merge_donations(|d| matches!(d, Donation::Output { must: true, .. }));
        let mut order: Vec<&Move> = timeline.moves.iter().collect();
        let bytes = |m: &Move| timeline.nodes[m.source.index()].bytes;
        order.sort_by_key(|m| std::cmp::Reverse((m.depth, bytes(m))));
        for m in order {
            self.merge(m.first, m.second);
            self.merge(m.source, m.first);
        }
        self.merge_donations(|d| matches!(d, Donation::Output { .. }));
        Ok(())
    }

    /// Merges outputs with the parameters that were donated for them.
    fn merge_donations(&mut self, wanted: impl Fn(Donation) -> bool) {
        let mut pairs: Vec<(NodeId, NodeId)> = Vec::new();
        for (&parameter, &donation) in &self.donations {
            if let (true, Donation::Output { output, .. }) = (wanted(donation), donation) {
                let node = self.timeline.outputs.get(output).copied().flatten();
                pairs.extend(node.map(|node| (parameter, node)));
            }
        }
        pairs.sort();
        for (parameter, node) in pairs {
            self.merge(parameter, node);
        }
    }

    /// Merges outputs that are not aliased with unused donated parameters of equal size.
    pub(crate) fn use_donors(&mut self) {
        let mut donors: Vec<NodeId> =
            self.donations.iter().filter(|(_, d)| **d == Donation::Any).map(|(n, _)| *n).collect();
        donors.sort();
        for donor in donors {
            for node in self.timeline.outputs.iter().flatten() {
                if self.class(*node).is_some_and(|c| c.parameter.is_none()) && self.merge(donor, *node) {
                    break;
                }
            }
        }
    }

    /// Lets instructions overwrite operands at their last read. Candidates are tried in this order: partial updates,
    /// then the largest, then those that run first.
    pub(crate) fn share_operands(&mut self) {
        let mut wishes = Vec::new();
        for (time, step) in self.timeline.steps.iter().enumerate() {
            let TimelineStep::Compute(comp, id) = *step else { continue };
            let Some(shares) = self.timeline.shares.get(&(comp, id)) else { continue };
            let read = self.flow.operand_leaves(self.module, comp, id);
            let written = self.flow.leaves(comp, id);
            for share in shares {
                let (Some(&from), Some(&to)) = (read.get(share.operand), written.get(share.output)) else { continue };
                let bytes = self.flow.value(to).bytes;
                let (from, to) = (NodeId::from(from), NodeId::from(to));
                // Among several results, prefers the one with the shortest live range, since short-lived values also
                // fit elsewhere.
                let last = self.class(to).and_then(Class::span).map_or(0, |(_, last)| last);
                wishes.push((std::cmp::Reverse((share.is_update(), bytes)), time, last, from, to));
            }
        }
        wishes.sort();
        for (.., from, to) in wishes {
            self.merge(from, to);
        }
    }

    /// Iterates over the moves whose source and join are in different buffers. They need copies.
    pub(crate) fn kept_moves(&self) -> impl Iterator<Item = (&Move, Kept)> {
        self.timeline.moves.iter().filter_map(|m| {
            let kept = Kept { first: !self.same(m.source, m.first), second: !self.same(m.first, m.second) };
            (kept.first || kept.second).then_some((m, kept))
        })
    }
}

/// The halves of a move that become copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) first: bool,
    pub(crate) second: bool,
}

impl JoinPlace {
    /// Formats the place for error messages.
    pub(crate) fn describe(self, module: &Module) -> String {
        match self {
            JoinPlace::LoopEntry(comp, id) => {
                format!("the operand of %{} in {}", module[comp][id].name(), module[comp].name())
            }
            JoinPlace::LoopBack(body) => format!("the root of loop body {}", module[body].name()),
            JoinPlace::Branch(branch) => format!("the root of branch {}", module[branch].name()),
            JoinPlace::Output => "the result of the program".to_string(),
        }
    }
}

/// Returns the leaf of an entry parameter that a node represents.
pub(crate) fn parameter_leaf(module: &Module, flow: &Flow, node: NodeId) -> ParameterLeaf {
    let origin = &flow.values()[node.index()].origin;
    let parameter = module.entry().parameters().iter().position(|&p| p == origin.instruction).unwrap_or(usize::MAX);
    ParameterLeaf { parameter, path: origin.path.clone() }
}

/// Inserts an interval and merges it with overlapping intervals of the same content.
fn insert(live: &mut BTreeSet<(Time, Time, NodeId)>, (mut start, mut end, content): (Time, Time, NodeId)) {
    loop {
        let until = (end, Time::MAX, NodeId(u32::MAX));
        let near = live.range(..=until).rev().take_while(|&&(_, e, _)| e >= start);
        let Some(&met) = near.into_iter().find(|&&(_, _, c)| c == content) else { break };
        live.remove(&met);
        (start, end) = (start.min(met.0), end.max(met.1));
    }
    live.insert((start, end, content));
}
