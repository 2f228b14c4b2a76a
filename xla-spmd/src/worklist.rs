//! Propagation to a fixed point: user priorities, classes of operations, and a worklist.

use std::collections::BTreeSet;

use xla_hlo::Result;
use xla_hlo::sdy::{FactorKind, ResolvedDim, ResolvedSharding, RuleBuilder, ShardingRule};

use crate::factors::{Arrays, Directions};
use crate::graph::{Class, Graph, MeshSharding, NameId, NodeId, Value, ValueId};
use crate::projection::Projection;

/// Classes of operations, each including the earlier ones.
const STEPS: [fn(&Graph, NodeId, usize) -> Directions; 5] = [
    |graph, node, _| pass_through(graph, node, false),
    |graph, node, _| pass_through(graph, node, true),
    pass_through_factors,
    |graph, node, _| all_but_broadcasts(graph, node),
    |_, _, _| Directions::BOTH,
];

/// Propagates all shardings.
pub fn run(graph: &mut Graph) -> Result<()> {
    let stated = take_priorities(graph);
    let priorities: BTreeSet<u64> = stated.iter().flat_map(|(_, sharding)| later_priorities(sharding)).collect();
    run_classes(graph);
    for priority in priorities {
        for (place, sharding) in &stated {
            restore_priority(graph, *place, sharding, priority);
        }
        run_classes(graph);
    }
    Ok(())
}

/// Place of a sharding.
#[derive(Clone, Copy, Debug)]
enum Place {
    Value(ValueId),
    Result(usize),
}

fn sharding_at(graph: &mut Graph, place: Place) -> Option<&mut ResolvedSharding> {
    let sharding = match place {
        Place::Value(value) => &mut graph.values[value].sharding,
        Place::Result(result) => &mut graph.results[result].sharding,
    };
    sharding.as_mut().map(|sharding| &mut sharding.sharding)
}

fn later_priorities(sharding: &ResolvedSharding) -> impl Iterator<Item = u64> + '_ {
    sharding.dims.iter().filter_map(|dim| dim.priority).filter(|&priority| priority > 0)
}

/// Closes and empties all dimensions of a later priority than 0, and reserves their axes. Returns the shardings with
/// such dimensions.
fn take_priorities(graph: &mut Graph) -> Vec<(Place, ResolvedSharding)> {
    let places = (0..graph.values.len()).map(Place::Value).chain((0..graph.results.len()).map(Place::Result));
    let mut stated = Vec::new();
    for place in places.collect::<Vec<_>>() {
        let Some(sharding) = sharding_at(graph, place) else { continue };
        let original = sharding.clone();
        for dim in &mut sharding.dims {
            if dim.priority.take().unwrap_or(0) > 0 {
                sharding.replicated.append(&mut dim.axes);
                dim.is_open = false;
            }
        }
        sharding.replicated.sort_unstable();
        if later_priorities(&original).next().is_some() {
            stated.push((place, original));
        }
    }
    stated
}

/// Restores the stated axes of the dimensions of a priority.
fn restore_priority(graph: &mut Graph, place: Place, stated: &ResolvedSharding, priority: u64) {
    let Some(sharding) = sharding_at(graph, place) else { return };
    for (dim, stated) in sharding.dims.iter_mut().zip(&stated.dims) {
        if stated.priority == Some(priority) {
            *dim = ResolvedDim { priority: None, ..stated.clone() };
            sharding.replicated.retain(|part| !stated.axes.contains(part));
        }
    }
}

fn run_classes(graph: &mut Graph) {
    for step in 0..STEPS.len() {
        let direction = |graph: &Graph, node: NodeId, factor: usize| {
            STEPS[..=step].iter().fold(Directions::NONE, |all, class| all.union(class(graph, node, factor)))
        };
        propagate_results(graph);
        to_fixed_point(graph, direction);
        propagate_results(graph);
    }
}

fn pass_through(graph: &Graph, node: NodeId, is_multi_use: bool) -> Directions {
    let allowed = match graph.nodes[node].class {
        Class::PassThrough | Class::Barrier(_) => Directions::BOTH,
        // The operand of an edge is its owner, whose only use is the edge.
        Class::Edge => return Directions::BOTH,
        Class::DynamicSlice => Directions::FORWARD,
        Class::Broadcast | Class::Other => return Directions::NONE,
    };
    let is_used_once = |&name: &NameId| graph.names[name].users.len() == 1 || graph.value(name).dims.is_empty();
    if is_multi_use || graph.nodes[node].operands.iter().all(is_used_once) { allowed } else { Directions::NONE }
}

fn pass_through_factors(graph: &Graph, node: NodeId, factor: usize) -> Directions {
    let kind = graph.nodes[node].rule.factors[factor].kind;
    if kind == FactorKind::PassThrough { all_but_broadcasts(graph, node) } else { Directions::NONE }
}

fn all_but_broadcasts(graph: &Graph, node: NodeId) -> Directions {
    if graph.nodes[node].class == Class::Broadcast { Directions::BACKWARD } else { Directions::BOTH }
}

