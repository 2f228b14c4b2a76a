//! Side effects of instructions, and the liveness that follows from them.

use crate::entity::SecondaryMap;
use crate::ops::Op;
use crate::{CompId, Computation, InstrId, Instruction, Module};

/// Whether `op` starts an asynchronous operation. A start has exactly one done, so it is not merged with another start,
/// and its done is live as long as it is.
pub fn is_async_start(op: &Op) -> bool {
    !op.opcode().done_opcodes().is_empty()
}

/// Side effects of computations, including their callees.
pub struct Effects {
    computations: SecondaryMap<CompId, bool>,
}

impl Effects {
    /// Analyzes every computation of a module in linear time.
    pub fn of(module: &Module) -> Effects {
        let mut effects = Effects { computations: SecondaryMap::new(false) };
        for id in module.post_order() {
            let any = module[id].iter().any(|(_, instruction)| effects.has_effect(instruction));
            effects.computations[id] = any;
        }
        effects
    }

    /// Whether an instruction has an effect other than its result.
    pub fn has_effect(&self, instruction: &Instruction) -> bool {
        let op = instruction.op();
        op.has_side_effect() || op.called_computations().iter().any(|&c| self.computations[c])
    }

    /// Returns the live instructions of a computation: those that its root, its parameters or a side effect needs. All
    /// others are dead.
    pub fn live(&self, computation: &Computation) -> SecondaryMap<InstrId, bool> {
        let mut live = SecondaryMap::<InstrId, bool>::new(false);
        let mut stack: Vec<InstrId> = computation.root_if_set().into_iter().collect();
        let kept = |i: InstrId| matches!(computation[i].op(), Op::Parameter(_)) || self.has_effect(&computation[i]);
        stack.extend(computation.ids().filter(|&i| kept(i)));
        while let Some(i) = stack.pop() {
            if std::mem::replace(&mut live[i], true) {
                continue;
            }
            stack.extend_from_slice(computation[i].operands());
            stack.extend_from_slice(computation[i].control_predecessors());
            if is_async_start(computation[i].op()) {
                stack.extend_from_slice(computation[i].users());
            }
        }
        live
    }

    /// Returns the live instructions of all computations that are reachable from the entry through live instructions.
    pub fn live_instructions(&self, module: &Module) -> Vec<(CompId, InstrId)> {
        let mut reached = SecondaryMap::<CompId, bool>::new(false);
        let mut stack: Vec<CompId> = module.entry_if_set().into_iter().collect();
        let mut found = Vec::new();
        while let Some(id) = stack.pop() {
            if std::mem::replace(&mut reached[id], true) {
                continue;
            }
            let live = self.live(&module[id]);
            for instruction in module[id].ids().filter(|&i| live[i]) {
                stack.extend(module[id][instruction].op().called_computations());
                found.push((id, instruction));
            }
        }
        found
    }
}

/// Whether an instruction, or an instruction that it reaches through calls, has a side effect. Examines a single
/// instruction, whereas [`Effects`] analyzes the whole module.
pub(crate) fn reaches_effect(module: &Module, instruction: &Instruction) -> bool {
    if instruction.op().has_side_effect() {
        return true;
    }
    let mut reached = SecondaryMap::<CompId, bool>::new(false);
    let mut stack = instruction.op().called_computations();
    while let Some(callee) = stack.pop() {
        let Some(computation) = module.get(callee) else { continue };
        if std::mem::replace(&mut reached[callee], true) {
            continue;
        }
        for (_, instruction) in computation.iter() {
            if instruction.op().has_side_effect() {
                return true;
            }
            stack.extend(instruction.op().called_computations());
        }
    }
    false
}
