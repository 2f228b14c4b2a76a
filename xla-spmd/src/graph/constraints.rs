//! Application of constraints to their operands.
//!
//! A closed constraint does not propagate, so its sharding is written on the value that it constrains, unless other
//! constraints request another one.

use super::{Class, Graph, MeshSharding, NameId, NodeId, NodeRole};

/// Applies all constraints and the shardings that manual regions take their operands with.
pub fn apply(graph: &mut Graph) {
    let mut pass = Constraints::new(graph);
    for id in 0..pass.graph.nodes.len() {
        let Some(sharding) = pass.wanted(id).cloned() else { continue };
        if let Some(tail) = pass.tail_of_chain(id) {
            pass.read_tail(id, tail);
        }
        let input = pass.graph.nodes[id].operands[0];
        if pass.should_apply(input, &sharding) {
            pass.apply_to(id, input, sharding);
        }
    }
}

/// Graph with the producer and the users of each name.
struct Constraints<'g> {
    graph: &'g mut Graph,
    producers: Vec<Option<NodeId>>,
    /// Nodes in program order, once for each operand.
    users: Vec<Vec<NodeId>>,
    /// Number of uses as results of the program.
    results: Vec<usize>,
}

impl Constraints<'_> {
    fn new(graph: &mut Graph) -> Constraints<'_> {
        let count = graph.names.len();
        let (mut producers, mut users, mut results) = (vec![None; count], vec![Vec::new(); count], vec![0; count]);
        for (id, node) in graph.nodes.iter().enumerate() {
            node.results.iter().for_each(|&result| producers[result] = Some(id));
            node.operands.iter().for_each(|&operand| users[operand].push(id));
        }
        graph.results.iter().for_each(|result| results[result.name] += 1);
        Constraints { graph, producers, users, results }
    }

    /// Returns the sharding that a node requests for its operand.
    fn wanted(&self, id: NodeId) -> Option<&MeshSharding> {
        match &self.graph.nodes[id].role {
            NodeRole::Constraint(sharding) | NodeRole::Manual(sharding) => Some(sharding),
            NodeRole::Plain | NodeRole::Constant | NodeRole::ScalarExpansion => None,
        }
    }

    fn is_constraint(&self, id: NodeId) -> bool {
        matches!(self.graph.nodes[id].role, NodeRole::Constraint(_))
    }

    fn should_apply(&self, input: NameId, sharding: &MeshSharding) -> bool {
        let is_closed = sharding.sharding.dims.iter().all(|dim| !dim.is_open);
        is_closed
            && self.graph.value(input).sharding.is_none()
            && self.users[input].iter().filter_map(|&user| self.wanted(user)).all(|other| other == sharding)
    }

    /// Writes the sharding on the value. If the value joins several, all its other uses read the constraint instead.
    fn apply_to(&mut self, id: NodeId, input: NameId, sharding: MeshSharding) {
        let is_edge = self.producers[input].is_some_and(|producer| self.graph.nodes[producer].class == Class::Edge);
        if self.graph.value(input).names.len() == 1 && !is_edge {
            let value = self.graph.names[input].value;
            self.graph.values[value].sharding = Some(sharding);
        } else if self.is_constraint(id) {
            let output = self.graph.nodes[id].results[0];
            self.replace_uses(input, output, |_, user| user != id);
            for result in self.graph.results.iter_mut().filter(|result| result.name == input) {
                result.name = output;
            }
            self.results[output] += std::mem::take(&mut self.results[input]);
        }
    }

    /// Replaces the uses by the nodes that `is_replaced` accepts.
    fn replace_uses(&mut self, old: NameId, new: NameId, is_replaced: impl Fn(&Graph, NodeId) -> bool) {
        let all = std::mem::take(&mut self.users[old]);
        let (moved, kept): (Vec<NodeId>, Vec<NodeId>) =
            all.into_iter().partition(|&user| is_replaced(self.graph, user));
        for &user in &moved {
            let operands = self.graph.nodes[user].operands.iter_mut();
            operands.filter(|operand| **operand == old).for_each(|operand| *operand = new);
        }
        self.users[old] = kept;
        self.users[new].extend(moved);
        self.users[new].sort_unstable();
    }

    /// Returns the last constraint of a chain that begins at `head`: all but the last have one use, and no other
    /// constraint restricts the operand of the first. `None` if the chain has one constraint.
    fn tail_of_chain(&self, head: NodeId) -> Option<NodeId> {
        let input = self.graph.nodes[head].operands[0];
        let is_restricted = |name: NameId, except: Option<NodeId>| {
            self.users[name].iter().any(|&user| Some(user) != except && self.wanted(user).is_some())
        };
        if !self.is_constraint(head)
            || self.producers[input].is_some_and(|producer| self.is_constraint(producer))
            || self.graph.value(input).sharding.is_some()
            || is_restricted(input, Some(head))
        {
            return None;
        }
        let mut tail = head;
        let result = |id: NodeId| self.graph.nodes[id].results[0];
        while let ([next], 0) = (&self.users[result(tail)][..], self.results[result(tail)]) {
            if !self.is_constraint(*next) {
                break;
            }
            tail = *next;
        }
        (tail != head && !is_restricted(result(tail), None)).then_some(tail)
    }

    /// Replaces the uses of the first constraint's operand that follow the last constraint in its computation: they
    /// read the last constraint's result.
    fn read_tail(&mut self, head: NodeId, tail: NodeId) {
        let (input, output) = (self.graph.nodes[head].operands[0], self.graph.nodes[tail].results[0]);
        let computation = self.graph.nodes[tail].computation;
        self.replace_uses(input, output, |graph, user| {
            let node = &graph.nodes[user];
            user > tail && node.computation == computation && node.class != Class::Edge
        });
    }
}
