//! Costs of single operations: a table of elementary functions, and arithmetic derived from shapes and attributes.

use xla_hlo::ops::{BinaryOp, Convolution, DotDims, Fft, FftType, UnaryOp, Window, WindowDim};
use xla_hlo::{ArrayShape, Computation, ElementType, InstrId, Instruction, Op, Shape};

/// Arithmetic of an operation, counted in operations on single elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arithmetic {
    /// Additions, multiplications, comparisons and operations of similar latency; a multiply-add counts as 2.
    pub flops: u64,
    /// Exponentials, roots, trigonometric functions and powers.
    pub transcendentals: u64,
}

/// Number of flops that one transcendental function counts as.
const TRANSCENDENTAL_FLOPS: u64 = 8;

impl Arithmetic {
    /// Returns the total in flops; a transcendental function counts as 8.
    pub fn operations(self) -> u64 {
        self.flops.saturating_add(self.transcendentals.saturating_mul(TRANSCENDENTAL_FLOPS))
    }

    /// Returns the cost of one simple operation on each of `n` elements.
    pub fn simple(n: u64) -> Arithmetic {
        Arithmetic { flops: n, transcendentals: 0 }
    }

    /// Returns the cost of one transcendental function on each of `n` elements.
    pub fn transcendental(n: u64) -> Arithmetic {
        Arithmetic { flops: 0, transcendentals: n }
    }

    /// Returns the cost multiplied by `n`.
    pub fn times(self, n: u64) -> Arithmetic {
        Arithmetic { flops: self.flops.saturating_mul(n), transcendentals: self.transcendentals.saturating_mul(n) }
    }

    /// Returns the sum of two costs.
    pub fn plus(self, other: Arithmetic) -> Arithmetic {
        Arithmetic {
            flops: self.flops.saturating_add(other.flops),
            transcendentals: self.transcendentals.saturating_add(other.transcendentals),
        }
    }
}

/// Returns the number of elements of a value; for a tuple, the sum over all arrays.
pub fn elements(shape: &Shape) -> u64 {
    let of = |(_, leaf): (_, &Shape)| leaf.as_array().map_or(0, |a| a.element_count() as u64);
    shape.leaves().into_iter().map(of).fold(0, u64::saturating_add)
}

/// Returns the arithmetic of an operation without called computations. `embedded` is the cost of one call of the
/// function that the operation applies to elements (a combiner or a comparator).
pub fn arithmetic(computation: &Computation, id: InstrId, embedded: Arithmetic) -> Arithmetic {
    let instruction = &computation[id];
    let result = elements(instruction.shape());
    let operand = |i: usize| computation[instruction.operand(i)].shape();
    let reductions = |n: u64| embedded.times(n);
    match instruction.op() {
        Op::Unary(un) => of_each(unary(un.op).is_transcendental, result),
        Op::Binary(bin) => of_each(binary(bin.op, true).is_transcendental, result),
        Op::Compare(_) | Op::Select(_) | Op::Convert(_) | Op::ReducePrecision(_) | Op::StochasticConvert(_) => {
            Arithmetic::simple(result)
        }
        Op::Clamp(_) => Arithmetic::simple(result.saturating_mul(2)),
        Op::Dot(dot) => contraction(&dot.dims, operand(0), result),
        Op::RaggedDot(dot) => contraction(&dot.dims, operand(0), result),
        Op::ScaledDot(dot) => contraction(&dot.dims, operand(0), result),
        Op::Convolution(op) => convolution(op, operand(0), operand(1), instruction),
        // A reduction of `n` elements to one applies the combiner `n - 1` times.
        Op::Reduce(_) => {
            let (before, after) = (elements(operand(0)), leaf_elements(instruction.shape()));
            reductions(before.saturating_sub(after))
        }
        Op::ReduceWindow(op) => {
            reductions(leaf_elements(instruction.shape()).saturating_mul(window_size(&op.window).saturating_sub(1)))
        }
        Op::SelectAndScatter(op) => {
            let updates = elements(operand(1));
            reductions(updates.saturating_mul(window_size(&op.window)))
        }
        // Operands are the arrays, the indices, and one update per array.
        Op::Scatter(_) => reductions(elements(operand(instruction.operands().len() / 2 + 1))),
        Op::Map(_) => reductions(result),
        Op::Scan(_) => reductions(leaf_elements(instruction.shape())),
        Op::Sort(sort) => {
            let along = operand(0).as_array().map_or(1, |a| a.dims().get(sort.dimension).copied().unwrap_or(1));
            reductions(elements(operand(0)).saturating_mul(log2(along)))
        }
        Op::TopK(top) => Arithmetic::simple(elements(operand(0)).saturating_mul(log2(top.k).max(1))),
        Op::Fft(fft) => transform(fft, operand(0)),
        Op::Cholesky(_) => {
            let n = last_dim(instruction.shape());
            Arithmetic::simple(result.saturating_mul(n) / 3)
        }
        Op::TriangularSolve(_) => Arithmetic::simple(result.saturating_mul(last_dim(operand(0)))),
        // Computes statistics, then applies a scale and an offset.
        Op::BatchNorm(_) => Arithmetic::simple(elements(operand(0)).saturating_mul(8)),
        // Counted as one operation per element, whatever the expansion.
        Op::RngBitGenerator(_) | Op::Rng(_) | Op::RngGetAndUpdateState(_) => Arithmetic::simple(result),
        Op::Collective(_) => reductions(result),
        Op::Parameter(_)
        | Op::Constant(_)
        | Op::Tuple(_)
        | Op::GetTupleElement(_)
        | Op::OptBarrier(_)
        | Op::BitcastConvert(_)
        | Op::Broadcast(_)
        | Op::Reshape(_)
        | Op::Transpose(_)
        | Op::Slice(_)
        | Op::Pad(_)
        | Op::Concatenate(_)
        | Op::Reverse(_)
        | Op::Iota(_)
        | Op::DynamicSlice(_)
        | Op::DynamicUpdateSlice(_)
        | Op::Copy(_)
        | Op::Bitcast(_)
        | Op::Gather(_)
        | Op::While(_)
        | Op::Conditional(_)
        | Op::Call(_)
        | Op::Fusion(_)
        | Op::CustomCall(_)
        | Op::Domain(_)
        | Op::AfterAll(_)
        | Op::AddDependency(_)
        | Op::Dynamic(_)
        | Op::Transfer(_)
        | Op::Async(_) => Arithmetic::default(),
    }
}

