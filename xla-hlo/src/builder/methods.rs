//! Builder methods, one for each operation.

use super::ComputationBuilder;
use crate::ops::*;
use crate::{ArrayShape, BackendConfig, CompId, ElementType, InstrId, Result, Shape};

macro_rules! unary {
    ($($name:ident: $variant:ident;)*) => {
        impl ComputationBuilder<'_> {
            $(#[doc = concat!("`", stringify!($name), "` of each element.")]
            pub fn $name(&mut self, x: InstrId) -> Result<InstrId> {
                self.instruction(Unary::from(UnaryOp::$variant), None, [x])
            })*
        }
    };
}

macro_rules! binary {
    ($($name:ident: $variant:ident;)*) => {
        impl ComputationBuilder<'_> {
            $(#[doc = concat!("`", stringify!($name), "` of each pair of elements.")]
            pub fn $name(&mut self, lhs: InstrId, rhs: InstrId) -> Result<InstrId> {
                self.instruction(Binary { op: BinaryOp::$variant }, None, [lhs, rhs])
            })*
        }
    };
}

unary! {
    abs: Abs;
    acos: Acos;
    acosh: Acosh;
    asin: Asin;
    asinh: Asinh;
    atan: Atan;
    atanh: Atanh;
    cbrt: Cbrt;
    ceil: Ceil;
    cosh: Cosh;
    cosine: Cosine;
    count_leading_zeros: CountLeadingZeros;
    erf: Erf;
    exponential: Exponential;
    exponential_minus_one: ExponentialMinusOne;
    floor: Floor;
    imag: Imag;
    is_finite: IsFinite;
    log: Log;
    log_plus_one: LogPlusOne;
    logistic: Logistic;
    negate: Negate;
    not: Not;
    popcnt: Popcnt;
    real: Real;
    round_nearest_afz: RoundNearestAfz;
    round_nearest_even: RoundNearestEven;
    rsqrt: Rsqrt;
    sign: Sign;
    sine: Sine;
    sinh: Sinh;
    sqrt: Sqrt;
    tan: Tan;
    tanh: Tanh;
}

binary! {
    add: Add;
    and: And;
    atan2: Atan2;
    complex: Complex;
    divide: Divide;
    maximum: Maximum;
    minimum: Minimum;
    mulhi: Mulhi;
    multiply: Multiply;
    or: Or;
    power: Power;
    remainder: Remainder;
    shift_left: ShiftLeft;
    shift_right_arithmetic: ShiftRightArithmetic;
    shift_right_logical: ShiftRightLogical;
    subtract: Subtract;
    xor: Xor;
}

