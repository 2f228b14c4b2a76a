//! The call graph: callees exist, nobody calls itself, a fusion's computation has one caller.

use std::collections::HashMap;

use super::Report;
use crate::CompId;
use crate::ops::Op;

pub(super) fn check(report: &mut Report<'_>) {
    let module = report.module;
    let mut fusion_callers: HashMap<CompId, usize> = HashMap::new();
    let mut callers: HashMap<CompId, usize> = HashMap::new();
    for (_, computation) in module.iter() {
        for (id, instruction) in computation.iter() {
            for callee in instruction.op().called_computations() {
                if module.get(callee).is_none() {
                    report.instruction(computation, id, "calls a computation that was removed");
                    return;
                }
                *callers.entry(callee).or_default() += 1;
                if matches!(instruction.op(), Op::Fusion(_)) {
                    *fusion_callers.entry(callee).or_default() += 1;
                }
            }
        }
    }
    for callee in fusion_callers.into_keys() {
        if callers[&callee] > 1 {
            report.computation(callee, "a fusion's computation must have one caller");
        }
    }
    check_acyclic(report);
}

/// In a post-order of the call graph every callee comes first, unless there is a circle.
fn check_acyclic(report: &mut Report<'_>) {
    let module = report.module;
    let order = module.post_order();
    let position: HashMap<CompId, usize> = order.iter().enumerate().map(|(i, c)| (*c, i)).collect();
    for (i, &caller) in order.iter().enumerate() {
        if let Some(callee) = module.callees(caller).into_iter().find(|c| position[c] >= i) {
            let name = module[callee].name().to_string();
            report.computation(caller, format!("calls {name} in a circle; HLO has no recursion"));
            return;
        }
    }
}
