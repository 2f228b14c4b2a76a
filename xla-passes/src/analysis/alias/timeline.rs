//! Timeline of a scheduled program: a linear sequence of steps, with every place where values meet in one buffer.
//!
//! Loops and branches are unfolded in place: a loop is its entry, its condition and its body, once each. At a join (a
//! loop's entry and back edge, the end of a branch, the end of the program) all leaves move in parallel. Each leaf that
//! is a join passes through two *moves*: first all sources move to fresh buffers, then all fresh buffers move to the
//! joins. This is correct even if two leaves are swapped. A move is dropped if its source, its fresh buffer and its
//! join can share one buffer; the remaining moves are copies. Compilers leave SSA form by this method (B. Boissinot et
//! al., "Revisiting Out-of-SSA Translation", CGO 2009): copy everywhere, then merge values that do not interfere. Two
//! values that are known to be equal never interfere.

use std::collections::HashMap;

use xla_hlo::{CompId, InstrId, Module, Op, ParameterLeaf, Result};

use super::ValueRef;
use super::flow::{Flow, ValueId, ValueKind};
use super::in_place::{Share, leaf_number, shares};
use super::live::{BlockId, Interval, RegionId, Regions, Time, Use};
use super::role::{Role, role};

/// Something that needs memory: a value of the [`Flow`] (with the same number) or the result of a move.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct NodeId(pub(crate) u32);

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<ValueId> for NodeId {
    fn from(value: ValueId) -> NodeId {
        NodeId(value.0)
    }
}

/// A value in memory with its live range.
#[derive(Clone, Debug)]
pub(crate) struct TimelineNode {
    /// Represents the content: nodes with equal contents hold equal bytes whenever both are live.
    pub(crate) content: NodeId,
    pub(crate) bytes: usize,
    pub(crate) memory_space: i64,
    /// Live range in ascending order; empty for values that were simplified away or have no memory.
    pub(crate) live: Vec<Interval>,
    /// Memory that the node must use.
    pub(crate) fixed: Fixed,
}

/// Constraint on the memory of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fixed {
    /// No constraint.
    No,
    /// Memory of a leaf of an entry parameter.
    Parameter {
        /// Whether the program may overwrite it.
        donated: bool,
    },
    /// Memory of a constant.
    Constant,
    /// Memory of a leaf of the program's result, numbered depth first.
    Output(usize),
}

/// Step of a timeline.
#[derive(Clone, Debug)]
pub(crate) enum TimelineStep {
    /// The program begins.
    Begin,
    /// A computing instruction runs.
    Compute(CompId, InstrId),
    /// A loop or conditional starts, decides or ends.
    Control(CompId, InstrId),
    /// A move; the joins determine which one.
    Move,
    /// The program ends.
    End,
}

/// Program point where values flow into joins.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum JoinPlace {
    /// Point before a while instruction of that computation.
    LoopEntry(CompId, InstrId),
    /// End of a loop's body.
    LoopBack(CompId),
    /// End of a branch.
    Branch(CompId),
    /// End of the program.
    Output,
}

/// Path of one leaf into a join: `source -> first -> second`, where `second` is the join's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub(crate) place: JoinPlace,
    /// Leaf number in the operand of the while, in the root of the body or branch, or in the program's result.
    pub(crate) leaf: usize,
    pub(crate) source: NodeId,
    pub(crate) first: NodeId,
    pub(crate) second: NodeId,
    /// The join; `second` itself for the program's result.
    pub(crate) join: NodeId,
    /// Loop nesting depth.
    pub(crate) depth: u32,
}

/// A scheduled program as a linear sequence of steps.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    pub(crate) steps: Vec<TimelineStep>,
    pub(crate) nodes: Vec<TimelineNode>,
    pub(crate) moves: Vec<Move>,
    /// Operands that each computing instruction may overwrite.
    pub(crate) shares: HashMap<(CompId, InstrId), Vec<Share>>,
    /// Nodes of the program's result, by leaf; `None` without memory.
    pub(crate) outputs: Vec<Option<NodeId>>,
}

