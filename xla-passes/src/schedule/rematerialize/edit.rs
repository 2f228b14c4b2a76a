//! Recomputes one value before a later use.

use std::collections::HashMap;

use xla_hlo::ops::{Fusion, FusionKind, Parameter};
use xla_hlo::{CompId, Computation, Error, InstrId, Instruction, Module, Op, Result};

use crate::rewrite::graph::{clone_with_operands, is_free};

/// A recomputation of one value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Edit {
    /// Computation of the value.
    pub(super) program: CompId,
    /// Instruction that defines the value.
    pub(super) maker: InstrId,
    /// Index among the maker's results, if it has several.
    pub(super) index: Option<usize>,
    /// Instruction before which the value is recomputed.
    pub(super) before: InstrId,
    /// Uses that read the new value.
    pub(super) reads: Vec<Read>,
}

/// A use of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Read {
    pub(super) user: InstrId,
    pub(super) operand: usize,
    /// Bitcasts between the value and the use.
    pub(super) way: Vec<InstrId>,
}

impl Edit {
    /// Returns the name of the maker for messages.
    pub(super) fn name<'m>(&self, module: &'m Module) -> &'m str {
        module[self.program][self.maker].name()
    }

    /// Applies the edit to the module and its schedule.
    pub(super) fn apply(&self, module: &mut Module) -> Result<()> {
        let again = self.again(module)?;
        let graph = module.computation_mut(self.program);
        let mut order = graph.sequence();
        let mut new = vec![graph.add(again)];
        let mut names: HashMap<InstrId, InstrId> = HashMap::new();
        for Read { user, operand, way } in &self.reads {
            let mut value = new[0];
            for &name in way {
                value = *names.entry(name).or_insert_with(|| {
                    let clone = clone_with_operands(&graph[name], vec![value]);
                    new.push(graph.add(clone));
                    new[new.len() - 1]
                });
            }
            graph.replace_operand(*user, *operand, value);
        }
        let at = order.iter().position(|&id| id == self.before);
        let at =
            at.ok_or_else(|| Error::internal("the schedule lacks the instruction that reads the recomputed value"))?;
        drop(order.splice(at..at, new));
        self.remove_unused(module, &mut order)?;
        module.computation_mut(self.program).set_schedule(Some(order));
        Ok(())
    }

    /// Returns the operands that the recomputation needs.
    pub(super) fn operands(&self, module: &Module) -> Vec<InstrId> {
        let maker = &module[self.program][self.maker];
        match maker.op() {
            Op::Fusion(fusion) => {
                let (_, kept) = kernel_of_result(&module[fusion.computation], self.index);
                kept.into_iter().map(|number| maker.operand(number)).collect()
            }
            _ => maker.operands().to_vec(),
        }
    }

    /// Returns the new maker, which only computes this value.
    fn again(&self, module: &mut Module) -> Result<Instruction> {
        let maker = module[self.program][self.maker].clone();
        let named = |i: Instruction| {
            i.with_name(format!("{}.again", maker.name())).with_annotations(maker.annotations().cloned().map(Box::new))
        };
        let Op::Fusion(fusion) = maker.op() else {
            return Ok(named(Instruction::new(maker.op().clone(), maker.shape().clone(), maker.operands().to_vec())));
        };
        let (kernel, kept) = kernel_of_result(&module[fusion.computation], self.index);
        let shape = kernel.result_shape().clone();
        let reductions = kernel.iter().any(|(_, i)| matches!(i.op(), Op::Reduce(_)));
        let kind = if reductions { FusionKind::Input } else { FusionKind::Loop };
        let op = Fusion { kind, computation: module.add(kernel), aliases: Vec::new() };
        let operands: Vec<InstrId> = kept.into_iter().map(|number| maker.operand(number)).collect();
        Ok(named(Instruction::new(op.into(), shape, operands)))
    }

    /// Removes the old maker and its aliases if they are unused.
    fn remove_unused(&self, module: &mut Module, order: &mut Vec<InstrId>) -> Result<()> {
        let graph = module.computation_mut(self.program);
        let ways = self.reads.iter().flat_map(|read| read.way.iter().rev().copied());
        let elements: Vec<InstrId> = match self.index {
            Some(_) => graph[self.maker].users().to_vec(),
            None => Vec::new(),
        };
        for id in ways.chain(elements).chain([self.maker]).collect::<Vec<_>>() {
            let Some(instruction) = graph.get(id) else { continue };
            if instruction.users().is_empty() && is_free(instruction) && graph.root() != id {
                let op = instruction.op().clone();
                graph.remove(id)?;
                order.retain(|&other| other != id);
                if let Op::Fusion(fusion) = op {
                    return module.remove(fusion.computation);
                }
            }
        }
        Ok(())
    }
}

/// Returns the part of a kernel that computes one of its results, and the numbers of the operands that it needs.
fn kernel_of_result(body: &Computation, index: Option<usize>) -> (Computation, Vec<usize>) {
    let root = match index {
        Some(index) if matches!(body[body.root()].op(), Op::Tuple(_)) => body[body.root()].operand(index),
        _ => body.root(),
    };
    let mut needed = vec![root];
    let mut next = 0;
    let mut seen = std::collections::HashSet::from([root]);
    while let Some(&id) = needed.get(next) {
        next += 1;
        needed.extend(body[id].operands().iter().copied().filter(|&o| seen.insert(o)));
    }
    let mut kernel = Computation::new(body.name());
    let mut kept = Vec::new();
    let mut new: HashMap<InstrId, InstrId> = HashMap::new();
    for id in body.post_order().into_iter().filter(|id| seen.contains(id)) {
        let instruction = &body[id];
        let clone = match instruction.op() {
            Op::Parameter(parameter) => {
                kept.push(parameter.number);
                let number = Parameter { number: kept.len() - 1 };
                Instruction::new(number.into(), instruction.shape().clone(), []).with_name(instruction.name())
            }
            _ => clone_with_operands(instruction, instruction.operands().iter().map(|o| new[o]).collect()),
        };
        new.insert(id, kernel.add(clone));
    }
    kernel.set_root(new[&root]);
    (kernel, kept)
}
