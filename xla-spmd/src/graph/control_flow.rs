//! Loops, branches and manual regions: data-flow edges between the values inside and outside of them.

use xla_hlo::ops::{Conditional, While};
use xla_hlo::sdy::{self, ManualEdge, ShardingRule};
use xla_hlo::{CompId, Computation, Error, InstrId, Op, Result};

use super::build::{Builder, identity};
use super::{Class, MeshSharding, NameId, NodeRole};

impl Builder<'_> {
    /// State that the body returns as it is becomes a value from outside. If that has a sharding, the loop reads it
    /// through an open constraint, so that it may be split further inside.
    pub(super) fn while_loop(&mut self, id: CompId, at: InstrId, op: &While) -> Result<Vec<NameId>> {
        let init = self.operand(id, at, 0);
        let is_kept = kept_leaves(&self.module[op.body], init.len());
        let targets = self.fresh(id, at)?;
        let (mut results, mut body, mut condition, mut sources) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (i, &init) in init.iter().enumerate() {
            if is_kept[i] {
                let inside = self.captured(id, init);
                results.push(init);
                body.push(inside);
                condition.push(inside);
                sources.push(init);
            } else {
                let value = self.graph.names[targets[i]].value;
                results.push(targets[i]);
                condition.push(self.graph.add_name(value));
                body.push(self.graph.add_name(value));
                sources.push(self.templates.for_use(&mut self.graph, init)?);
            }
        }
        self.graph.operands.insert((id, at, 0), sources.clone());
        self.walk(op.condition, vec![condition])?;
        let next = self.walk(op.body, vec![body])?;
        self.place += 1;
        for (i, &next) in next.iter().enumerate().filter(|(i, _)| !is_kept[*i]) {
            let next = self.templates.for_use(&mut self.graph, next)?;
            self.edge(id, vec![sources[i], next], targets[i]);
        }
        Ok(results)
    }

    /// Returns the name for the uses of an outside value in a loop.
    fn captured(&mut self, id: CompId, name: NameId) -> NameId {
        let value = self.graph.value(name);
        let Some(sharding) = value.sharding.clone().filter(|_| !self.templates.is_constant(&self.graph, name)) else {
            return name;
        };
        let dims = value.dims.clone();
        let open = sdy::ResolvedSharding::unsplit(dims.len(), true);
        let open = MeshSharding { sharding: open, ..sharding };
        let inside = self.graph.add_value(&dims, Some(open.clone()));
        let rule = ShardingRule { is_elementwise: true, ..identity(&dims, 1) };
        self.push(id, Class::PassThrough, rule, (vec![name], vec![inside]), NodeRole::Constraint(open));
        inside
    }

    pub(super) fn conditional(&mut self, id: CompId, at: InstrId, op: &Conditional) -> Result<Vec<NameId>> {
        let results = self.fresh(id, at)?;
        let mut sources = vec![Vec::new(); results.len()];
        self.used(id, at, 0)?;
        for (i, &branch) in op.branches.iter().enumerate() {
            let parameter = self.operand(id, at, i + 1);
            let ends = self.walk(branch, vec![parameter])?;
            for (list, end) in sources.iter_mut().zip(ends) {
                list.push(self.templates.for_use(&mut self.graph, end)?);
            }
        }
        self.place += 1;
        for (sources, &result) in sources.into_iter().zip(&results) {
            self.edge(id, sources, result);
        }
        Ok(results)
    }

    /// Checks that a manual region is manual along all axes of the mesh, so that nothing propagates inside.
    fn check_manual(&self, sharding: &MeshSharding, edge: &ManualEdge) -> Result<()> {
        let is_manual = |(name, size): &(String, usize)| *size == 1 || edge.manual_axes.contains(name);
        if !self.graph.meshes.mesh(sharding.mesh).axes.iter().all(is_manual) {
            return Err(Error::unimplemented(format!(
                "propagation into a region that is manual along {:?} only, not along all axes of the mesh",
                edge.manual_axes
            )));
        }
        Ok(())
    }

    /// A manual region takes each operand with a sharding of its own, which a data-flow edge carries backward.
    pub(super) fn manual_operands(&mut self, id: CompId, at: InstrId, edge: &ManualEdge) -> Result<Vec<NameId>> {
        let operands = self.all_used(id, at)?;
        for (&operand, sharding) in operands.iter().zip(&edge.shardings) {
            let dims = self.graph.value(operand).dims.clone();
            let resolved = self.resolve(sharding, &dims)?;
            self.check_manual(&resolved, edge)?;
            let taken = self.graph.add_value(&dims, Some(resolved.clone()));
            let rule = identity(&dims, 1);
            self.push(id, Class::Edge, rule, (vec![operand], vec![taken]), NodeRole::Manual(resolved));
        }
        let leaves = self.module[id][at].shape().leaves();
        Ok(leaves.iter().map(|(_, leaf)| self.graph.add_value(leaf.dims(), None)).collect())
    }

    pub(super) fn manual_results(&mut self, id: CompId, at: InstrId, edge: &ManualEdge) -> Result<Vec<NameId>> {
        let mut results = Vec::new();
        for (i, (_, leaf)) in self.module[id][at].shape().leaves().iter().enumerate() {
            let sharding = edge.shardings.get(i).map(|sharding| self.resolve(sharding, leaf.dims())).transpose()?;
            if let Some(sharding) = &sharding {
                self.check_manual(sharding, edge)?;
            }
            results.push(self.graph.add_value(leaf.dims(), sharding));
        }
        Ok(results)
    }
}

/// Leaves of a loop's state that the body returns as they are. Only arrays directly in the tuple are looked at.
fn kept_leaves(body: &Computation, count: usize) -> Vec<bool> {
    let root = &body[body.root()];
    let (Op::Tuple(_), [parameter]) = (root.op(), body.parameters()) else { return vec![false; count] };
    let is_kept = |(i, &operand): (usize, &InstrId)| {
        let element = &body[operand];
        matches!(element.op(), Op::GetTupleElement(get) if get.index == i && element.operand(0) == *parameter)
    };
    let kept: Vec<bool> = root.operands().iter().enumerate().map(is_kept).collect();
    if kept.len() == count { kept } else { vec![false; count] }
}
