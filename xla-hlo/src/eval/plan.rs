//! Evaluation plan of a computation: the order of its steps and the last use of each value.

use std::collections::HashSet;

use crate::effects::reaches_effect;
use crate::entity::SecondaryMap;
use crate::ops::Op;
use crate::ops::dynamic::sizes::is_dynamic;
use crate::{Computation, InstrId, Module};

/// Computation prepared for evaluation. Steps are in sequence order; a value has the number of its step.
pub(super) struct Plan {
    pub steps: Vec<Step>,
    /// Step that computes the result.
    pub root: Option<usize>,
}

/// Evaluation of one instruction.
pub(super) struct Step {
    pub instruction: InstrId,
    /// Steps that compute the operands, and the access to each value.
    pub operands: Vec<(usize, Access)>,
    /// Whether the result has a reader.
    pub is_used: bool,
    /// Whether the sizes of an operand or of the result may differ from those of its shape.
    pub is_dynamic: bool,
}

/// Access of a step to an operand.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Access {
    /// Last use: the value is moved out.
    Take,
    /// Shared use: the value (for a get-tuple-element, the element that it reads) has later readers.
    Share,
    /// Last read of an element, by a get-tuple-element: the element is moved out of the tuple, whose other elements
    /// have later readers.
    TakeElement,
}

/// Later reads of a value, seen from a point of the sequence.
#[derive(Clone, Default)]
enum Later {
    #[default]
    Nothing,
    /// Only these elements are read, by get-tuple-element.
    Elements(HashSet<usize>),
    Everything,
}

impl Plan {
    /// Creates a plan of the instructions that the result or a side effect needs.
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
            // Visit the operands backwards too: the last use of a repeated operand is its last occurrence.
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
    /// Returns the access of `op` to the value, given the later reads, and records the read by `op`.
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
