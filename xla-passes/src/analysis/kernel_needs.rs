//! Resource needs of kernels: code size, and register pressure in registers of 32 bits.

use xla_hlo::entity::SecondaryMap;
use xla_hlo::{Computation, InstrId, Instruction, Module, Op, Shape};

use super::op_cost::element_cost;

/// Resource needs of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Estimated number of machine instructions.
    pub code: f64,
    /// Maximum number of 32-bit registers that are live at a time.
    pub registers: usize,
}

impl Needs {
    /// Estimates the needs of an operation or a fusion.
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

/// Estimates the machine instructions per element of an operation. A reduction is a loop over few of them.
pub fn code(instruction: &Instruction) -> f64 {
    match instruction.op() {
        Op::Reduce(_) | Op::Dot(_) | Op::Convolution(_) => 1.0,
        op => instruction.shape().element_type().map_or(1.0, |ty| element_cost(op, ty)),
    }
}

/// Returns the number of 32-bit registers that an element of a value takes. Narrower types take a whole register, since
/// machines compute with whole registers.
pub fn registers(shape: &Shape) -> usize {
    let of = |(_, leaf): (_, &Shape)| leaf.element_type().map_or(0, |ty| ty.bit_width().div_ceil(32));
    shape.leaves().into_iter().map(of).sum()
}

/// Returns the peak register pressure of a kernel that evaluates instructions in the given order, operands first.
/// Values that are not in `order` are read when they are needed.
pub fn peak_registers(body: &Computation, order: &[InstrId]) -> usize {
    // Results are stored one at a time as they are computed; constants are immediate operands.
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
