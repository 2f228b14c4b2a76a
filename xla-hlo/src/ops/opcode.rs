//! The op table: every opcode that HLO text knows, with its arity and whether its family is here.

/// How many operands an operation takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arity {
    /// Exactly so many.
    Exactly(usize),
    /// At least so many.
    AtLeast(usize),
}

macro_rules! opcodes {
    ($($variant:ident $name:literal $arity:ident($n:literal) $family:ident;)*) => {
        /// The name of an operation in HLO text.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[allow(missing_docs, reason = "each variant is the opcode of its name")]
        pub enum Opcode { $($variant,)* }

        impl Opcode {
            /// Every opcode, in alphabetical order of the names.
            pub const ALL: &[Opcode] = &[$(Opcode::$variant,)*];

            /// The name in HLO text.
            pub const fn name(self) -> &'static str {
                match self { $(Opcode::$variant => $name,)* }
            }

            /// How many operands it takes.
            pub const fn arity(self) -> Arity {
                match self { $(Opcode::$variant => Arity::$arity($n),)* }
            }

            /// The folder of `ops` that has it, or `None` for operations that HLO has and this crate has not.
            pub const fn family(self) -> Option<Family> {
                match self { $(Opcode::$variant => opcodes!(@family $family),)* }
            }

            /// The opcode of that name.
            pub fn from_name(name: &str) -> Option<Opcode> {
                match name { $($name => Some(Opcode::$variant),)* _ => None }
            }
        }
    };
    (@family Later) => { None };
    (@family $family:ident) => { Some(Family::$family) };
}

/// The operation families, one folder each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Family {
    /// Parameters, constants, tuples.
    Structure,
    /// One element in, one element out.
    Elementwise,
    /// Elements change place, not value.
    Movement,
    /// Contractions.
    Dot,
    /// Folds over dimensions.
    Reduction,
    /// Folds over sliding windows.
    Window,
    /// Calls, loops, branches, fusions.
    ControlFlow,
    /// Random bits.
    Random,
    /// Gather and scatter.
    Indexing,
}