impl Timeline {
    /// Unfolds a scheduled module. Computations without a schedule run in post order.
    pub(crate) fn new(module: &Module, flow: &Flow) -> Result<Timeline> {
        let mut line = Line {
            module,
            flow,
            regions: Regions::default(),
            timeline: Timeline {
                steps: vec![TimelineStep::Begin],
                nodes: Vec::new(),
                moves: Vec::new(),
                shares: HashMap::new(),
                outputs: Vec::new(),
            },
            facts: Vec::new(),
        };
        line.value_nodes();
        let entry = line.regions.open_entry();
        line.computation(module.entry_id(), entry, 0)?;
        line.outputs(entry);
        let end = line.step(TimelineStep::End);
        line.regions.close_region(entry, end);
        Ok(line.finish(end))
    }

    /// Returns the donation of each donated leaf of the entry parameters.
    pub(crate) fn donations(module: &Module) -> HashMap<ParameterLeaf, Donation> {
        let attributes = module.attributes();
        let mut found: HashMap<ParameterLeaf, Donation> =
            attributes.buffer_donors.iter().map(|d| (d.clone(), Donation::Any)).collect();
        let result = module.entry().result_shape();
        for alias in &attributes.input_output_alias {
            if let Some(output) = leaf_number(result, &alias.output) {
                found.insert(alias.parameter.clone(), Donation::Output { output, must: alias.must_alias });
            }
        }
        found
    }
}

/// Permitted use of a donated parameter's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Donation {
    /// The memory may be used for any value.
    Any,
    /// The memory may be used for that leaf of the result.
    Output {
        /// Leaf of the result, numbered depth first.
        output: usize,
        /// Whether the result must be stored there.
        must: bool,
    },
}

/// Facts that the traversal collects about a node.
#[derive(Clone, Debug, Default)]
struct Facts {
    written: Option<Use>,
    uses: Vec<Use>,
    /// The block that this node is a join of.
    joins: Option<BlockId>,
    /// The whole live range, if it is known at once.
    known: Option<Interval>,
}

struct Line<'m> {
    module: &'m Module,
    flow: &'m Flow,
    regions: Regions,
    timeline: Timeline,
    facts: Vec<Facts>,
}

