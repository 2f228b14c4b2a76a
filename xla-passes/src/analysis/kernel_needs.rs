//! Needs of kernels: code, and values that they keep at a time, in registers of 32 bits.

use xla_hlo::entity::SecondaryMap;
use xla_hlo::{Computation, InstrId, Instruction, Module, Op, Shape};

use super::op_cost::element_cost;

/// Needs of a kernel.
pub struct Needs {
    /// Machine instructions, about.
    pub code: f64,
    /// Most registers of values at a time.
    pub registers: usize,
}

impl Needs {
    /// Of an operation or a fusion.
    pub fn of(module: &Module, graph: &Computation, id: InstrId) -> Needs {
        match graph[id].op() {
            Op::Fusion(fusion) => {
                let body = &module[fusion.computation];
                Needs {
                    code: body.iter().map(|(_, i)| code(i)).sum(),
                    registers: peak_registers(body, &body.post_order()),
                }
            }
            _ => Needs { code: code(&graph[id]), registers: registers(graph[id].shape()) },
        }
    }
}

/// Machine instructions for an element of an operation, about; a reduction is a loop over few of them.
pub fn code(instruction: &Instruction) -> f64 {
    match instruction.op() {
        Op::Reduce(_) | Op::Dot(_) | Op::Convolution(_) => 1.0,
        op => instruction.shape().element_type().map_or(1.0, |ty| element_cost(op, ty)),
    }
}

/// Registers that an element of a value takes; narrow ones take a whole register, as machines compute with those.
pub fn registers(shape: &Shape) -> usize {
    let of = |(_, leaf): (_, &Shape)| leaf.element_type().map_or(0, |ty| ty.bit_width().div_ceil(32));
    shape.leaves().into_iter().map(of).sum()
}

/// Most registers of values that a kernel keeps at a time, evaluated in that order, operands first. Those that are not
/// evaluated are read when they are needed.
pub fn peak_registers(body: &Computation, order: &[InstrId]) -> usize {
    // Results are stored one by one as they are computed; constants are part of instructions.
    let taken = |id: InstrId| match body[id].op() {
        Op::Tuple(_) | Op::Constant(_) => 0,
        _ => registers(body[id].shape()),
    };
    let mut last = SecondaryMap::new(0);
    for (place, &id) in order.iter().enumerate() {
        last[id] = place;
        if !matches!(body[id].op(), Op::Tuple(_)) {
            body[id].operands().iter().for_each(|&operand| last[operand] = place);
        }
    }
    let mut ending = vec![0; order.len()];
    order.iter().for_each(|&id| ending[last[id]] += taken(id));
    let (mut live, mut peak) = (0, 0);
    for (&id, ended) in order.iter().zip(ending) {
        live += taken(id);
        peak = peak.max(live);
        live -= ended;
    }
    peak
}
