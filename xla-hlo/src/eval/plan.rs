//! The order in which a computation is evaluated, and where each value is read for the last time.

use std::collections::HashSet;

use crate::entity::SecondaryMap;
use crate::ops::Op;
use crate::ops::dynamic::sizes::is_dynamic;
use crate::{Computation, InstrId};

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

/// How a step reads an operand.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Access {
    /// For the last time: the value is moved out.
    Take,
    /// Others read later (what a get-tuple-element reads, too).
    Share,
    /// By a get-tuple-element: others read later, but never this element, which is moved out of the tuple.
    TakeElement,
}

/// What is read of a value after a point of the sequence.
#[derive(Clone, Default)]
enum Later {
    #[default]
    Nothing,
    /// Only these elements, by get-tuple-element.
    Elements(HashSet<usize>),
    Everything,
}

impl Plan {
    pub(super) fn new(computation: &Computation) -> Plan {
        let sequence = computation.sequence();
        let mut position = SecondaryMap::<InstrId, usize>::new(usize::MAX);
        for (i, &id) in sequence.iter().enumerate() {
            position[id] = i;
        }
        let mut later = SecondaryMap::<InstrId, Later>::default();
        if let Some(root) = computation.root_if_set() {
            later[root] = Later::Everything;
        }
        let mut steps: Vec<Step> = Vec::with_capacity(sequence.len());
        for &id in sequence.iter().rev() {
            let instruction = &computation[id];
            let is_used = !matches!(later[id], Later::Nothing);
            // Backwards among the operands too: of a repeated operand, the last occurrence is the last use.
            let mut operands: Vec<(usize, Access)> = instruction
                .operands()
                .iter()
                .rev()
                .map(|&operand| (position[operand], later[operand].read_before_by(instruction.op())))
                .collect();
            operands.reverse();
            let mut shapes = instruction.operands().iter().map(|&o| computation[o].shape());
            let is_dynamic = is_dynamic(instruction.shape()) || shapes.any(is_dynamic);
            steps.push(Step { instruction: id, operands, is_used, is_dynamic });
        }
        steps.reverse();
        let root = computation.root_if_set().map(|root| position[root]).filter(|&root| root < steps.len());
        Plan { steps, root }
    }
}

impl Later {
    /// How `op` reads the value, given what is read after it; and notes that `op` reads it.
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