impl Line<'_> {
    fn value_nodes(&mut self) {
        let donations = Timeline::donations(self.module);
        for (i, value) in self.flow.values().iter().enumerate() {
            let fixed = match value.kind {
                ValueKind::Computed | ValueKind::Join => Fixed::No,
                ValueKind::Constant => Fixed::Constant,
                ValueKind::Parameter(parameter) => {
                    let leaf = ParameterLeaf { parameter, path: value.origin.path.clone() };
                    Fixed::Parameter { donated: donations.contains_key(&leaf) }
                }
            };
            self.timeline.nodes.push(TimelineNode {
                content: NodeId(i as u32),
                bytes: value.bytes,
                memory_space: value.memory_space,
                live: Vec::new(),
                fixed,
            });
        }
        self.facts = vec![Facts::default(); self.timeline.nodes.len()];
    }

    fn now(&self) -> Time {
        self.timeline.steps.len() as Time
    }

    fn step(&mut self, step: TimelineStep) -> Time {
        self.timeline.steps.push(step);
        self.now() - 1
    }

    fn uses(&mut self, values: &[ValueId], at: Use) {
        for value in values {
            let uses = &mut self.facts[value.index()].uses;
            if uses.last() != Some(&at) {
                uses.push(at);
            }
        }
    }

    fn computation(&mut self, id: CompId, region: RegionId, depth: u32) -> Result<()> {
        let (module, flow) = (self.module, self.flow);
        let computation = &module[id];
        for instr in computation.sequence() {
            match role(computation, instr) {
                Role::Parameter(_) | Role::Constant | Role::Forward | Role::First | Role::Element(_) => {}
                Role::Compute => self.compute(id, instr, region),
                Role::Call(callee) => self.computation(callee, region, depth)?,
                Role::While { condition, body } => self.while_loop((id, instr), condition, body, region, depth)?,
                Role::Conditional(branches) => {
                    let head = self.step(TimelineStep::Control(id, instr));
                    self.uses(&flow.operand_leaves(module, id, instr), (head, region));
                    match branches[..] {
                        [only] => {
                            self.computation(only, region, depth)?;
                            let tail = self.step(TimelineStep::Control(id, instr));
                            self.uses(flow.leaves(id, instr), (tail, region));
                        }
                        _ => self.branches((id, instr), &branches, head, region, depth)?,
                    }
                }
            }
        }
        Ok(())
    }

    fn compute(&mut self, comp: CompId, id: InstrId, region: RegionId) {
        let computation = &self.module[comp];
        let at = (self.step(TimelineStep::Compute(comp, id)), region);
        let read = self.flow.operand_leaves(self.module, comp, id);
        self.uses(&read, at);
        let written = self.flow.leaves(comp, id);
        for value in written {
            self.facts[value.index()].written = Some(at);
        }
        let shares = shares(self.module, computation, id);
        if matches!(computation[id].op(), Op::Copy(_)) && !shares.is_empty() {
            // A copy holds the same bytes. A copy into another layout shares nothing.
            if let (Some(&from), Some(&to)) = (read.first(), written.first()) {
                self.timeline.nodes[to.index()].content = self.timeline.nodes[from.index()].content;
            }
        }
        if !shares.is_empty() {
            self.timeline.shares.insert((comp, id), shares);
        }
    }

    fn while_loop(
        &mut self,
        at: (CompId, InstrId),
        condition: CompId,
        body: CompId,
        region: RegionId,
        depth: u32,
    ) -> Result<()> {
        let (module, flow) = (self.module, self.flow);
        let joins = flow.joins(at.0, at.1)?;
        let joined = self.joined(at, &joins.results);
        self.moves(JoinPlace::LoopEntry(at.0, at.1), &joined, &joins.sources[0], region, depth);
        let head = self.step(TimelineStep::Control(at.0, at.1));
        let block = self.regions.open_block(region, head, true);
        for &(_, value) in &joined {
            self.facts[value.index()].joins = Some(block);
        }
        let inner = self.regions.open_region(block, self.now());
        self.computation(condition, inner, depth + 1)?;
        let decide = self.step(TimelineStep::Control(at.0, at.1));
        self.uses(flow.leaves(condition, module[condition].root()), (decide, inner));
        self.regions.close_region(inner, decide);
        let inner = self.regions.open_region(block, self.now());
        self.computation(body, inner, depth + 1)?;
        self.moves(JoinPlace::LoopBack(body), &joined, &joins.sources[1], inner, depth + 1);
        let back = self.step(TimelineStep::Control(at.0, at.1));
        self.regions.close_region(inner, back);
        let end = self.step(TimelineStep::Control(at.0, at.1));
        self.regions.close_block(block, end);
        // State stays live through the whole loop, even if it is never read.
        self.uses(&joins.results, (end, region));
        Ok(())
    }

    fn branches(
        &mut self,
        at: (CompId, InstrId),
        branches: &[CompId],
        head: Time,
        region: RegionId,
        depth: u32,
    ) -> Result<()> {
        let flow = self.flow;
        let joins = flow.joins(at.0, at.1)?;
        let joined = self.joined(at, &joins.results);
        let block = self.regions.open_block(region, head, false);
        for (&branch, sources) in branches.iter().zip(&joins.sources) {
            let inner = self.regions.open_region(block, self.now());
            self.computation(branch, inner, depth)?;
            self.moves(JoinPlace::Branch(branch), &joined, sources, inner, depth);
            let done = self.step(TimelineStep::Control(at.0, at.1));
            self.regions.close_region(inner, done);
        }
        for &(_, value) in &joined {
            self.facts[value.index()].joins = Some(block);
        }
        let tail = self.step(TimelineStep::Control(at.0, at.1));
        self.regions.close_block(block, tail);
        self.uses(&joins.results, (tail, region));
        Ok(())
    }

    /// Returns the leaves that are joins of this instruction itself, not simplified and in memory.
    fn joined(&self, at: (CompId, InstrId), results: &[ValueId]) -> Vec<(usize, ValueId)> {
        let is_own = |v: ValueId| {
            let ValueRef { computation, instruction, .. } = self.flow.value(v).origin;
            (computation, instruction) == at && self.flow.value(v).in_memory
        };
        results.iter().copied().enumerate().filter(|&(_, v)| is_own(v)).collect()
    }

    /// Emits the moves of `sources` (by leaf) into joins. The results of the second moves stay live until all moves are
    /// done.
    fn moves(
        &mut self,
        place: JoinPlace,
        joined: &[(usize, ValueId)],
        sources: &[ValueId],
        region: RegionId,
        depth: u32,
    ) {
        let pairs: Vec<(usize, ValueId, Option<ValueId>)> =
            joined.iter().filter_map(|&(leaf, join)| Some((leaf, *sources.get(leaf)?, Some(join)))).collect();
        self.move_all(place, &pairs, region, depth);
    }

    fn move_all(
        &mut self,
        place: JoinPlace,
        pairs: &[(usize, ValueId, Option<ValueId>)],
        region: RegionId,
        depth: u32,
    ) -> Vec<NodeId> {
        let (start, count) = (self.now(), pairs.len() as Time);
        let end = start + 2 * count;
        let mut seconds = Vec::with_capacity(pairs.len());
        for (i, &(leaf, source, join)) in (0..count).zip(pairs) {
            self.step(TimelineStep::Move);
            self.uses(&[source], (start + i, region));
            let first = self.moved(source, (start + i, start + count + i));
            // A program's result is live until the end of the program, one step after the moves.
            let last = if place == JoinPlace::Output { end } else { end - 1 };
            let second = self.moved(source, (start + count + i, last));
            let join = join.map_or(second, NodeId::from);
            self.timeline.moves.push(Move { place, leaf, source: source.into(), first, second, join, depth });
            seconds.push(second);
        }
        for _ in 0..count {
            self.step(TimelineStep::Move);
        }
        seconds
    }

    fn moved(&mut self, source: ValueId, live: Interval) -> NodeId {
        let mut node = self.timeline.nodes[source.index()].clone();
        node.fixed = Fixed::No;
        self.timeline.nodes.push(node);
        self.facts.push(Facts { known: Some(live), ..Facts::default() });
        NodeId(self.timeline.nodes.len() as u32 - 1)
    }

    fn outputs(&mut self, region: RegionId) {
        let entry = self.module.entry_id();
        let root = self.flow.leaves(entry, self.module.entry().root());
        let pairs: Vec<(usize, ValueId, Option<ValueId>)> = root
            .iter()
            .enumerate()
            .filter(|(_, v)| self.flow.value(**v).in_memory)
            .map(|(leaf, &v)| (leaf, v, None))
            .collect();
        let nodes = self.move_all(JoinPlace::Output, &pairs, region, 0);
        self.timeline.outputs = vec![None; root.len()];
        for ((leaf, _, _), node) in pairs.into_iter().zip(nodes) {
            self.timeline.nodes[node.index()].fixed = Fixed::Output(leaf);
            self.timeline.outputs[leaf] = Some(node);
        }
    }

    /// Computes live ranges from the collected facts.
    fn finish(mut self, end: Time) -> Timeline {
        for (i, facts) in self.facts.iter().enumerate() {
            let node = &mut self.timeline.nodes[i];
            if self.flow.values().get(i).is_some_and(|v| !v.in_memory) {
                continue;
            }
            let live = &mut node.live;
            match (node.fixed, facts) {
                (Fixed::Constant | Fixed::Parameter { donated: false }, _) => live.push((0, end)),
                (_, Facts { known: Some(known), .. }) => live.push(*known),
                (_, Facts { joins: Some(block), uses, .. }) => self.regions.live_join(*block, uses, live),
                (Fixed::Parameter { donated: true }, Facts { uses, .. }) => {
                    live.push((0, 0));
                    self.regions.live(self.regions.entry(), 0, uses, live);
                }
                (_, Facts { written: Some((time, region)), uses, .. }) => {
                    live.push((*time, *time));
                    self.regions.live(*region, *time, uses, live);
                }
                (Fixed::No | Fixed::Output(_), _) => {}
            }
        }
        self.timeline
    }
}
