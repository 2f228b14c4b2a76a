//! Opcode table: every opcode of HLO text with its arity and family.

/// Number of operands of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arity {
    /// Exactly n operands.
    Exactly(usize),
    /// At least n operands.
    AtLeast(usize),
}

macro_rules! opcodes {
    ($($(#[$doc:meta])* $variant:ident $name:literal $arity:ident($n:literal) $family:ident;)*) => {
        /// Name of an operation in HLO text.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[allow(missing_docs, reason = "each variant is the opcode of its name")]
        pub enum Opcode { $($(#[$doc])* $variant,)* }

        impl Opcode {
            /// All opcodes, in alphabetical order of their names.
            pub const ALL: &[Opcode] = &[$(Opcode::$variant,)*];

            /// Returns the name in HLO text.
            pub const fn name(self) -> &'static str {
                match self { $(Opcode::$variant => $name,)* }
            }

            /// Returns the number of operands.
            pub const fn arity(self) -> Arity {
                match self { $(Opcode::$variant => Arity::$arity($n),)* }
            }

            /// Returns the family, which is the subfolder of `ops` that implements the operation.
            pub const fn family(self) -> Family {
                match self { $(Opcode::$variant => Family::$family,)* }
            }

            /// Looks up an opcode by its name.
            pub fn from_name(name: &str) -> Option<Opcode> {
                match name { $($name => Some(Opcode::$variant),)* _ => None }
            }
        }
    };
}

/// Families of operations, one folder each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Family {
    /// Parameters, constants, tuples.
    Structure,
    /// Functions of single elements.
    Elementwise,
    /// Operations that move elements without changing their values.
    Movement,
    /// Contractions.
    Dot,
    /// Reductions over dimensions.
    Reduction,
    /// Reductions over sliding windows.
    Window,
    /// Calls, loops, branches, fusions.
    ControlFlow,
    /// Random bits and numbers, and operations that use them.
    Random,
    /// Gather and scatter.
    Indexing,
    /// Convolutions.
    Convolution,
    /// Sorting and top-k.
    Sorting,
    /// Fourier transforms.
    Transform,
    /// Matrix decompositions and systems of equations.
    Linalg,
    /// Batch normalisation and its gradient.
    Normalization,
    /// Dynamic sizes of arrays.
    Dynamic,
    /// Calls to functions that HLO does not define.
    Custom,
    /// Ordering by tokens, and transfers to and from the host and other devices.
    Token,
    /// Asynchronous operations: start, update, done.
    Async,
    /// Communication between the devices of a program.
    Collective,
}

opcodes! {
    Abs "abs" Exactly(1) Elementwise;
    Acos "acos" Exactly(1) Elementwise;
    Acosh "acosh" Exactly(1) Elementwise;
    Add "add" Exactly(2) Elementwise;
    AddDependency "add-dependency" Exactly(2) Token;
    AfterAll "after-all" AtLeast(0) Token;
    AllGather "all-gather" AtLeast(0) Collective;
    AllGatherDone "all-gather-done" Exactly(1) Collective;
    AllGatherStart "all-gather-start" AtLeast(0) Collective;
    AllReduce "all-reduce" AtLeast(0) Collective;
    AllReduceDone "all-reduce-done" Exactly(1) Collective;
    AllReduceStart "all-reduce-start" AtLeast(0) Collective;
    AllToAll "all-to-all" AtLeast(0) Collective;
    And "and" Exactly(2) Elementwise;
    Asin "asin" Exactly(1) Elementwise;
    Asinh "asinh" Exactly(1) Elementwise;
    AsyncDone "async-done" Exactly(1) Async;
    AsyncStart "async-start" AtLeast(0) Async;
    AsyncUpdate "async-update" Exactly(1) Async;
    Atan "atan" Exactly(1) Elementwise;
    Atan2 "atan2" Exactly(2) Elementwise;
    Atanh "atanh" Exactly(1) Elementwise;
    BatchNormGrad "batch-norm-grad" Exactly(5) Normalization;
    BatchNormInference "batch-norm-inference" Exactly(5) Normalization;
    BatchNormTraining "batch-norm-training" Exactly(3) Normalization;
    Bitcast "bitcast" Exactly(1) Movement;
    BitcastConvert "bitcast-convert" Exactly(1) Elementwise;
    Broadcast "broadcast" Exactly(1) Movement;
    Call "call" AtLeast(0) ControlFlow;
    Cbrt "cbrt" Exactly(1) Elementwise;
    Ceil "ceil" Exactly(1) Elementwise;
    Cholesky "cholesky" Exactly(1) Linalg;
    Clamp "clamp" Exactly(3) Elementwise;
    CollectiveBroadcast "collective-broadcast" AtLeast(0) Collective;
    CollectivePermute "collective-permute" AtLeast(0) Collective;
    CollectivePermuteDone "collective-permute-done" Exactly(1) Collective;
    CollectivePermuteStart "collective-permute-start" AtLeast(0) Collective;
    CollectiveReduce "collective-reduce" AtLeast(0) Collective;
    Compare "compare" Exactly(2) Elementwise;
    Complex "complex" Exactly(2) Elementwise;
    Concatenate "concatenate" AtLeast(1) Movement;
    Conditional "conditional" AtLeast(2) ControlFlow;
    Constant "constant" Exactly(0) Structure;
    Convert "convert" Exactly(1) Elementwise;
    Convolution "convolution" Exactly(2) Convolution;
    Copy "copy" Exactly(1) Movement;
    CopyDone "copy-done" Exactly(1) Async;
    CopyStart "copy-start" Exactly(1) Async;
    Cosh "cosh" Exactly(1) Elementwise;
    Cosine "cosine" Exactly(1) Elementwise;
    CountLeadingZeros "count-leading-zeros" Exactly(1) Elementwise;
    CustomCall "custom-call" AtLeast(0) Custom;
    Divide "divide" Exactly(2) Elementwise;
    Domain "domain" Exactly(1) Structure;
    Dot "dot" Exactly(2) Dot;
    DynamicReshape "dynamic-reshape" AtLeast(1) Dynamic;
    DynamicSlice "dynamic-slice" AtLeast(1) Movement;
    DynamicUpdateSlice "dynamic-update-slice" AtLeast(2) Movement;
    Erf "erf" Exactly(1) Elementwise;
    Exponential "exponential" Exactly(1) Elementwise;
    ExponentialMinusOne "exponential-minus-one" Exactly(1) Elementwise;
    Fft "fft" Exactly(1) Transform;
    Floor "floor" Exactly(1) Elementwise;
    Fusion "fusion" AtLeast(0) ControlFlow;
    Gather "gather" Exactly(2) Indexing;
    GetDimensionSize "get-dimension-size" Exactly(1) Dynamic;
    GetTupleElement "get-tuple-element" Exactly(1) Structure;
    Imag "imag" Exactly(1) Elementwise;
    Infeed "infeed" Exactly(1) Token;
    Iota "iota" Exactly(0) Movement;
    IsFinite "is-finite" Exactly(1) Elementwise;
    Log "log" Exactly(1) Elementwise;
    LogPlusOne "log-plus-one" Exactly(1) Elementwise;
    Logistic "logistic" Exactly(1) Elementwise;
    Map "map" AtLeast(1) ControlFlow;
    Maximum "maximum" Exactly(2) Elementwise;
    Minimum "minimum" Exactly(2) Elementwise;
    Mulhi "mulhi" Exactly(2) Elementwise;
    Multiply "multiply" Exactly(2) Elementwise;
    Negate "negate" Exactly(1) Elementwise;
    Not "not" Exactly(1) Elementwise;
    OptBarrier "opt-barrier" Exactly(1) Structure;
    Or "or" Exactly(2) Elementwise;
    Outfeed "outfeed" Exactly(2) Token;
    Pad "pad" Exactly(2) Movement;
    Parameter "parameter" Exactly(0) Structure;
    PartitionId "partition-id" Exactly(0) Collective;
    Popcnt "popcnt" Exactly(1) Elementwise;
    Power "power" Exactly(2) Elementwise;
    RaggedAllToAll "ragged-all-to-all" Exactly(6) Collective;
    RaggedDot "ragged-dot" Exactly(3) Dot;
    Real "real" Exactly(1) Elementwise;
    Recv "recv" Exactly(1) Token;
    RecvDone "recv-done" Exactly(1) Token;
    Reduce "reduce" AtLeast(2) Reduction;
    ReducePrecision "reduce-precision" Exactly(1) Elementwise;
    ReduceScatter "reduce-scatter" AtLeast(0) Collective;
    ReduceWindow "reduce-window" AtLeast(2) Window;
    Remainder "remainder" Exactly(2) Elementwise;
    ReplicaId "replica-id" Exactly(0) Collective;
    Reshape "reshape" Exactly(1) Movement;
    Reverse "reverse" Exactly(1) Movement;
    Rng "rng" AtLeast(0) Random;
    RngBitGenerator "rng-bit-generator" Exactly(1) Random;
    RngGetAndUpdateState "rng-get-and-update-state" Exactly(0) Random;
    RoundNearestAfz "round-nearest-afz" Exactly(1) Elementwise;
    RoundNearestEven "round-nearest-even" Exactly(1) Elementwise;
    Rsqrt "rsqrt" Exactly(1) Elementwise;
    ScaledDot "scaled-dot" Exactly(4) Dot;
    Scan "scan" AtLeast(0) Reduction;
    Scatter "scatter" AtLeast(3) Indexing;
    Select "select" Exactly(3) Elementwise;
    SelectAndScatter "select-and-scatter" Exactly(3) Window;
    Send "send" Exactly(2) Token;
    SendDone "send-done" Exactly(1) Token;
    SetDimensionSize "set-dimension-size" Exactly(2) Dynamic;
    ShiftLeft "shift-left" Exactly(2) Elementwise;
    ShiftRightArithmetic "shift-right-arithmetic" Exactly(2) Elementwise;
    ShiftRightLogical "shift-right-logical" Exactly(2) Elementwise;
    /// Rotates or permutes elements along `dimensions`: `mode=rotate, shifts={1}` or
    /// `mode=permute, indices=s32[4] {3, 1, 0, 2}`.
    ///
    /// Not implemented, only rejected by name. The opcode has been in XLA's sources since the summer of 2026 and still
    /// changes. No released XLA reads it (jaxlib 0.10.2: "Unknown opcode"), so there is no reference to check an
    /// implementation against.
    Shuffle "shuffle" Exactly(1) Movement;
    Sign "sign" Exactly(1) Elementwise;
    Sine "sine" Exactly(1) Elementwise;
    Sinh "sinh" Exactly(1) Elementwise;
    Slice "slice" Exactly(1) Movement;
    Sort "sort" AtLeast(1) Sorting;
    Sqrt "sqrt" Exactly(1) Elementwise;
    StochasticConvert "stochastic-convert" Exactly(2) Random;
    Subtract "subtract" Exactly(2) Elementwise;
    Tan "tan" Exactly(1) Elementwise;
    Tanh "tanh" Exactly(1) Elementwise;
    TopK "topk" Exactly(1) Sorting;
    Transpose "transpose" Exactly(1) Movement;
    TriangularSolve "triangular-solve" Exactly(2) Linalg;
    Tuple "tuple" AtLeast(0) Structure;
    While "while" Exactly(1) ControlFlow;
    Xor "xor" Exactly(2) Elementwise;
}

impl std::fmt::Display for Opcode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
