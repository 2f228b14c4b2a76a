//! Table of operations: type, traits, context of called computations, opcodes.

/// Hands the table to a macro, one row for each operation with its documentation:
/// `Type [traits, see OpTrait] calls CallContext: Opcode | Opcode;`.
macro_rules! for_operations {
    ($then:ident) => {
        $then! {
            /// An input of the computation.
            Parameter []: Parameter;
            /// A literal.
            Constant []: Constant;
            /// Values put together.
            Tuple []: Tuple;
            /// One value of a tuple.
            GetTupleElement [Speculatable]: GetTupleElement;
            /// Identity that blocks motion across it.
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
            /// One of two elements, by a truth value.
            Select [Speculatable Foldable]: Select;
            /// An element kept between bounds.
            Clamp [Speculatable Foldable Widenable]: Clamp;
            /// The same number in another element type.
            Convert [Speculatable Foldable]: Convert;
            /// The same bits in another element type.
            BitcastConvert [Speculatable Foldable]: BitcastConvert;
            /// A float rounded as if it had fewer bits.
            ReducePrecision [Speculatable Foldable]: ReducePrecision;
            /// Copies along new dimensions.
            Broadcast [Speculatable]: Broadcast;
            /// Other dimensions, same row-major order.
            Reshape [Speculatable Foldable]: Reshape;
            /// Dimensions in another order.
            Transpose [Speculatable Foldable]: Transpose;
            /// A strided slice.
            Slice [Speculatable Foldable]: Slice;
            /// Elements added around and between.
            Pad [Speculatable Foldable]: Pad;
            /// Arrays one after the other.
            Concatenate [Speculatable Foldable]: Concatenate;
            /// Dimensions backwards.
            Reverse [Speculatable Foldable]: Reverse;
            /// The index along a dimension.
            Iota [Speculatable]: Iota;
            /// A slice at dynamic start indices.
            DynamicSlice [Speculatable Foldable]: DynamicSlice;
            /// A slice written at dynamic start indices.
            DynamicUpdateSlice [Speculatable Foldable]: DynamicUpdateSlice;
            /// The same value in another buffer, perhaps in another layout.
            Copy []: Copy;
            /// The same bytes under another shape.
            Bitcast []: Bitcast;
            /// Contraction of two arrays.
            Dot [Speculatable Foldable Widenable]: Dot;
            /// Contraction of two arrays, one of which falls into groups of dynamic sizes.
            RaggedDot [Speculatable Widenable]: RaggedDot;
            /// Contraction of two arrays whose blocks have scales.
            ScaledDot [Speculatable]: ScaledDot;
            /// Sums of products under a sliding kernel.
            Convolution [Speculatable Foldable Widenable]: Convolution;
            /// A reduction over dimensions.
            Reduce [Speculatable Foldable] calls Embedded: Reduce;
            /// A loop over one dimension.
            Scan [Speculatable] calls Embedded: Scan;
            /// A reduction over sliding windows.
            ReduceWindow [Speculatable] calls Embedded: ReduceWindow;
            /// Values scattered to the chosen element of each window.
            SelectAndScatter [Speculatable] calls Embedded: SelectAndScatter;
            /// A loop.
            While [] calls Control: While;
            /// A choice of computations.
            Conditional [] calls Control: Conditional;
            /// A computation's result.
            Call [] calls Control: Call;
            /// A computation applied to each element.
            Map [Speculatable] calls Embedded: Map;
            /// Operations compiled as one.
            Fusion [] calls Fusion: Fusion;
            /// Random bits from a state.
            RngBitGenerator [Speculatable]: RngBitGenerator;
            /// Random numbers.
            Rng [SideEffect]: Rng;
            /// The device's random counter, moved on.
            RngGetAndUpdateState [SideEffect]: RngGetAndUpdateState;
            /// Floats rounded to integers by random bits.
            StochasticConvert [Speculatable Foldable]: StochasticConvert;
            /// Normalisation over all dimensions but the features.
            BatchNorm [Speculatable]: BatchNormTraining | BatchNormInference | BatchNormGrad;
            /// Slices read at an array of start indices.
            Gather [Speculatable Foldable]: Gather;
            /// Slices written at an array of start indices.
            Scatter [Speculatable] calls Embedded: Scatter;
            /// A Fourier transform.
            Fft [Speculatable]: Fft;
            /// The triangular factor of a positive definite matrix.
            Cholesky [Speculatable Widenable]: Cholesky;
            /// The solution of equations with a triangular matrix.
            TriangularSolve [Speculatable Widenable]: TriangularSolve;
            /// A function that HLO does not define.
            CustomCall [] calls Embedded: CustomCall;
            /// The border between regions of different shardings.
            Domain []: Domain;
            /// A token after others.
            AfterAll []: AfterAll;
            /// A value not before a token.
            AddDependency []: AddDependency;
            /// Data from or to the host or another device.
            Transfer [SideEffect]: Infeed | Outfeed | Recv | RecvDone | Send | SendDone;
            /// Start, update or done of an asynchronous operation.
            Async [] calls Control: AsyncDone | AsyncStart | AsyncUpdate | CopyDone | CopyStart;
            /// Dynamic sizes, set and read.
            Dynamic []: DynamicReshape | GetDimensionSize | SetDimensionSize;
            /// Communication between devices, and their ids.
            Collective [] calls Embedded: AllGather | AllGatherDone | AllGatherStart | AllReduce | AllReduceDone
                | AllReduceStart | AllToAll | CollectiveBroadcast | CollectivePermute | CollectivePermuteDone
                | CollectivePermuteStart | CollectiveReduce | PartitionId | RaggedAllToAll | ReduceScatter | ReplicaId;
            /// Arrays sorted together.
            Sort [Speculatable] calls Embedded: Sort;
            /// The greatest or least elements of each row.
            TopK [Speculatable]: TopK;
        }
    };
}
pub(super) use for_operations;
