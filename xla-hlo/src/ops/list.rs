//! List of operations, for macros that need one arm for each.

/// Hands all operations to a macro: `Type: Opcode | Opcode;`, each with its documentation.
macro_rules! for_operations {
    ($then:ident) => {
        $then! {
            /// An input of the computation.
            Parameter: Parameter;
            /// A literal.
            Constant: Constant;
            /// Values put together.
            Tuple: Tuple;
            /// One value of a tuple.
            GetTupleElement: GetTupleElement;
            /// Identity that blocks motion across it.
            OptBarrier: OptBarrier;
            /// A function of one element.
            Unary: Abs | Acos | Acosh | Asin | Asinh | Atan | Atanh | Cbrt | Ceil | Cosh | Cosine | CountLeadingZeros
                | Erf | Exponential | ExponentialMinusOne | Floor | Imag | IsFinite | Log | LogPlusOne | Logistic
                | Negate | Not | Popcnt | Real | RoundNearestAfz | RoundNearestEven | Rsqrt | Sign | Sine | Sinh | Sqrt
                | Tan | Tanh;
            /// A function of two elements.
            Binary: Add | And | Atan2 | Complex | Divide | Maximum | Minimum | Mulhi | Multiply | Or | Power
                | Remainder | ShiftLeft | ShiftRightArithmetic | ShiftRightLogical | Subtract | Xor;
            /// A comparison of two elements.
            Compare: Compare;
            /// One of two elements, by a truth value.
            Select: Select;
            /// An element kept between bounds.
            Clamp: Clamp;
            /// The same number in another element type.
            Convert: Convert;
            /// The same bits in another element type.
            BitcastConvert: BitcastConvert;
            /// A float rounded as if it had fewer bits.
            ReducePrecision: ReducePrecision;
            /// Copies along new dimensions.
            Broadcast: Broadcast;
            /// Other dimensions, same row-major order.
            Reshape: Reshape;
            /// Dimensions in another order.
            Transpose: Transpose;
            /// A strided slice.
            Slice: Slice;
            /// Elements added around and between.
            Pad: Pad;
            /// Arrays one after the other.
            Concatenate: Concatenate;
            /// Dimensions backwards.
            Reverse: Reverse;
            /// The index along a dimension.
            Iota: Iota;
            /// A slice at dynamic start indices.
            DynamicSlice: DynamicSlice;
            /// A slice written at dynamic start indices.
            DynamicUpdateSlice: DynamicUpdateSlice;
            /// The same value in another buffer, perhaps in another layout.
            Copy: Copy;
            /// The same bytes under another shape.
            Bitcast: Bitcast;
            /// Contraction of two arrays.
            Dot: Dot;
            /// Contraction of two arrays, one of which falls into groups of dynamic sizes.
            RaggedDot: RaggedDot;
            /// Contraction of two arrays whose blocks have scales.
            ScaledDot: ScaledDot;
            /// Sums of products under a sliding kernel.
            Convolution: Convolution;
            /// A reduction over dimensions.
            Reduce: Reduce;
            /// A loop over one dimension.
            Scan: Scan;
            /// A reduction over sliding windows.
            ReduceWindow: ReduceWindow;
            /// Values scattered to the chosen element of each window.
            SelectAndScatter: SelectAndScatter;
            /// A loop.
            While: While;
            /// A choice of computations.
            Conditional: Conditional;
            /// A computation's result.
            Call: Call;
            /// A computation applied to each element.
            Map: Map;
            /// Operations compiled as one.
            Fusion: Fusion;
            /// Random bits from a state.
            RngBitGenerator: RngBitGenerator;
            /// Random numbers.
            Rng: Rng;
            /// The device's random counter, moved on.
            RngGetAndUpdateState: RngGetAndUpdateState;
            /// Floats rounded to integers by random bits.
            StochasticConvert: StochasticConvert;
            /// Normalisation over all dimensions but the features.
            BatchNorm: BatchNormTraining | BatchNormInference | BatchNormGrad;
            /// Slices read at an array of start indices.
            Gather: Gather;
            /// Slices written at an array of start indices.
            Scatter: Scatter;
            /// A Fourier transform.
            Fft: Fft;
            /// The triangular factor of a positive definite matrix.
            Cholesky: Cholesky;
            /// The solution of equations with a triangular matrix.
            TriangularSolve: TriangularSolve;
            /// A function that HLO does not define.
            CustomCall: CustomCall;
            /// The border between regions of different shardings.
            Domain: Domain;
            /// A token after others.
            AfterAll: AfterAll;
            /// A value not before a token.
            AddDependency: AddDependency;
            /// Data from or to the host or another device.
            Transfer: Infeed | Outfeed | Recv | RecvDone | Send | SendDone;
            /// Start, update or done of an asynchronous operation.
            Async: AsyncDone | AsyncStart | AsyncUpdate | CopyDone | CopyStart;
            /// Dynamic sizes, set and read.
            Dynamic: DynamicReshape | GetDimensionSize | SetDimensionSize;
            /// Communication between devices, and their ids.
            Collective: AllGather | AllGatherDone | AllGatherStart | AllReduce | AllReduceDone | AllReduceStart
                | AllToAll | CollectiveBroadcast | CollectivePermute | CollectivePermuteDone | CollectivePermuteStart
                | CollectiveReduce | PartitionId | RaggedAllToAll | ReduceScatter | ReplicaId;
            /// Arrays sorted together.
            Sort: Sort;
            /// The greatest or least elements of each row.
            TopK: TopK;
        }
    };
}
pub(super) use for_operations;
