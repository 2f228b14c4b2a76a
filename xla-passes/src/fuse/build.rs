//! Converts a fusion plan into fusion instructions.

use std::collections::HashMap;

use xla_hlo::entity::SecondaryMap;
use xla_hlo::ops::{Fusion, FusionKind, OutputOperandAlias, Parameter};
use xla_hlo::{CompId, Computation, InstrId, Instruction, Module, Op, Result};

use super::group::FusionGroup;
use super::plan::FusionPlan;
use crate::rewrite::graph::{self, clone_with_operands};

/// Creates a fusion for each group.
pub fn build(module: &mut Module, id: CompId, plan: &FusionPlan) -> Result<()> {
    let mut place = SecondaryMap::new(0);
    module[id].post_order().into_iter().enumerate().for_each(|(i, id)| place[id] = i);
    // Visits consumers first: they read the unfused instruction, which its own fusion then replaces.
    for group in &plan.groups {
        let mut members: Vec<InstrId> = group.members.keys().copied().collect();
        members.sort_unstable_by_key(|&m| place[m]);
        let name = name(&module[id], group, &members);
        let (kernel, operands) = kernel(&module[id], group, &members);
        let root = module[id][group.root].clone();
        let (kind, aliases) = (kind_of(&kernel), in_place(&root, &operands));
        let fusion = Fusion { kind, aliases, computation: module.add(kernel) };
        let instruction = Instruction::new(fusion.into(), root.shape().clone(), operands)
            .with_name(name)
            .with_annotations(root.annotations().cloned().map(Box::new));
        let computation = module.computation_mut(id);
        let new = computation.add(instruction);
        computation.replace_all_uses(group.root, new);
    }
    let computation = module.computation_mut(id);
    for group in &plan.groups {
        remove_group(computation, group)?;
    }
    Ok(())
}

/// Returns the fusion kind by the kernel's contents: a contraction with epilogue, reductions, or only elements.
pub(super) fn kind_of(kernel: &Computation) -> FusionKind {
    let has = |wanted: fn(&Op) -> bool| kernel.iter().any(|(_, i)| wanted(i.op()));
    if has(|op| matches!(op, Op::Dot(_) | Op::Convolution(_))) {
        FusionKind::Output
    } else if has(|op| matches!(op, Op::Reduce(_))) {
        FusionKind::Input
    } else {
        FusionKind::Loop
    }
}

/// Returns the kernel's computation and its operands; `members` are in order.
fn kernel(computation: &Computation, group: &FusionGroup, members: &[InstrId]) -> (Computation, Vec<InstrId>) {
    let mut kernel = Computation::new("fused_computation");
    let mut new: HashMap<InstrId, InstrId> = HashMap::new();
    let mut operands = Vec::new();
    for &member in members {
        for &operand in computation[member].operands() {
            if group.members.contains_key(&operand) || new.contains_key(&operand) {
                continue;
            }
            let parameter = Parameter { number: operands.len() };
            let instruction = Instruction::new(parameter.into(), computation[operand].shape().clone(), [])
                .with_name(format!("param_{}", operands.len()));
            new.insert(operand, kernel.add(instruction));
            operands.push(operand);
        }
    }
    for &member in members {
        let mapped = computation[member].operands().iter().map(|o| new[o]).collect();
        new.insert(member, kernel.add(clone_with_operands(&computation[member], mapped)));
    }
    kernel.set_root(new[&group.root]);
    (kernel, operands)
}

/// Returns the alias of an in-place update with its operand's buffer.
fn in_place(root: &Instruction, operands: &[InstrId]) -> Vec<OutputOperandAlias> {
    match root.op() {
        Op::DynamicUpdateSlice(_) => operands
            .iter()
            .position(|&o| o == root.operand(0))
            .map(|operand| OutputOperandAlias { output: Vec::new(), operand, path: Vec::new() })
            .into_iter()
            .collect(),
        _ => Vec::new(),
    }
}

/// Returns a name from up to three significant operations, the root last: `multiply_add_reduce_fusion`.
fn name(computation: &Computation, group: &FusionGroup, members: &[InstrId]) -> String {
    let telling = |id: &InstrId| {
        let op = computation[*id].op();
        !matches!(op, Op::Constant(_) | Op::Broadcast(_) | Op::Reshape(_)) || *id == group.root
    };
    let mut names: Vec<&str> = Vec::new();
    for id in members.iter().rev().filter(|id| telling(id)) {
        let opcode = computation[*id].opcode().name();
        if !names.contains(&opcode) {
            names.push(opcode);
        }
    }
    names.truncate(3);
    names.reverse();
    format!("{}_fusion", names.join("_").replace('-', "_"))
}

/// Removes a root that a fusion replaced, and instructions that only it used. The fusion still uses the combiners.
fn remove_group(computation: &mut Computation, group: &FusionGroup) -> Result<()> {
    let mut stack = vec![group.root];
    while let Some(id) = stack.pop() {
        let Some(instruction) = computation.get(id) else { continue };
        let is_reduction = matches!(instruction.op(), Op::Reduce(_)) && group.members.contains_key(&id);
        let is_fused = (id == group.root || is_reduction) && instruction.users().is_empty();
        if is_fused || graph::is_removable(computation, id) {
            stack.extend(computation[id].operands().to_vec());
            computation.remove(id)?;
        }
    }
    Ok(())
}