opcodes! {
    Abs "abs" Exactly(1) Elementwise;
    Acos "acos" Exactly(1) Elementwise;
    Acosh "acosh" Exactly(1) Elementwise;
    Add "add" Exactly(2) Elementwise;
    AddDependency "add-dependency" Exactly(2) Later;
    AfterAll "after-all" AtLeast(0) Later;
    AllGather "all-gather" AtLeast(0) Later;
    AllGatherDone "all-gather-done" Exactly(1) Later;
    AllGatherStart "all-gather-start" AtLeast(0) Later;
    AllReduce "all-reduce" AtLeast(0) Later;
    AllReduceDone "all-reduce-done" Exactly(1) Later;
    AllReduceStart "all-reduce-start" AtLeast(0) Later;
    AllToAll "all-to-all" AtLeast(0) Later;
    And "and" Exactly(2) Elementwise;
    Asin "asin" Exactly(1) Elementwise;
    Asinh "asinh" Exactly(1) Elementwise;
    AsyncDone "async-done" Exactly(1) Later;
    AsyncStart "async-start" AtLeast(0) Later;
    AsyncUpdate "async-update" Exactly(1) Later;
    Atan "atan" Exactly(1) Elementwise;
    Atan2 "atan2" Exactly(2) Elementwise;
    Atanh "atanh" Exactly(1) Elementwise;
    BatchNormGrad "batch-norm-grad" Exactly(5) Later;
    BatchNormInference "batch-norm-inference" Exactly(5) Later;
    BatchNormTraining "batch-norm-training" Exactly(3) Later;
    Bitcast "bitcast" Exactly(1) Movement;
    BitcastConvert "bitcast-convert" Exactly(1) Elementwise;
    Broadcast "broadcast" Exactly(1) Movement;
    Call "call" AtLeast(0) ControlFlow;
    Cbrt "cbrt" Exactly(1) Elementwise;
    Ceil "ceil" Exactly(1) Elementwise;
    Cholesky "cholesky" Exactly(1) Later;
    Clamp "clamp" Exactly(3) Elementwise;
    CollectiveBroadcast "collective-broadcast" AtLeast(0) Later;
    CollectivePermute "collective-permute" AtLeast(0) Later;
    CollectivePermuteDone "collective-permute-done" Exactly(1) Later;
    CollectivePermuteStart "collective-permute-start" AtLeast(0) Later;
    CollectiveReduce "collective-reduce" AtLeast(0) Later;
    Compare "compare" Exactly(2) Elementwise;
    Complex "complex" Exactly(2) Elementwise;
    Concatenate "concatenate" AtLeast(1) Movement;
    Conditional "conditional" AtLeast(2) ControlFlow;
    Constant "constant" Exactly(0) Structure;
    Convert "convert" Exactly(1) Elementwise;
    Convolution "convolution" Exactly(2) Later;
    Copy "copy" Exactly(1) Movement;
    CopyDone "copy-done" Exactly(1) Later;
    CopyStart "copy-start" Exactly(1) Later;
    Cosh "cosh" Exactly(1) Elementwise;
    Cosine "cosine" Exactly(1) Elementwise;
    CountLeadingZeros "count-leading-zeros" Exactly(1) Elementwise;
    CustomCall "custom-call" AtLeast(0) Later;
    Divide "divide" Exactly(2) Elementwise;
    Domain "domain" Exactly(1) Later;
    Dot "dot" Exactly(2) Dot;
    DynamicReshape "dynamic-reshape" AtLeast(1) Later;
    DynamicSlice "dynamic-slice" AtLeast(1) Movement;
    DynamicUpdateSlice "dynamic-update-slice" AtLeast(2) Movement;
    Erf "erf" Exactly(1) Elementwise;
    Exponential "exponential" Exactly(1) Elementwise;
    ExponentialMinusOne "exponential-minus-one" Exactly(1) Elementwise;
    Fft "fft" Exactly(1) Later;
    Floor "floor" Exactly(1) Elementwise;
    Fusion "fusion" AtLeast(0) ControlFlow;
    Gather "gather" Exactly(2) Indexing;
    GetDimensionSize "get-dimension-size" Exactly(1) Later;
    GetTupleElement "get-tuple-element" Exactly(1) Structure;
    Imag "imag" Exactly(1) Elementwise;
    Infeed "infeed" Exactly(1) Later;
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
    Outfeed "outfeed" Exactly(2) Later;
    Pad "pad" Exactly(2) Movement;
    Parameter "parameter" Exactly(0) Structure;
    PartitionId "partition-id" Exactly(0) Later;
    Popcnt "popcnt" Exactly(1) Elementwise;
    Power "power" Exactly(2) Elementwise;
    RaggedAllToAll "ragged-all-to-all" Exactly(6) Later;
    RaggedDot "ragged-dot" Exactly(3) Later;
    Real "real" Exactly(1) Elementwise;
    Recv "recv" Exactly(1) Later;
    RecvDone "recv-done" Exactly(1) Later;
    Reduce "reduce" AtLeast(2) Reduction;
    ReducePrecision "reduce-precision" Exactly(1) Elementwise;
    ReduceScatter "reduce-scatter" AtLeast(0) Later;
    ReduceWindow "reduce-window" AtLeast(2) Window;
    Remainder "remainder" Exactly(2) Elementwise;
    ReplicaId "replica-id" Exactly(0) Later;
    Reshape "reshape" Exactly(1) Movement;
    Reverse "reverse" Exactly(1) Movement;
    Rng "rng" AtLeast(0) Later;
    RngBitGenerator "rng-bit-generator" Exactly(1) Random;
    RngGetAndUpdateState "rng-get-and-update-state" Exactly(0) Later;
    RoundNearestAfz "round-nearest-afz" Exactly(1) Elementwise;
    RoundNearestEven "round-nearest-even" Exactly(1) Elementwise;
    Rsqrt "rsqrt" Exactly(1) Elementwise;
    ScaledDot "scaled-dot" Exactly(4) Later;
    Scan "scan" AtLeast(0) Later;
    Scatter "scatter" AtLeast(3) Indexing;
    Select "select" Exactly(3) Elementwise;
    SelectAndScatter "select-and-scatter" Exactly(3) Window;
    Send "send" Exactly(2) Later;
    SendDone "send-done" Exactly(1) Later;
    SetDimensionSize "set-dimension-size" Exactly(2) Later;
    ShiftLeft "shift-left" Exactly(2) Elementwise;
    ShiftRightArithmetic "shift-right-arithmetic" Exactly(2) Elementwise;
    ShiftRightLogical "shift-right-logical" Exactly(2) Elementwise;
    Shuffle "shuffle" AtLeast(1) Later;
    Sign "sign" Exactly(1) Elementwise;
    Sine "sine" Exactly(1) Elementwise;
    Sinh "sinh" Exactly(1) Elementwise;
    Slice "slice" Exactly(1) Movement;
    Sort "sort" AtLeast(1) Later;
    Sqrt "sqrt" Exactly(1) Elementwise;
    StochasticConvert "stochastic-convert" Exactly(2) Later;
    Subtract "subtract" Exactly(2) Elementwise;
    Tan "tan" Exactly(1) Elementwise;
    Tanh "tanh" Exactly(1) Elementwise;
    TopK "topk" Exactly(1) Later;
    Transpose "transpose" Exactly(1) Movement;
    TriangularSolve "triangular-solve" Exactly(2) Later;
    Tuple "tuple" AtLeast(0) Structure;
    While "while" Exactly(1) ControlFlow;
    Xor "xor" Exactly(2) Elementwise;
}

impl std::fmt::Display for Opcode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
