//! Table of operations: type, traits, context of called computations, opcodes.

/// Passes the operation table to a macro, one documented row for each operation:
/// `Type [traits, see OpTrait] calls CallContext: Opcode | Opcode;`.
macro_rules! for_operations {
    ($then:ident) => {
        $then! {
            /// An input of the computation.
            Parameter []: Parameter;
            /// A literal.
            Constant []: Constant;
            /// A tuple of values.
            Tuple []: Tuple;
            /// One element of a tuple.
            GetTupleElement [Speculatable]: GetTupleElement;
            /// Identity that blocks code motion across it.
            OptBarrier []: OptBarrier;
            /// A function of one element.
            Unary [Speculatable Foldable Widenable]: Abs | Acos | Acosh | Asin | Asinh | Atan | Atanh | Cbrt | Ceil
                | Cosh | Cosine | CountLeadingZeros | Erf | Exponential | ExponentialMinusOne | Floor | Imag | IsFinite
                | Log | LogPlusOne | Logistic | Negate | Not | Popcnt | Real | RoundNearestAfz | RoundNearestEven
                | Rsqrt | Sign | Sine | Sinh | Sqrt | Tan | Tanh;
            /// A function of two elements.
            Binary [Speculatable Foldable Widenable]: Add | And | Atan2 | Complex | Divide | Maximum | Minimum | Mulhi
                | Multiply | Or | Power | Remainder | ShiftLeft | ShiftRightArithmetic | ShiftRightLogical | Subtract
                | Xor;
            /// A comparison of two elements.
            Compare [Speculatable Foldable]: Compare;
            /// One of two elements, selected by a boolean.
            Select [Speculatable Foldable]: Select;
            /// An element clamped between two bounds.
            Clamp [Speculatable Foldable Widenable]: Clamp;
            /// Conversion of numbers to another element type.
            Convert [Speculatable Foldable]: Convert;
            /// Reinterpretation of bits as another element type.
            BitcastConvert [Speculatable Foldable]: BitcastConvert;
            /// A float rounded as if it had fewer bits.
            ReducePrecision [Speculatable Foldable]: ReducePrecision;
            /// Repetition of an array along new dimensions.
            Broadcast [Speculatable]: Broadcast;
            /// New dimensions with the row-major order of elements unchanged.
            Reshape [Speculatable Foldable]: Reshape;
            /// Permutation of dimensions.
            Transpose [Speculatable Foldable]: Transpose;
            /// A strided slice.
            Slice [Speculatable Foldable]: Slice;
            /// Padding around and between elements.
            Pad [Speculatable Foldable]: Pad;
            /// Concatenation of arrays along a dimension.
            Concatenate [Speculatable Foldable]: Concatenate;
            /// Reversal of dimensions.
            Reverse [Speculatable Foldable]: Reverse;
            /// The index along a dimension.
            Iota [Speculatable]: Iota;
            /// A slice at dynamic start indices.
            DynamicSlice [Speculatable Foldable]: DynamicSlice;
            /// A slice written at dynamic start indices.
            DynamicUpdateSlice [Speculatable Foldable]: DynamicUpdateSlice;
            /// Copy of a value into another buffer, possibly with another layout.
            Copy []: Copy;
            /// Reinterpretation of a buffer under another shape.
            Bitcast []: Bitcast;
            /// Contraction of two arrays.
            Dot [Speculatable Foldable Widenable]: Dot;
            /// Contraction of two arrays, one of them partitioned into groups of dynamic sizes.
            RaggedDot [Speculatable Widenable]: RaggedDot;
            /// Contraction of two arrays whose blocks have scale factors.
            ScaledDot [Speculatable]: ScaledDot;
            /// Sums of products under a sliding kernel.
            Convolution [Speculatable Foldable Widenable]: Convolution;
            /// A reduction over dimensions.
            Reduce [Speculatable Foldable] calls Embedded: Reduce;
            /// A loop over the slices of one dimension.
            Scan [Speculatable] calls Embedded: Scan;
            /// A reduction over sliding windows.
            ReduceWindow [Speculatable] calls Embedded: ReduceWindow;
            /// Values scattered to the selected element of each window.
            SelectAndScatter [Speculatable] calls Embedded: SelectAndScatter;
            /// A loop with a condition and a body.
            While [] calls Control: While;
            /// A conditional: calls one of several computations.
            Conditional [] calls Control: Conditional;
            /// A call of a computation.
            Call [] calls Control: Call;
            /// A computation applied to each element.
            Map [Speculatable] calls Embedded: Map;
            /// Operations compiled as one kernel.
            Fusion [] calls Fusion: Fusion;
            /// Random bits from a state.
            RngBitGenerator [Speculatable]: RngBitGenerator;
            /// Random numbers.
            Rng [SideEffect]: Rng;
            /// Current state of the device's random counter, which is then advanced.
            RngGetAndUpdateState [SideEffect]: RngGetAndUpdateState;
            /// Conversion of floats to integers, rounded by random bits.
            StochasticConvert [Speculatable Foldable]: StochasticConvert;
            /// Batch normalisation over all dimensions but the feature dimension.
            BatchNorm [Speculatable]: BatchNormTraining | BatchNormInference | BatchNormGrad;
            /// Slices read at an array of start indices.
            Gather [Speculatable Foldable]: Gather;
            /// Slices written at an array of start indices.
            Scatter [Speculatable] calls Embedded: Scatter;
            /// A Fourier transform.
            Fft [Speculatable]: Fft;
            /// The triangular factor of a positive definite matrix.
            Cholesky [Speculatable Widenable]: Cholesky;
            /// Solution of a triangular system of equations.
            TriangularSolve [Speculatable Widenable]: TriangularSolve;
            /// A function that HLO does not define.
            CustomCall [] calls Embedded: CustomCall;
            /// The boundary between regions of different shardings.
            Domain []: Domain;
            /// A token ordered after other tokens.
            AfterAll []: AfterAll;
            /// A value ordered after a token.
            AddDependency []: AddDependency;
            /// Data transfer from or to the host or another device.
            Transfer [SideEffect]: Infeed | Outfeed | Recv | RecvDone | Send | SendDone;
            /// Start, update or done of an asynchronous operation.
            Async [] calls Control: AsyncDone | AsyncStart | AsyncUpdate | CopyDone | CopyStart;
            /// Reads and sets dynamic dimension sizes.
            Dynamic []: DynamicReshape | GetDimensionSize | SetDimensionSize;
            /// Communication between devices, and the ids of the current device.
            Collective [] calls Embedded: AllGather | AllGatherDone | AllGatherStart | AllReduce | AllReduceDone
                | AllReduceStart | AllToAll | CollectiveBroadcast | CollectivePermute | CollectivePermuteDone
                | CollectivePermuteStart | CollectiveReduce | PartitionId | RaggedAllToAll | ReduceScatter | ReplicaId;
            /// Arrays sorted together by one comparator.
            Sort [Speculatable] calls Embedded: Sort;
            /// The greatest or least elements of each row.
            TopK [Speculatable]: TopK;
        }
    };
}
pub(super) use for_operations;