fn of_each(transcendental: bool, n: u64) -> Arithmetic {
    if transcendental { Arithmetic::transcendental(n) } else { Arithmetic::simple(n) }
}

/// [`element_cost`] at and above which an operation is never duplicated.
pub const EXPENSIVE: f64 = 4.0;

/// Minimum number of contiguous elements that a gather must read to use vector loads.
const LONG_SLICE: usize = 8;

/// Returns the cost per element in vector instructions per vector of results; an addition costs 1.
///
/// The values are orders of magnitude, not measurements: only the distinction between free, cheap and expensive
/// matters.
pub fn element_cost(op: &Op, element_type: ElementType) -> f64 {
    let float = element_type.is_float() || element_type.is_complex();
    let complex = if element_type.is_complex() { 4.0 } else { 1.0 };
    let instructions = match op {
        Op::Parameter(_) | Op::Constant(_) | Op::Tuple(_) | Op::GetTupleElement(_) | Op::OptBarrier(_) => 0.0,
        Op::Broadcast(_) | Op::Reshape(_) | Op::Bitcast(_) | Op::BitcastConvert(_) => 0.0,
        Op::Slice(_) | Op::Transpose(_) | Op::Reverse(_) | Op::Iota(_) | Op::Copy(_) => 0.5,
        Op::Unary(un) => unary(un.op).instructions,
        Op::Binary(bin) => binary(bin.op, float).instructions,
        Op::Compare(_) | Op::Select(_) | Op::Convert(_) => 1.0,
        Op::Clamp(_) => 2.0,
        Op::ReducePrecision(_) => 5.0,
        Op::Pad(_) | Op::DynamicSlice(_) | Op::DynamicUpdateSlice(_) => 2.0,
        Op::Concatenate(_) => 2.0,
        // Reads contiguous parts of rows, or single elements from anywhere.
        Op::Gather(gather) if gather.slice_sizes.last().is_some_and(|&n| n >= LONG_SLICE) => 2.0,
        Op::Gather(_) | Op::Scatter(_) => 8.0,
        Op::Dot(_) | Op::RaggedDot(_) | Op::ScaledDot(_) | Op::Convolution(_) => 1e6,
        Op::Reduce(_) | Op::ReduceWindow(_) | Op::SelectAndScatter(_) | Op::Scan(_) | Op::BatchNorm(_) => 1e6,
        Op::While(_) | Op::Conditional(_) | Op::Call(_) | Op::Map(_) | Op::Fusion(_) => 1e6,
        Op::RngBitGenerator(_) | Op::Rng(_) | Op::RngGetAndUpdateState(_) | Op::StochasticConvert(_) => 1e6,
        Op::Sort(_) | Op::TopK(_) | Op::Fft(_) | Op::Cholesky(_) | Op::TriangularSolve(_) => 1e6,
        Op::Domain(_) | Op::AfterAll(_) | Op::AddDependency(_) => 0.0,
        Op::Transfer(_) | Op::Async(_) | Op::Collective(_) | Op::Dynamic(_) | Op::CustomCall(_) => 1e6,
    };
    instructions * complex
}

/// Cost of an elementwise function.
struct Elementary {
    /// Vector instructions per vector of results.
    instructions: f64,
    /// Whether [`Arithmetic`] counts it as transcendental.
    is_transcendental: bool,
}

