//! Checks that each start has exactly one done, of the matching kind.

use super::Report;
use crate::ops::{Channel, Op, Transfer};
use crate::{Computation, InstrId, Opcode};

pub(super) fn check(report: &mut Report<'_>) {
    let module = report.module;
    for (_, computation) in module.iter() {
        for (id, instruction) in computation.iter() {
            let opcode = instruction.opcode();
            if !opcode.done_opcodes().is_empty() {
                check_start(report, computation, id);
            }
            if !opcode.start_opcodes().is_empty() {
                check_done(report, computation, id);
            }
        }
    }
}

fn check_start(report: &mut Report<'_>, computation: &Computation, id: InstrId) {
    let instruction = &computation[id];
    let by = instruction.opcode().done_opcodes();
    let fits = match *instruction.users() {
        [user] => {
            let user = &computation[user];
            by.contains(&user.opcode()) && user.operands().iter().filter(|&&o| o == id).count() == 1
        }
        _ => false,
    };
    if !fits || computation.root_if_set() == Some(id) {
        let rule = format!("{} must be used once, by {}", instruction.opcode(), names(by));
        report.instruction(computation, id, rule);
    }
}

fn check_done(report: &mut Report<'_>, computation: &Computation, id: InstrId) {
    let instruction = &computation[id];
    let Some(&operand) = instruction.operands().first() else { return };
    let of = instruction.opcode().start_opcodes();
    if !of.contains(&computation[operand].opcode()) {
        let rule = format!("{} must wait for {}", instruction.opcode(), names(of));
        report.instruction(computation, id, rule);
        return;
    }
    let (Some(start), Some(done)) = (channel(computation[operand].op()), channel(instruction.op())) else { return };
    if start.id != done.id || start.is_host_transfer != done.is_host_transfer {
        let say = |c: &Channel| {
            let id = c.id.map_or_else(|| "no channel_id".to_string(), |id| format!("channel_id {id}"));
            format!("{id} and is_host_transfer {}", c.is_host_transfer)
        };
        let name = computation[operand].name();
        report.instruction(computation, id, format!("has {}, but %{name} has {}", say(done), say(start)));
    }
}

fn channel(op: &Op) -> Option<&Channel> {
    match op {
        Op::Transfer(
            Transfer::Send(channel)
            | Transfer::SendDone(channel)
            | Transfer::Recv(channel)
            | Transfer::RecvDone(channel),
        ) => Some(channel),
        _ => None,
    }
}

fn names(opcodes: &[Opcode]) -> String {
    opcodes.iter().map(|o| o.name()).collect::<Vec<_>>().join(" or ")
}
