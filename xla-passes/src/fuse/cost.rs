//! What an element of each operation costs, and what time an amount of work takes on a target.

use xla_hlo::ops::{BinaryOp, UnaryOp};
use xla_hlo::{ElementType, Op};

use crate::TargetProfile;

/// Work above which an operation is never done twice, in vector instructions for one vector of elements.
pub const EXPENSIVE: f64 = 4.0;

/// Neighbouring elements that a gather must take together to load them as vectors.
const LONG_PIECE: usize = 8;

/// Vector instructions that one vector of results takes, where a simple addition takes 1.
///
/// Orders of magnitude, not measurements: what matters is what is free, what is cheap, and what is dear.
pub fn work(op: &Op, element_type: ElementType) -> f64 {
    let complex = if element_type.is_complex() { 4.0 } else { 1.0 };
    let work = match op {
        Op::Parameter(_) | Op::Constant(_) | Op::Tuple(_) | Op::GetTupleElement(_) | Op::OptBarrier(_) => 0.0,
        Op::Broadcast(_) | Op::Reshape(_) | Op::Bitcast(_) | Op::BitcastConvert(_) => 0.0,
        Op::Slice(_) | Op::Transpose(_) | Op::Reverse(_) | Op::Iota(_) | Op::Copy(_) => 0.5,
        Op::Unary(unary) => unary_work(unary.op),
        Op::Binary(binary) => binary_work(binary.op, element_type),
        Op::Compare(_) | Op::Select(_) | Op::Convert(_) => 1.0,
        Op::Clamp(_) => 2.0,
        Op::ReducePrecision(_) => 5.0,
        Op::Pad(_) | Op::DynamicSlice(_) | Op::DynamicUpdateSlice(_) => 2.0,
        Op::Concatenate(_) => 2.0,
        // Whole pieces of rows, or elements from anywhere.
        Op::Gather(gather) if gather.slice_sizes.last().is_some_and(|&n| n >= LONG_PIECE) => 2.0,
        Op::Gather(_) | Op::Scatter(_) => 8.0,
        Op::Dot(_) | Op::RaggedDot(_) | Op::ScaledDot(_) | Op::Convolution(_) => 1e6,
        Op::Reduce(_) | Op::ReduceWindow(_) | Op::SelectAndScatter(_) | Op::Scan(_) | Op::BatchNorm(_) => 1e6,
        Op::While(_) | Op::Conditional(_) | Op::Call(_) | Op::Map(_) | Op::Fusion(_) => 1e6,
        Op::RngBitGenerator(_) | Op::Rng(_) | Op::RngGetAndUpdateState(_) | Op::StochasticConvert(_) => 1e6,
        Op::Sort(_) | Op::TopK(_) | Op::Fft(_) | Op::Cholesky(_) | Op::TriangularSolve(_) => 1e6,
        Op::Domain(_) | Op::AfterAll(_) | Op::AddDependency(_) => 0.0,
        Op::Transfer(_) | Op::Async(_) | Op::Collective(_) | Op::Dynamic(_) | Op::CustomCall(_) => 1e6,
    };
    work * complex
}

fn unary_work(op: UnaryOp) -> f64 {
    use UnaryOp::*;
    match op {
        Abs | Negate | Not | Real | Imag | IsFinite | Floor | Ceil | RoundNearestEven => 1.0,
        Sign | RoundNearestAfz => 2.0,
        CountLeadingZeros | Popcnt => 3.0,
        Sqrt | Rsqrt => 6.0,
        Exponential | ExponentialMinusOne | Log | LogPlusOne | Logistic | Tanh => 15.0,
        Sine | Cosine | Tan | Erf | Cbrt | Cosh | Sinh => 25.0,
        Acos | Acosh | Asin | Asinh | Atan | Atanh => 30.0,
    }
}

fn binary_work(op: BinaryOp, element_type: ElementType) -> f64 {
    use BinaryOp::*;
    let float = element_type.is_float() || element_type.is_complex();
    match op {
        Add | And | Complex | Maximum | Minimum | Multiply | Or | Subtract | Xor => 1.0,
        ShiftLeft | ShiftRightArithmetic | ShiftRightLogical => 2.0,
        Mulhi => 4.0,
        Divide if float => 5.0,
        Divide | Remainder => 25.0,
        Power | Atan2 => 40.0,
    }
}

/// Elements of a vector of that type.
pub fn lanes(profile: &TargetProfile, element_type: ElementType) -> f64 {
    (profile.vector_bytes as f64 / element_type.byte_width() as f64).max(1.0)
}

/// Seconds for `evaluations` of an operation of that work and element type.
pub fn compute_seconds(profile: &TargetProfile, evaluations: f64, work: f64, element_type: ElementType) -> f64 {
    let large = evaluations * element_type.byte_width() as f64 > profile.l2_bytes as f64;
    let threads = if large { profile.threads.max(1) as f64 } else { 1.0 };
    evaluations * work / (lanes(profile, element_type) * threads * profile.clock_hz)
}

/// Seconds to move `moved` bytes of an array of `size` bytes.
pub fn memory_seconds(profile: &TargetProfile, size: f64, moved: f64) -> f64 {
    let in_cache = size < profile.l3_bytes as f64 / 2.0;
    moved / if in_cache { profile.cache_bandwidth } else { profile.memory_bandwidth }
}
