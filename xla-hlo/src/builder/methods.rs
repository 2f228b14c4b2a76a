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
    /// Groups values into a tuple.
    pub fn tuple(&mut self, elements: impl Into<Vec<InstrId>>) -> Result<InstrId> {
        self.instruction(Tuple, None, elements)
    }

    /// Returns element `index` of a tuple.
    pub fn get_tuple_element(&mut self, tuple: InstrId, index: usize) -> Result<InstrId> {
        self.instruction(GetTupleElement { index }, None, [tuple])
    }

    /// Compares elements in the default order of their type.
    pub fn compare(&mut self, direction: CompareDirection, lhs: InstrId, rhs: InstrId) -> Result<InstrId> {
        self.instruction(Compare::new(direction), None, [lhs, rhs])
    }

    /// Selects `on_true` where `pred` holds and `on_false` otherwise.
    pub fn select(&mut self, pred: InstrId, on_true: InstrId, on_false: InstrId) -> Result<InstrId> {
        self.instruction(Select, None, [pred, on_true, on_false])
    }

    /// Limits each element of `x` to the range from `min` to `max`.
    pub fn clamp(&mut self, min: InstrId, x: InstrId, max: InstrId) -> Result<InstrId> {
        self.instruction(Clamp, None, [min, x, max])
    }

    /// Converts the elements to another element type.
    pub fn convert(&mut self, x: InstrId, to: ElementType) -> Result<InstrId> {
        let shape = self.shape(x).expect_array()?.clone().with_element_type(to);
        self.instruction(Convert, Some(shape.into()), [x])
    }

    /// Reinterprets the bits of `x` as the element type of `shape`; `shape` also supplies the dimensions.
    pub fn bitcast_convert(&mut self, x: InstrId, shape: Shape) -> Result<InstrId> {
        self.instruction(BitcastConvert, Some(shape), [x])
    }

    /// Rounds floats to a format with fewer exponent and mantissa bits, without a change of the element type.
    pub fn reduce_precision(&mut self, x: InstrId, exponent_bits: u32, mantissa_bits: u32) -> Result<InstrId> {
        self.instruction(ReducePrecision { exponent_bits, mantissa_bits }, None, [x])
    }

    /// Broadcasts `x` to `dims`; operand dimension `i` becomes result dimension `dimensions[i]`.
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

    /// Changes the dimensions of `x` and keeps the row-major order of its elements.
    pub fn reshape(&mut self, x: InstrId, dims: impl Into<Vec<usize>>) -> Result<InstrId> {
        let element_type = self.shape(x).expect_array()?.element_type();
        self.instruction(Reshape { inferred_dimension: None }, Some(Shape::array(element_type, dims)), [x])
    }

    /// Permutes dimensions: result dimension `i` is operand dimension `permutation[i]`.
    pub fn transpose(&mut self, x: InstrId, permutation: impl Into<Vec<usize>>) -> Result<InstrId> {
        self.instruction(Transpose { permutation: permutation.into() }, None, [x])
    }

    /// Extracts a strided slice.
    pub fn slice(&mut self, x: InstrId, ranges: impl Into<Vec<SliceRange>>) -> Result<InstrId> {
        self.instruction(Slice { ranges: ranges.into() }, None, [x])
    }

    /// Pads `x` at the edges and between elements with the scalar `value`.
    pub fn pad(&mut self, x: InstrId, value: InstrId, dims: impl Into<Vec<PadDim>>) -> Result<InstrId> {
        self.instruction(Pad { dims: dims.into() }, None, [x, value])
    }

    /// Concatenates arrays along `dimension`.
    pub fn concatenate(&mut self, operands: impl Into<Vec<InstrId>>, dimension: usize) -> Result<InstrId> {
        self.instruction(Concatenate { dimension }, None, operands)
    }

    /// Reverses the order of the elements along `dimensions`.
    pub fn reverse(&mut self, x: InstrId, dimensions: impl Into<Vec<usize>>) -> Result<InstrId> {
        self.instruction(Reverse { dimensions: dimensions.into() }, None, [x])
    }

    /// Fills an array of `shape` with each element's index along `dimension`.
    pub fn iota(&mut self, shape: ArrayShape, dimension: usize) -> Result<InstrId> {
        self.instruction(Iota { dimension }, Some(shape.into()), [])
    }

    /// Extracts a slice of `sizes` at the scalar indices `starts`.
    pub fn dynamic_slice(
        &mut self,
        x: InstrId,
        starts: impl Into<Vec<InstrId>>,
        sizes: impl Into<Vec<usize>>,
    ) -> Result<InstrId> {
        let operands: Vec<InstrId> = std::iter::once(x).chain(starts.into()).collect();
        self.instruction(DynamicSlice { sizes: sizes.into() }, None, operands)
    }

    /// Overwrites the part of `x` at the scalar indices `starts` with `update`.
    pub fn dynamic_update_slice(
        &mut self,
        x: InstrId,
        update: InstrId,
        starts: impl Into<Vec<InstrId>>,
    ) -> Result<InstrId> {
        let operands: Vec<InstrId> = [x, update].into_iter().chain(starts.into()).collect();
        self.instruction(DynamicUpdateSlice, None, operands)
    }

    /// Copies `x`.
    pub fn copy(&mut self, x: InstrId) -> Result<InstrId> {
        self.instruction(Copy, None, [x])
    }

    /// Contracts two arrays. `element_type` is the preferred element type of the result; `None` selects the left
    /// operand's type.
    pub fn dot(
        &mut self,
        lhs: InstrId,
        rhs: InstrId,
        dims: DotDims,
        element_type: Option<ElementType>,
    ) -> Result<InstrId> {
        self.product(Dot { dims, precision: Vec::new(), algorithm: None }, element_type, [lhs, rhs])
    }

    /// Convolves `input` with `kernel`. `element_type` is the preferred element type of the result; `None` selects the
    /// type of the operand that can represent the other's values.
    pub fn convolution(
        &mut self,
        input: InstrId,
        kernel: InstrId,
        op: Convolution,
        element_type: Option<ElementType>,
    ) -> Result<InstrId> {
        self.product(op, element_type, [input, kernel])
    }

    /// Adds an operation on two operands. The result has `element_type`, or the type that the shape rule infers for
    /// `None`.
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

    /// Reduces `inputs` over `dimensions`, with `inits` as initial values.
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

    /// Reduces each position of a sliding window.
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

    /// Calls `on_true(true_operand)` if `pred` holds, otherwise `on_false(false_operand)`.
    pub fn conditional(
        &mut self,
        pred: InstrId,
        on_true: (CompId, InstrId),
        on_false: (CompId, InstrId),
    ) -> Result<InstrId> {
        let op = Conditional { branches: vec![on_true.0, on_false.0], by_predicate: true };
        self.instruction(op, None, [pred, on_true.1, on_false.1])
    }

    /// Calls branch number `index` of `branches`, each with its operand.
    pub fn switch(&mut self, index: InstrId, branches: &[(CompId, InstrId)]) -> Result<InstrId> {
        let op = Conditional { branches: branches.iter().map(|b| b.0).collect(), by_predicate: false };
        let operands: Vec<InstrId> = std::iter::once(index).chain(branches.iter().map(|b| b.1)).collect();
        self.instruction(op, None, operands)
    }

    /// Calls a computation and returns its result.
    pub fn call(&mut self, computation: CompId, operands: impl Into<Vec<InstrId>>) -> Result<InstrId> {
        self.instruction(Call { computation, is_composite: false }, None, operands)
    }

    /// Generates random bits of `shape` from a state: `(new state, bits)`.
    pub fn rng_bit_generator(&mut self, algorithm: RngAlgorithm, state: InstrId, bits: Shape) -> Result<InstrId> {
        let shape = Shape::Tuple(vec![self.shape(state).clone(), bits]);
        self.instruction(RngBitGenerator { algorithm }, Some(shape), [state])
    }

    /// Generates random numbers of `shape`; the scalars `a` and `b` are the parameters of the distribution.
    pub fn rng(&mut self, distribution: RngDistribution, a: InstrId, b: InstrId, shape: Shape) -> Result<InstrId> {
        self.instruction(Rng { distribution }, Some(shape), [a, b])
    }

    /// Returns the device's random counter (`u64[2]`) and advances it by `delta`.
    pub fn rng_get_and_update_state(&mut self, delta: i64) -> Result<InstrId> {
        self.instruction(RngGetAndUpdateState { delta }, Some(Shape::array(ElementType::U64, [2])), [])
    }

    /// Converts floats to integers of type `to`, rounded to zero or away from it; the fraction is the probability of
    /// the latter. `random` supplies the random bits.
    pub fn stochastic_convert(&mut self, x: InstrId, random: InstrId, to: ElementType) -> Result<InstrId> {
        let shape = self.shape(x).expect_array()?.clone().with_element_type(to);
        self.instruction(StochasticConvert, Some(shape.into()), [x, random])
    }

    /// Adds a batch normalization; [`BatchNormKind`] lists the operands of each kind.
    pub fn batch_norm(
        &mut self,
        kind: BatchNormKind,
        operands: impl Into<Vec<InstrId>>,
        epsilon: f32,
        feature_index: usize,
    ) -> Result<InstrId> {
        self.instruction(BatchNorm { kind, epsilon: Epsilon::new(epsilon), feature_index }, None, operands)
    }

    /// Adds a loop over one dimension of `inputs` with [`Scan::num_carries`] loop-carried values, initially `carries`.
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

    /// Contracts two arrays, one of them ragged (divided into groups). The result has the wider element type of the
    /// two.
    pub fn ragged_dot(&mut self, op: RaggedDot, lhs: InstrId, rhs: InstrId, sizes: InstrId) -> Result<InstrId> {
        self.instruction(op, None, [lhs, rhs, sizes])
    }

    /// Contracts two arrays, each given as `(array, scale)`; `shape` is the result's.
    pub fn scaled_dot(
        &mut self,
        op: ScaledDot,
        lhs: (InstrId, InstrId),
        rhs: (InstrId, InstrId),
        shape: Shape,
    ) -> Result<InstrId> {
        self.instruction(op, Some(shape), [lhs.0, rhs.0, lhs.1, rhs.1])
    }

    /// Gathers slices of `x` at `indices`.
    pub fn gather(&mut self, op: Gather, x: InstrId, indices: InstrId) -> Result<InstrId> {
        self.instruction(op, None, [x, indices])
    }

    /// Scatters `updates` into `x` at `indices`.
    pub fn scatter(&mut self, op: Scatter, x: InstrId, indices: InstrId, updates: InstrId) -> Result<InstrId> {
        self.instruction(op, None, [x, indices, updates])
    }

    /// Calls a function that HLO does not define, with a configuration for its handler and a result of `shape`.
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

    /// Applies a Fourier transform over the innermost dimensions, whose sizes on the real side are `length`.
    pub fn fft(&mut self, fft_type: FftType, x: InstrId, length: impl Into<Vec<usize>>) -> Result<InstrId> {
        self.instruction(Fft { fft_type, fft_length: length.into() }, None, [x])
    }

    /// Computes the Cholesky factor of positive definite matrices. Only the lower or the upper triangle of `a` is read.
    pub fn cholesky(&mut self, a: InstrId, lower: bool) -> Result<InstrId> {
        self.instruction(Cholesky { lower }, None, [a])
    }

    /// Solves systems of equations with triangular matrices `a`.
    pub fn triangular_solve(&mut self, op: TriangularSolve, a: InstrId, b: InstrId) -> Result<InstrId> {
        self.instruction(op, None, [a, b])
    }

    /// Sorts arrays together along `dimension`, stably. The comparator receives two elements of each array.
    pub fn sort(&mut self, operands: impl Into<Vec<InstrId>>, dimension: usize, comparator: CompId) -> Result<InstrId> {
        self.instruction(Sort { dimension, is_stable: true, computation: comparator }, None, operands)
    }

    /// Returns the `k` greatest (or least) elements of each row and their indices: `(values, s32 indices)`.
    pub fn top_k(&mut self, x: InstrId, k: usize, largest: bool) -> Result<InstrId> {
        self.instruction(TopK { k, largest, is_stable: false }, None, [x])
    }
}
