//! Operations that fused emission supports, and their costs, known before anything is emitted.

use xla_hlo::ops::{Family, Op, SparsityConfig};
use xla_hlo::{CompId, Computation, InstrId, Instruction, Module};

/// Elementary operations per step of a scan.
const SCAN_STEP: f64 = 4.0;
/// Elementary operations per element in each pass of a sort, which has `log2(row length)` passes.
const SORT_STEP: f64 = 20.0;
/// Elementary operations per element that may be one of the largest.
const TOP_K_STEP: f64 = 4.0;
/// Elementary operations per element and doubling of the length of a Fourier transform.
const FFT_STEP: f64 = 5.0;

/// Whether an instruction's elements can be emitted individually, so that it can be part of a fusion.
///
/// Shapes must be static arrays (or tuples of them, for reductions of several arrays).
pub fn is_fusible(module: &Module, graph: &Computation, id: InstrId) -> bool {
    let instruction = &graph[id];
    let arrays = instruction.shape().leaves().iter().all(|(_, s)| s.as_array().is_some_and(|a| a.is_static()));
    arrays
        && match instruction.op() {
            Op::Constant(_) | Op::Dot(_) | Op::Gather(_) => instruction.shape().as_array().is_some(),
            Op::Convolution(op) => op.sparsity == SparsityConfig::default(),
            Op::BitcastConvert(_) => same_width(graph, instruction),
            // Layouts are normalised at this point, so a bitcast is a reshape.
            Op::Bitcast(_) => same_width(graph, instruction),
            Op::Reduce(reduce) => is_scalar_computation(module, reduce.computation),
            Op::ReduceWindow(reduce) => is_scalar_computation(module, reduce.computation),
            Op::Map(map) => is_scalar_computation(module, map.computation),
            op => {
                matches!(op.opcode().family(), Family::Elementwise | Family::Movement)
                    && instruction.shape().as_array().is_some()
            }
        }
}

/// Whether an instruction can be a kernel's root: it is fusible, or has a kernel of its own.
pub fn is_kernel_root(module: &Module, graph: &Computation, id: InstrId) -> bool {
    let is_static = |id: InstrId| graph[id].shape().as_array().is_some_and(|a| a.is_static());
    match graph[id].op() {
        Op::SelectAndScatter(op) => {
            is_static(id)
                && is_static(graph[id].operand(1))
                && is_scalar_computation(module, op.select)
                && is_scalar_computation(module, op.scatter)
        }
        _ => is_fusible(module, graph, id),
    }
}

/// Whether a kernel can inline the computation: scalars (and tuples of them) in and out, elementwise inside.
pub fn is_scalar_computation(module: &Module, computation: CompId) -> bool {
    let graph = &module[computation];
    graph.iter().all(|(_, instruction)| {
        let scalars = instruction.shape().leaves().iter().all(|(_, s)| s.as_array().is_some_and(|a| a.is_scalar()));
        let known = match instruction.op() {
            Op::Parameter(_)
            | Op::Constant(_)
            | Op::Tuple(_)
            | Op::GetTupleElement(_)
            | Op::Copy(_)
            | Op::Reshape(_)
            | Op::Bitcast(_)
            | Op::Broadcast(_)
            | Op::OptBarrier(_)
            | Op::Transpose(_) => true,
            Op::BitcastConvert(_) => same_width(graph, instruction),
            Op::Call(c) => is_scalar_computation(module, c.computation),
            Op::Map(m) => is_scalar_computation(module, m.computation),
            Op::Fusion(f) => is_scalar_computation(module, f.computation),
            op => op.opcode().family() == Family::Elementwise,
        };
        scalars && known
    })
}

/// Whether operand and result have element types of the same width.
pub(crate) fn same_width(graph: &Computation, instruction: &Instruction) -> bool {
    let operand = instruction.operands().first().and_then(|&o| graph[o].shape().element_type());
    operand.zip(instruction.shape().element_type()).is_some_and(|(a, b)| a.bit_width() == b.bit_width())
}

/// Returns a rough count of the elementary operations for all elements of an instruction; a transcendental function
/// counts as several.
pub(crate) fn work(module: &Module, graph: &Computation, id: InstrId) -> f64 {
    use xla_hlo::ops::{BinaryOp, UnaryOp};
    let instruction = &graph[id];
    let elements = |shape: &xla_hlo::Shape| {
        shape.leaves().iter().filter_map(|(_, s)| s.as_array()).map(|a| a.element_count() as f64).sum::<f64>()
    };
    let own = elements(instruction.shape());
    let operand = || instruction.operands().first().map_or(0.0, |&o| elements(graph[o].shape()));
    match instruction.op() {
        Op::Unary(unary) => match unary.op {
            UnaryOp::Abs | UnaryOp::Negate | UnaryOp::Not | UnaryOp::Real | UnaryOp::Imag => own,
            UnaryOp::Sqrt | UnaryOp::Rsqrt => 4.0 * own,
            _ => 10.0 * own,
        },
        Op::Binary(binary) => match binary.op {
            BinaryOp::Divide | BinaryOp::Remainder => 4.0 * own,
            BinaryOp::Power | BinaryOp::Atan2 => 20.0 * own,
            _ => own,
        },
        Op::Reduce(reduce) => operand() * module[reduce.computation].len() as f64 / 3.0,
        Op::ReduceWindow(reduce) => {
            let base = instruction.operands().first().and_then(|&o| graph[o].shape().as_array());
            match base.and_then(|base| reduce.window.cumulative(base.dims())) {
                Some(_) => SCAN_STEP * own,
                None => own * reduce.window.dims.iter().map(|d| d.size as f64).product::<f64>(),
            }
        }
        Op::SelectAndScatter(op) => {
            let windows = instruction.operands().get(1).map_or(0.0, |&o| elements(graph[o].shape()));
            own + 3.0 * windows * op.window.dims.iter().map(|d| d.size as f64).product::<f64>()
        }
        Op::Sort(sort) => {
            let dims = instruction.operands().first().and_then(|&o| graph[o].shape().as_array());
            let length = dims.map_or(1, |array| array.dims()[sort.dimension]).max(2);
            SORT_STEP * own * (length as f64).log2()
        }
        Op::TopK(_) => TOP_K_STEP * operand(),
        Op::Fft(op) => FFT_STEP * own * op.fft_length.iter().map(|&n| (n.max(1) as f64).log2()).sum::<f64>(),
        Op::Scatter(_) => instruction.operands().last().map_or(0.0, |&updates| elements(graph[updates].shape())),
        Op::Dot(dot) => {
            let dims = instruction.operands().first().and_then(|&o| graph[o].shape().as_array());
            own * dims.map_or(1.0, |lhs| dot.dims.contracted_elements(lhs) as f64)
        }
        Op::Convolution(op) => {
            let kernel = instruction.operands().get(1).and_then(|&o| graph[o].shape().as_array());
            let channels = kernel.map_or(1, |kernel| kernel.dims()[op.dims.kernel_input_feature]);
            own * channels as f64 * op.window.dims.iter().map(|d| d.size as f64).product::<f64>()
        }
        _ => own,
    }
}
