//! Evaluation plan of a computation: the order of its steps, and the last use of each value.

use std::collections::HashSet;

use crate::effects::reaches_effect;
use crate::entity::SecondaryMap;
use crate::ops::Op;
use crate::ops::dynamic::sizes::is_dynamic;
use crate::{Computation, InstrId, Module};

/// A computation made ready to run; steps are in sequence order and number the values.
pub(super) struct Plan {
    pub steps: Vec<Step>,
    /// The step that computes the result.
    pub root: Option<usize>,
}

/// One instruction.
pub(super) struct Step {
    pub instruction: InstrId,
    /// The steps that compute the operands, and how each value is read.
    pub operands: Vec<(usize, Access)>,
    /// Whether anybody reads the result.
    pub is_used: bool,
    /// Whether an operand or the result may have other sizes than its shape says.
    pub is_dynamic: bool,
}

/// Access of a step to an operand.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Access {
    /// For the last time: the value is moved out.
    Take,
    /// Others read later (what a get-tuple-element reads, too).
    Share,
    /// By a get-tuple-element: others read later, but never this element, which is moved out of the tuple.
    TakeElement,
}

/// Reads of a value after a point of the sequence.
#[derive(Clone, Default)]
enum Later {
    #[default]
    Nothing,
    /// Only these elements, by get-tuple-element.
    Elements(HashSet<usize>),
    Everything,
}

impl Plan {
    /// A plan without what neither the result nor an effect needs.
    pub(super) fn new(module: &Module, computation: &Computation) -> Plan {
        let mut later = SecondaryMap::<InstrId, Later>::default();
        if let Some(root) = computation.root_if_set() {
            later[root] = Later::Everything;
        }
        let mut kept = Vec::new();
        for id in computation.sequence().into_iter().rev() {
            let instruction = &computation[id];
            let is_used = !matches!(later[id], Later::Nothing);
            if !is_used && !reaches_effect(module, instruction) {
                continue;
            }
            // Backwards among the operands too: of a repeated operand, the last occurrence is the last use.
            let operands = instruction.operands().iter().rev();
            let mut accesses: Vec<Access> =
                operands.map(|&operand| later[operand].read_before_by(instruction.op())).collect();
            accesses.reverse();
            kept.push((id, is_used, accesses));
        }
        kept.reverse();
        let mut position = SecondaryMap::<InstrId, usize>::new(usize::MAX);
        kept.iter().enumerate().for_each(|(i, &(id, ..))| position[id] = i);
        let step = |(id, is_used, accesses): (InstrId, bool, Vec<Access>)| {
            let operands = computation[id].operands();
            let mut shapes = operands.iter().chain([&id]).map(|&o| computation[o].shape());
            Step {
                instruction: id,
                operands: operands.iter().map(|&operand| position[operand]).zip(accesses).collect(),
                is_used,
                is_dynamic: shapes.any(is_dynamic),
            }
        };
        let steps: Vec<Step> = kept.into_iter().map(step).collect();
        let root = computation.root_if_set().map(|root| position[root]).filter(|&root| root < steps.len());
        Plan { steps, root }
    }
}

impl Later {
    /// Access of `op` to the value, given the later reads; and notes that `op` reads it.
    fn read_before_by(&mut self, op: &Op) -> Access {
        let Op::GetTupleElement(get) = op else {
            let access = if matches!(self, Later::Nothing) { Access::Take } else { Access::Share };
            *self = Later::Everything;
            return access;
        };
        match self {
            Later::Nothing => {
                *self = Later::Elements(HashSet::from([get.index]));
                Access::Take
            }
            Later::Elements(indices) => match indices.insert(get.index) {
                true => Access::TakeElement,
                false => Access::Share,
            },
            Later::Everything => Access::Share,
        }
    }
}
