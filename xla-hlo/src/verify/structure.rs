//! Graph checks: live operands, arity, no cycles, complete parameters, a live root.

use super::Report;
use crate::ops::{Arity, Op};
use crate::{CompId, Computation, InstrId};

pub(super) fn check(report: &mut Report<'_>) {
    let module = report.module;
    if module.is_empty() {
        report.module("the module has no computation");
        return;
    }
    for (id, computation) in module.iter() {
        check_computation(report, id, computation);
    }
}

fn check_computation(report: &mut Report<'_>, id: CompId, computation: &Computation) {
    match computation.root_if_set() {
        Some(root) if computation.get(root).is_some() => {}
        Some(_) => report.computation(id, "the root was removed"),
        None => report.computation(id, "there is no root"),
    }
    let mut sound = true;
    for (instr, _) in computation.iter() {
        sound &= check_instruction(report, computation, instr);
    }
    check_parameters(report, id, computation);
    if sound {
        check_acyclic(report, id, computation);
    }
}

fn check_instruction(report: &mut Report<'_>, computation: &Computation, id: InstrId) -> bool {
    let instruction = &computation[id];
    let mut before = instruction.operands().iter().chain(instruction.control_predecessors());
    if before.any(|&o| computation.get(o).is_none()) {
        report.instruction(computation, id, "an operand or control predecessor was removed");
        return false;
    }
    let count = instruction.operands().len();
    let complaint = match instruction.opcode().arity() {
        Arity::Exactly(n) if count != n => Some(format!("takes {}, has {count}", operands(n))),
        Arity::AtLeast(n) if count < n => Some(format!("takes at least {}, has {count}", operands(n))),
        Arity::Exactly(_) | Arity::AtLeast(_) => None,
    };
    if let Some(complaint) = complaint {
        report.instruction(computation, id, format!("{} {complaint}", instruction.opcode()));
    }
    for &operand in instruction.operands() {
        if !computation[operand].is_used_by(id) {
            report.instruction(computation, operand, format!("does not list its user %{}", instruction.name()));
        }
    }
    true
}

fn operands(n: usize) -> String {
    if n == 1 { "1 operand".to_string() } else { format!("{n} operands") }
}

fn check_parameters(report: &mut Report<'_>, id: CompId, computation: &Computation) {
    for (expected, &parameter) in computation.parameters().iter().enumerate() {
        let Op::Parameter(p) = computation[parameter].op() else {
            report.instruction(computation, parameter, "is listed as a parameter, but is not one");
            continue;
        };
        if p.number != expected {
            report.computation(
                id,
                format!(
                    "parameters must be numbered 0, 1, ... once each; parameter({expected}) is missing or repeated"
                ),
            );
            return;
        }
    }
}

/// Checks that the graph is acyclic: a post-order has every operand before its users exactly if there is no cycle.
fn check_acyclic(report: &mut Report<'_>, id: CompId, computation: &Computation) {
    let order = computation.post_order();
    let mut position = std::collections::HashMap::with_capacity(order.len());
    for (i, instr) in order.iter().enumerate() {
        position.insert(*instr, i);
    }
    for (i, instr) in order.iter().enumerate() {
        let instruction = &computation[*instr];
        let mut before = instruction.operands().iter().chain(instruction.control_predecessors());
        if let Some(&late) = before.find(|o| position[o] >= i) {
            report.computation(
                id,
                format!("the graph has a cycle through %{} and %{}", instruction.name(), computation[late].name()),
            );
            return;
        }
    }
}