/// Stack of operations to visit; an operation that is on it is not pushed again.
struct Worklist {
    stack: Vec<NodeId>,
    is_listed: Vec<bool>,
}

impl Worklist {
    fn push(&mut self, node: NodeId) {
        if !self.is_listed[node] {
            self.is_listed[node] = true;
            self.stack.push(node);
        }
    }

    fn pop(&mut self) -> Option<NodeId> {
        let node = self.stack.pop()?;
        self.is_listed[node] = false;
        Some(node)
    }
}

/// Visits all operations in program order, and again those whose arrays changed.
///
/// Terminates because each change adds axes to a value, and the mesh has a fixed number of axes.
fn to_fixed_point(graph: &mut Graph, direction: impl Fn(&Graph, NodeId, usize) -> Directions) {
    let count = graph.nodes.len();
    let mut worklist = Worklist { stack: (0..count).rev().collect(), is_listed: vec![true; count] };
    while let Some(node) = worklist.pop() {
        let rule = &graph.nodes[node].rule;
        let of_factor: Vec<Directions> = (0..rule.factors.len())
            .map(|factor| match graph.nodes[node].class {
                _ if rule.factors[factor].is_blocked => Directions::NONE,
                Class::Barrier(allowed) => allowed.into(),
                _ => direction(graph, node, factor),
            })
            .collect();
        let values: Vec<ValueId> = {
            let node = &graph.nodes[node];
            node.operands.iter().chain(&node.results).map(|&name| graph.names[name].value).collect()
        };
        let shardings: Vec<Option<&MeshSharding>> =
            values.iter().map(|&value| graph.values[value].sharding.as_ref()).collect();
        let operands = graph.nodes[node].operands.len();
        let updates = step(graph, rule, &shardings, operands, |factor| of_factor[factor]);
        for (array, sharding) in updates {
            set(graph, values[array], sharding, node, &mut worklist);
        }
    }
}

/// Propagates across one operation. Returns the new shardings by array: operands, then results.
fn step(
    graph: &Graph,
    rule: &ShardingRule,
    shardings: &[Option<&MeshSharding>],
    operands: usize,
    direction: impl Fn(usize) -> Directions,
) -> Vec<(usize, MeshSharding)> {
    let mut stated = shardings.iter().flatten();
    let Some(first) = stated.next() else { return Vec::new() };
    if stated.any(|other| other.mesh != first.mesh) || graph.meshes.is_maximal(first.mesh) {
        return Vec::new();
    }
    let mappings: Vec<_> = rule.operands.iter().chain(&rule.results).collect();
    if mappings.len() != shardings.len() {
        return Vec::new();
    }
    let project = |(mapping, sharding): (&&_, &Option<&MeshSharding>)| {
        Projection::new(mapping, sharding.map(|sharding| &sharding.sharding), rule)
    };
    let projections = mappings.iter().zip(shardings).map(project).collect();
    let mut arrays = Arrays { projections, operands };
    let changed = arrays.propagate(rule, direction);
    let mesh = first.mesh;
    let update = |array: usize| {
        let old = shardings[array].map(|old| &old.sharding);
        let new = arrays.projections[array].sharding(mappings[array], rule, old);
        let is_new = old.map_or(!new.has_no_axes(), |old| *old != new);
        is_new.then_some((array, MeshSharding { mesh, sharding: new }))
    };
    (0..shardings.len()).filter(|&array| changed[array]).filter_map(update).collect()
}

/// Changes the sharding of a value and of its group; pushes the operations around it, but not the one that changed it.
fn set(graph: &mut Graph, value: ValueId, sharding: MeshSharding, by: NodeId, worklist: &mut Worklist) {
    let mut members = vec![value];
    if let Some(group) = graph.values[value].group {
        let others =
            (0..graph.values.len()).filter(|&other| other != value && graph.values[other].group == Some(group));
        members.extend(others);
    }
    for member in members {
        graph.values[member].sharding = Some(sharding.clone());
        let Value { names, producer, .. } = &graph.values[member];
        let Some((&owner, others)) = names.split_first() else { continue };
        let users = |name: NameId| graph.names[name].users.iter().rev().flatten().copied();
        let around = others.iter().flat_map(|&name| users(name)).chain(*producer).chain(users(owner));
        around.filter(|&node| node != by).for_each(|node| worklist.push(node));
    }
}

/// Propagates between the values that the program returns and the shardings of its results.
fn propagate_results(graph: &mut Graph) {
    for i in 0..graph.results.len() {
        let value = graph.names[graph.results[i].name].value;
        let dims = graph.values[value].dims.clone();
        let mut builder = RuleBuilder::with_dims(vec![dims.clone()], vec![dims.clone()]);
        builder.pointwise_dims(&dims, |_| Default::default());
        let rule = builder.finish();
        let shardings = [graph.values[value].sharding.as_ref(), graph.results[i].sharding.as_ref()];
        for (array, sharding) in step(graph, &rule, &shardings, 1, |_| Directions::BOTH) {
            if array == 0 {
                graph.values[value].sharding = Some(sharding);
            } else {
                graph.results[i].sharding = Some(sharding);
            }
        }
    }
}
