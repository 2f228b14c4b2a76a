//! Call graph checks: callees exist, no recursion, a fused or asynchronous computation has one caller.

use std::collections::HashMap;

use super::Report;
use crate::CompId;
use crate::ops::{Async, Op};

pub(super) fn check(report: &mut Report<'_>) {
    let module = report.module;
    let mut owned: HashMap<CompId, &str> = HashMap::new();
    let mut callers: HashMap<CompId, usize> = HashMap::new();
    for (_, computation) in module.iter() {
        for (id, instruction) in computation.iter() {
            for callee in instruction.op().called_computations() {
                if module.get(callee).is_none() {
                    report.instruction(computation, id, "calls a computation that was removed");
                    return;
                }
                *callers.entry(callee).or_default() += 1;
                match instruction.op() {
                    Op::Fusion(_) => drop(owned.insert(callee, "a fusion's")),
                    Op::Async(Async::Start(_)) => drop(owned.insert(callee, "an asynchronous")),
                    _ => {}
                }
            }
        }
    }
    for (callee, whose) in owned {
        if callers[&callee] > 1 {
            report.computation(callee, format!("{whose} computation must have one caller"));
        }
    }
    check_acyclic(report);
}

/// Checks that the call graph is acyclic: in a post-order, every callee precedes its callers unless there is a cycle.
fn check_acyclic(report: &mut Report<'_>) {
    let module = report.module;
    let order = module.post_order();
    let position: HashMap<CompId, usize> = order.iter().enumerate().map(|(i, c)| (*c, i)).collect();
    for (i, &caller) in order.iter().enumerate() {
        if let Some(callee) = module.callees(caller).into_iter().find(|c| position[c] >= i) {
            let name = module[callee].name().to_string();
            report.computation(caller, format!("calls {name} recursively; HLO has no recursion"));
            return;
        }
    }
}
