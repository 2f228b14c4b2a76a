//! Copies of constants: each use of a value that depends on constants alone has a sharding of its own.

use std::collections::HashMap;

use xla_hlo::{Error, Result};

use super::{Graph, NameId, Node, NodeRole};

/// Maximum number of copied operations in a program.
const MAX_COPIES: usize = 1 << 17;

/// Nodes whose results are copied for each use.
#[derive(Debug, Default)]
pub struct Templates {
    /// Node of each result.
    nodes: HashMap<NameId, usize>,
    /// Copies of each result.
    copies: HashMap<NameId, Vec<NameId>>,
    /// Number of copies of nodes.
    count: usize,
}

impl Templates {
    /// Whether the value depends on constants alone.
    pub fn is_constant(&self, graph: &Graph, name: NameId) -> bool {
        self.nodes.get(&name).is_some_and(|&node| graph.nodes[node].role == NodeRole::Constant)
    }

    /// Returns the copies of each result.
    pub fn into_copies(self) -> HashMap<NameId, Vec<NameId>> {
        self.copies
    }

    /// Registers the results of the last node for copies.
    pub fn add_last(&mut self, graph: &Graph) {
        if let Some(node) = graph.nodes.last() {
            self.nodes.extend(node.results.iter().map(|&result| (result, graph.nodes.len() - 1)));
        }
    }

    /// Returns the name that a use of `name` gets: a copy of it and of all constants that it depends on. Scalars, which
    /// nothing splits, are shared. Fails with `Error::ResourceExhausted` after too many copies.
    pub fn for_use(&mut self, graph: &mut Graph, name: NameId) -> Result<NameId> {
        let mut copied = HashMap::new();
        // Operands before results, without recursion: an entry is ready the second time it is on top.
        let mut stack = vec![name];
        while let Some(&top) = stack.last() {
            let template = self.nodes.get(&top).filter(|_| !graph.value(top).dims.is_empty()).copied();
            let Some(template) = template.filter(|_| !copied.contains_key(&top)) else {
                copied.entry(top).or_insert(top);
                stack.pop();
                continue;
            };
            let missing: Vec<NameId> =
                graph.nodes[template].operands.iter().copied().filter(|name| !copied.contains_key(name)).collect();
            if !missing.is_empty() {
                stack.extend(missing);
                continue;
            }
            self.copy(graph, template, &mut copied)?;
            stack.pop();
        }
        Ok(copied[&name])
    }

    fn copy(&mut self, graph: &mut Graph, template: usize, copied: &mut HashMap<NameId, NameId>) -> Result<()> {
        self.count += 1;
        if self.count > MAX_COPIES {
            return Err(Error::resource_exhausted(format!(
                "propagation of shardings copies more than {MAX_COPIES} constants, one for each use"
            )));
        }
        let node = graph.nodes[template].clone();
        let operands = node.operands.iter().map(|operand| copied[operand]).collect();
        let mut results = Vec::new();
        for &result in &node.results {
            let value = graph.value(result);
            let (dims, sharding) = (value.dims.clone(), value.sharding.clone());
            let name = graph.add_value(&dims, sharding);
            copied.insert(result, name);
            self.copies.entry(result).or_default().push(name);
            results.push(name);
        }
        let place = (node.place.0, self.count);
        graph.nodes.push(Node { operands, results, place, role: NodeRole::Plain, ..node });
        Ok(())
    }
}