fn unary(op: UnaryOp) -> Elementary {
    use UnaryOp::*;
    let (instructions, is_transcendental) = match op {
        Abs | Negate | Not | Real | Imag | IsFinite | Floor | Ceil | RoundNearestEven => (1.0, false),
        Sign | RoundNearestAfz => (2.0, false),
        CountLeadingZeros | Popcnt => (3.0, false),
        Sqrt | Rsqrt => (6.0, true),
        Exponential | ExponentialMinusOne | Log | LogPlusOne | Logistic | Tanh => (15.0, true),
        Sine | Cosine | Tan | Erf | Cbrt | Cosh | Sinh => (25.0, true),
        Acos | Acosh | Asin | Asinh | Atan | Atanh => (30.0, true),
    };
    Elementary { instructions, is_transcendental }
}

fn binary(op: BinaryOp, float: bool) -> Elementary {
    use BinaryOp::*;
    let (instructions, is_transcendental) = match op {
        Add | And | Complex | Maximum | Minimum | Multiply | Or | Subtract | Xor => (1.0, false),
        ShiftLeft | ShiftRightArithmetic | ShiftRightLogical => (2.0, false),
        Mulhi => (4.0, false),
        Divide if float => (5.0, false),
        Divide | Remainder => (25.0, false),
        Power | Atan2 => (40.0, true),
    };
    Elementary { instructions, is_transcendental }
}

/// Returns the number of elements of the first array. A reduction of several arrays counts as one.
fn leaf_elements(shape: &Shape) -> u64 {
    shape.leaves().first().map_or(0, |(_, leaf)| elements(leaf))
}

fn log2(n: usize) -> u64 {
    u64::from(n.max(1).next_power_of_two().ilog2())
}

fn last_dim(shape: &Shape) -> u64 {
    shape.as_array().and_then(|a| a.dims().last()).map_or(1, |&d| d as u64)
}

fn window_size(window: &Window) -> u64 {
    window.dims.iter().map(|d| d.size as u64).fold(1, u64::saturating_mul)
}

/// Counts a multiply-add for each element of the result and each contracted index.
fn contraction(dims: &DotDims, lhs: &Shape, result: u64) -> Arithmetic {
    let contracted = lhs.as_array().map_or(1, |lhs| dims.contracted_elements(lhs) as u64);
    Arithmetic::simple(result.saturating_mul(contracted).saturating_mul(2))
}

/// Counts a multiply-add for each element of the result, each channel of its group, and each window position inside the
/// array. Padding and holes of dilation are not counted.
fn convolution(op: &Convolution, input: &Shape, kernel: &Shape, result: &Instruction) -> Arithmetic {
    let (Some(input), Some(kernel), Some(output)) = (input.as_array(), kernel.as_array(), result.shape().as_array())
    else {
        return Arithmetic::default();
    };
    let size = |shape: &ArrayShape, d: usize| shape.dims().get(d).copied().unwrap_or(1) as u64;
    let mut pairs = 1u64;
    for (i, window) in op.window.dims.iter().enumerate() {
        let places = op.dims.output_spatial.get(i).map_or(1, |&d| size(output, d));
        let bound = op.dims.input_spatial.get(i).map_or(1, |&d| size(input, d));
        pairs = pairs.saturating_mul(inside(window, places, bound));
    }
    let channels = size(kernel, op.dims.kernel_input_feature);
    let images = size(output, op.dims.output_batch);
    let features = size(output, op.dims.output_feature);
    let each = images.saturating_mul(features).saturating_mul(channels).saturating_mul(2);
    // With batch groups, each group computes only a part of the output channels; the result's shape already accounts
    // for it.
    Arithmetic::simple(each.saturating_mul(pairs))
}

/// Counts the window elements, over all positions of the window along one dimension, that are inside the array.
fn inside(window: &WindowDim, places: u64, bound: u64) -> u64 {
    /// Maximum number of elements that are examined one by one; above it, all are assumed to be inside.
    const MOST: u64 = 1 << 20;
    let size = window.size as u64;
    if places.saturating_mul(size) > MOST {
        return places.saturating_mul(size);
    }
    let wide = |n: usize| n as i128;
    let base = wide(window.base_dilation.max(1));
    let last = (i128::from(bound) - 1) * base;
    let holds = |position: u64, k: u64| {
        let (step, inner) = (i128::from(position) * wide(window.stride), i128::from(k) * wide(window.window_dilation));
        let at = step + inner - i128::from(window.pad_low);
        at >= 0 && at <= last && at % base == 0
    };
    (0..places).map(|p| (0..size).filter(|&k| holds(p, k)).count() as u64).sum()
}

/// Returns `5 n log2 n` for a complex transform of n elements, and half of that if one side is real.
fn transform(fft: &Fft, operand: &Shape) -> Arithmetic {
    let length = fft.fft_length.iter().fold(1usize, |n, &d| n.saturating_mul(d));
    let inner = operand.as_array().map_or(1, |a| {
        let kept = a.rank().saturating_sub(fft.fft_length.len());
        a.dims()[..kept].iter().fold(1u64, |n, &d| n.saturating_mul(d as u64))
    });
    let each = (length as u64).saturating_mul(5).saturating_mul(log2(length));
    let each = if matches!(fft.fft_type, FftType::Fft | FftType::Ifft) { each } else { each / 2 };
    Arithmetic::simple(each.saturating_mul(inner))
}