impl ComputationBuilder<'_> {
    /// Values put together.
    pub fn tuple(&mut self, elements: impl Into<Vec<InstrId>>) -> Result<InstrId> {
        self.instruction(Tuple, None, elements)
    }

    /// Element `index` of a tuple.
    pub fn get_tuple_element(&mut self, tuple: InstrId, index: usize) -> Result<InstrId> {
        self.instruction(GetTupleElement { index }, None, [tuple])
    }

    /// Compares elements in the default order of their type.
    pub fn compare(&mut self, direction: CompareDirection, lhs: InstrId, rhs: InstrId) -> Result<InstrId> {
        self.instruction(Compare::new(direction), None, [lhs, rhs])
    }

    /// `on_true` where `pred`, else `on_false`.
    pub fn select(&mut self, pred: InstrId, on_true: InstrId, on_false: InstrId) -> Result<InstrId> {
        self.instruction(Select, None, [pred, on_true, on_false])
    }

    /// `x` kept between `min` and `max`.
    pub fn clamp(&mut self, min: InstrId, x: InstrId, max: InstrId) -> Result<InstrId> {
        self.instruction(Clamp, None, [min, x, max])
    }

    /// The same numbers in another element type.
    pub fn convert(&mut self, x: InstrId, to: ElementType) -> Result<InstrId> {
        let shape = self.shape(x).expect_array()?.clone().with_element_type(to);
        self.instruction(Convert, Some(shape.into()), [x])
    }

    /// The same bits under another element type; `shape` says which, and its dimensions.
    pub fn bitcast_convert(&mut self, x: InstrId, shape: Shape) -> Result<InstrId> {
        self.instruction(BitcastConvert, Some(shape), [x])
    }

    /// Floats rounded as if they had fewer bits.
    pub fn reduce_precision(&mut self, x: InstrId, exponent_bits: u32, mantissa_bits: u32) -> Result<InstrId> {
        self.instruction(ReducePrecision { exponent_bits, mantissa_bits }, None, [x])
    }

    /// Operand dimension `i` becomes result dimension `dimensions[i]` of `dims`.
    pub fn broadcast(
        &mut self,
        x: InstrId,
        dims: impl Into<Vec<usize>>,
        dimensions: impl Into<Vec<usize>>,
    ) -> Result<InstrId> {
        let element_type = self.shape(x).expect_array()?.element_type();
        let shape = Shape::array(element_type, dims);
        self.instruction(Broadcast { dimensions: dimensions.into() }, Some(shape), [x])
    }

    /// Other dimensions, same row-major order.
    pub fn reshape(&mut self, x: InstrId, dims: impl Into<Vec<usize>>) -> Result<InstrId> {
        let element_type = self.shape(x).expect_array()?.element_type();
        self.instruction(Reshape { inferred_dimension: None }, Some(Shape::array(element_type, dims)), [x])
    }

    /// Result dimension `i` is operand dimension `permutation[i]`.
    pub fn transpose(&mut self, x: InstrId, permutation: impl Into<Vec<usize>>) -> Result<InstrId> {
        self.instruction(Transpose { permutation: permutation.into() }, None, [x])
    }

    /// A strided slice.
    pub fn slice(&mut self, x: InstrId, ranges: impl Into<Vec<SliceRange>>) -> Result<InstrId> {
        self.instruction(Slice { ranges: ranges.into() }, None, [x])
    }

    /// `x` with the scalar `value` around and between.
    pub fn pad(&mut self, x: InstrId, value: InstrId, dims: impl Into<Vec<PadDim>>) -> Result<InstrId> {
        self.instruction(Pad { dims: dims.into() }, None, [x, value])
    }

    /// Arrays one after the other along `dimension`.
    pub fn concatenate(&mut self, operands: impl Into<Vec<InstrId>>, dimension: usize) -> Result<InstrId> {
        self.instruction(Concatenate { dimension }, None, operands)
    }

    /// Dimensions backwards.
    pub fn reverse(&mut self, x: InstrId, dimensions: impl Into<Vec<usize>>) -> Result<InstrId> {
        self.instruction(Reverse { dimensions: dimensions.into() }, None, [x])
    }

    /// The index along `dimension` of an array of `shape`.
    pub fn iota(&mut self, shape: ArrayShape, dimension: usize) -> Result<InstrId> {
        self.instruction(Iota { dimension }, Some(shape.into()), [])
    }

    /// A slice of `sizes` at scalar `starts`.
    pub fn dynamic_slice(
        &mut self,
        x: InstrId,
        starts: impl Into<Vec<InstrId>>,
        sizes: impl Into<Vec<usize>>,
    ) -> Result<InstrId> {
        let operands: Vec<InstrId> = std::iter::once(x).chain(starts.into()).collect();
        self.instruction(DynamicSlice { sizes: sizes.into() }, None, operands)
    }

    /// `x` with `update` written at scalar `starts`.
    pub fn dynamic_update_slice(
        &mut self,
        x: InstrId,
        update: InstrId,
        starts: impl Into<Vec<InstrId>>,
    ) -> Result<InstrId> {
        let operands: Vec<InstrId> = [x, update].into_iter().chain(starts.into()).collect();
        self.instruction(DynamicUpdateSlice, None, operands)
    }

    /// A copy.
    pub fn copy(&mut self, x: InstrId) -> Result<InstrId> {
        self.instruction(Copy, None, [x])
    }

    /// Contraction; `element_type` is the result's (preferred element type), `None` the left operand's.
    pub fn dot(
        &mut self,
        lhs: InstrId,
        rhs: InstrId,
        dims: DotDims,
        element_type: Option<ElementType>,
    ) -> Result<InstrId> {
        self.product(Dot { dims, precision: Vec::new(), algorithm: None }, element_type, [lhs, rhs])
    }

    /// A kernel that slides over an input; `element_type` is the result's (preferred element type), `None` that of the
    /// operand that holds the other's values.
    pub fn convolution(
        &mut self,
        input: InstrId,
        kernel: InstrId,
        op: Convolution,
        element_type: Option<ElementType>,
    ) -> Result<InstrId> {
        self.product(op, element_type, [input, kernel])
    }

    /// An operation on two operands whose result is of that element type, or of the one that its shape rule infers.
    fn product(
        &mut self,
        op: impl Into<Op>,
        element_type: Option<ElementType>,
        operands: [InstrId; 2],
    ) -> Result<InstrId> {
        let op = op.into();
        let id = self.instruction(op.clone(), None, operands)?;
        match element_type {
            Some(ty) if self.shape(id).element_type() != Some(ty) => {
                let shape = self.shape(id).expect_array()?.clone().with_element_type(ty);
                self.instruction(op, Some(shape.into()), operands)
            }
            Some(_) | None => Ok(id),
        }
    }

    /// A reduction of `inputs` with `inits` over `dimensions`.
    pub fn reduce(
        &mut self,
        inputs: impl Into<Vec<InstrId>>,
        inits: impl Into<Vec<InstrId>>,
        dimensions: impl Into<Vec<usize>>,
        computation: CompId,
    ) -> Result<InstrId> {
        let mut operands = inputs.into();
        operands.extend(inits.into());
        self.instruction(Reduce { dimensions: dimensions.into(), computation }, None, operands)
    }

    /// A reduction over each position of a window.
    pub fn reduce_window(
        &mut self,
        inputs: impl Into<Vec<InstrId>>,
        inits: impl Into<Vec<InstrId>>,
        window: Window,
        computation: CompId,
    ) -> Result<InstrId> {
        let mut operands = inputs.into();
        operands.extend(inits.into());
        self.instruction(ReduceWindow { window, computation }, None, operands)
    }

    /// Runs `body` on the state while `condition` holds.
    pub fn while_loop(&mut self, condition: CompId, body: CompId, init: InstrId) -> Result<InstrId> {
        self.instruction(While { condition, body }, None, [init])
    }

    /// `on_true(true_operand)` if `pred`, else `on_false(false_operand)`.
    pub fn conditional(
        &mut self,
        pred: InstrId,
        on_true: (CompId, InstrId),
        on_false: (CompId, InstrId),
    ) -> Result<InstrId> {
        let op = Conditional { branches: vec![on_true.0, on_false.0], by_predicate: true };
        self.instruction(op, None, [pred, on_true.1, on_false.1])
    }

    /// Branch number `index` of `branches`, each with its operand.
    pub fn switch(&mut self, index: InstrId, branches: &[(CompId, InstrId)]) -> Result<InstrId> {
        let op = Conditional { branches: branches.iter().map(|b| b.0).collect(), by_predicate: false };
        let operands: Vec<InstrId> = std::iter::once(index).chain(branches.iter().map(|b| b.1)).collect();
        self.instruction(op, None, operands)
    }

    /// A computation's result.
    pub fn call(&mut self, computation: CompId, operands: impl Into<Vec<InstrId>>) -> Result<InstrId> {
        self.instruction(Call { computation, is_composite: false }, None, operands)
    }

    /// Random bits of `shape` from a state: `(new state, bits)`.
    pub fn rng_bit_generator(&mut self, algorithm: RngAlgorithm, state: InstrId, bits: Shape) -> Result<InstrId> {
        let shape = Shape::Tuple(vec![self.shape(state).clone(), bits]);
        self.instruction(RngBitGenerator { algorithm }, Some(shape), [state])
    }

    /// Random numbers of `shape`, with the scalar parameters `a` and `b` of their distribution.
    pub fn rng(&mut self, distribution: RngDistribution, a: InstrId, b: InstrId, shape: Shape) -> Result<InstrId> {
        self.instruction(Rng { distribution }, Some(shape), [a, b])
    }

    /// The device's random counter (`u64[2]`), which then moves on by `delta`.
    pub fn rng_get_and_update_state(&mut self, delta: i64) -> Result<InstrId> {
        self.instruction(RngGetAndUpdateState { delta }, Some(Shape::array(ElementType::U64, [2])), [])
    }

    /// Floats as integers of that type, rounded up with a chance of their fraction.
    pub fn stochastic_convert(&mut self, x: InstrId, random: InstrId, to: ElementType) -> Result<InstrId> {
        let shape = self.shape(x).expect_array()?.clone().with_element_type(to);
        self.instruction(StochasticConvert, Some(shape.into()), [x, random])
    }

    /// A batch normalisation; [`BatchNormKind`] says what its operands are.
    pub fn batch_norm(
        &mut self,
        kind: BatchNormKind,
        operands: impl Into<Vec<InstrId>>,
        epsilon: f32,
        feature_index: usize,
    ) -> Result<InstrId> {
        self.instruction(BatchNorm { kind, epsilon: Epsilon::new(epsilon), feature_index }, None, operands)
    }

    /// A loop over one dimension of `inputs` with `carries`, a number of which `op` has.
    pub fn scan(
        &mut self,
        op: Scan,
        inputs: impl Into<Vec<InstrId>>,
        carries: impl Into<Vec<InstrId>>,
    ) -> Result<InstrId> {
        let mut operands = inputs.into();
        operands.extend(carries.into());
        self.instruction(op, None, operands)
    }

    /// Contraction of arrays of which one falls into groups; the result has the wider element type of the two.
    pub fn ragged_dot(&mut self, op: RaggedDot, lhs: InstrId, rhs: InstrId, sizes: InstrId) -> Result<InstrId> {
        self.instruction(op, None, [lhs, rhs, sizes])
    }

    /// Contraction of `(array, scale)` with `(array, scale)`; `shape` is the result's.
    pub fn scaled_dot(
        &mut self,
        op: ScaledDot,
        lhs: (InstrId, InstrId),
        rhs: (InstrId, InstrId),
        shape: Shape,
    ) -> Result<InstrId> {
        self.instruction(op, Some(shape), [lhs.0, rhs.0, lhs.1, rhs.1])
    }

    /// Boxes read at indexed places.
    pub fn gather(&mut self, op: Gather, x: InstrId, indices: InstrId) -> Result<InstrId> {
        self.instruction(op, None, [x, indices])
    }

    /// Boxes written at indexed places.
    pub fn scatter(&mut self, op: Scatter, x: InstrId, indices: InstrId, updates: InstrId) -> Result<InstrId> {
        self.instruction(op, None, [x, indices, updates])
    }

    /// A function that HLO does not define, with a configuration for its handler and a result of `shape`.
    pub fn custom_call(
        &mut self,
        op: CustomCall,
        config: impl Into<BackendConfig>,
        shape: Shape,
        operands: impl Into<Vec<InstrId>>,
    ) -> Result<InstrId> {
        let id = self.instruction(op, Some(shape), operands)?;
        self.computation.annotations_mut(id).backend_config = config.into();
        Ok(id)
    }

    /// A Fourier transform over the innermost dimensions, whose sizes on the real side are `length`.
    pub fn fft(&mut self, fft_type: FftType, x: InstrId, length: impl Into<Vec<usize>>) -> Result<InstrId> {
        self.instruction(Fft { fft_type, fft_length: length.into() }, None, [x])
    }

    /// The triangular factor of positive definite matrices, of which the lower or the upper triangle is read.
    pub fn cholesky(&mut self, a: InstrId, lower: bool) -> Result<InstrId> {
        self.instruction(Cholesky { lower }, None, [a])
    }

    /// The solution of equations with triangular matrices `a`.
    pub fn triangular_solve(&mut self, op: TriangularSolve, a: InstrId, b: InstrId) -> Result<InstrId> {
        self.instruction(op, None, [a, b])
    }

    /// Arrays sorted together along `dimension`, stably; the comparator gets two elements of each array.
    pub fn sort(&mut self, operands: impl Into<Vec<InstrId>>, dimension: usize, comparator: CompId) -> Result<InstrId> {
        self.instruction(Sort { dimension, is_stable: true, computation: comparator }, None, operands)
    }

    /// The `k` greatest (or least) elements of each row: `(values, s32 places)`.
    pub fn top_k(&mut self, x: InstrId, k: usize, largest: bool) -> Result<InstrId> {
        self.instruction(TopK { k, largest, is_stable: false }, None, [x])
    }
}
