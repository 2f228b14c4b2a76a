//! The operations, one folder a family: attributes, shape rule, attributes in text and messages, evaluator together.

pub mod async_;
mod checks;
pub mod collective;
mod combiner;
pub mod control_flow;
pub mod convolution;
pub mod custom;
pub mod dot;
pub mod dynamic;
pub mod elementwise;
pub mod indexing;
pub mod linalg;
pub mod movement;
pub mod normalization;
mod opcode;
mod pairs;
mod products;
pub mod random;
pub mod reduction;
mod rules;
pub mod sorting;
pub mod structure;
#[cfg(test)]
mod testing;
pub mod token;
pub mod transform;
pub mod window;

pub use async_::{Async, AsyncStart};
pub use collective::{
    AllGather, AllReduce, Collective, CollectiveDone, CollectivePermute, GroupMode, OnOneDevice, Participants,
    ReplicaGroups,
};
pub use combiner::{combiner_identity, simple_combiner};
pub use control_flow::{Call, Conditional, Fusion, FusionKind, Map, OutputOperandAlias, While};
pub use convolution::{Convolution, ConvolutionDims, ConvolutionKind, Sparsity, SparsityConfig};
pub use custom::{
    CustomCall, CustomCallApi, CustomCallContext, CustomCallHandler, CustomCallOperation, CustomCallRegistry,
    CustomCallSchedule, DimLabels, FfiAttributes, FfiValue, PaddingType,
};
pub use dot::{Dot, DotAlgorithm, DotDims, Precision, RaggedDot, RaggedMode, ScaledDot};
pub use dynamic::Dynamic;
pub use elementwise::{
    Binary, BinaryOp, BitcastConvert, Clamp, Compare, CompareDirection, CompareType, Convert, ElementFunction,
    ReducePrecision, ResultAccuracy, Select, Unary, UnaryOp,
};
pub use indexing::{Gather, Scatter};
pub use linalg::{Cholesky, TransposeKind, TriangularSolve};
pub use movement::{
    Bitcast, Broadcast, Concatenate, Copy, DynamicSlice, DynamicUpdateSlice, Iota, Pad, PadDim, Reshape, Reverse,
    Slice, SliceRange, Transpose,
};
pub use normalization::{BatchNorm, BatchNormKind, Epsilon};
pub use opcode::{Arity, Family, Opcode};
pub use random::{Rng, RngAlgorithm, RngBitGenerator, RngDistribution, RngGetAndUpdateState, StochasticConvert};
pub use reduction::{Reduce, Scan};
pub use rules::{OpRules, ReadAttributes, ShapeContext};
pub use sorting::{Sort, TopK};
pub use structure::{Constant, Domain, GetTupleElement, OptBarrier, Parameter, Tuple};
pub use token::{AddDependency, AfterAll, Channel, Transfer};
pub use transform::{Fft, FftType};
pub use window::{Cumulative, ReduceWindow, SelectAndScatter, Window, WindowDim};

use crate::proto::{ProtoAttributes, ProtoReader, ProtoWriter};
use crate::text::AttributeReader;
use crate::{CompId, Error, Result};

macro_rules! operations {
    ($($(#[$doc:meta])* $variant:ident: $($opcode:ident)|+;)*) => {
        /// An operation with exactly its own attributes.
        ///
        /// Matches that must handle everything have no wildcard arm, so that a new operation lists what must learn of
        /// it.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Op { $($(#[$doc])* $variant($variant),)* }

        impl Op {
            /// The rules of this operation.
            pub fn rules(&self) -> &dyn OpRules {
                match self { $(Op::$variant(op) => op,)* }
            }

            fn rules_mut(&mut self) -> &mut dyn OpRules {
                match self { $(Op::$variant(op) => op,)* }
            }

            /// Reads an operation's own attributes. The error names operations that are not here yet.
            pub fn read(opcode: Opcode, reader: &mut AttributeReader<'_>) -> Result<Op> {
                match opcode {
                    $($(Opcode::$opcode)|+ => $variant::read(opcode, reader).map(Op::$variant),)*
                    later => Err(Error::unimplemented(format!("operation {later} is not implemented yet"))),
                }
            }

            /// Reads an operation's own attributes from its message; as [`Op::read`] otherwise.
            pub fn read_proto(opcode: Opcode, reader: &mut ProtoReader<'_>) -> Result<Op> {
                match opcode {
                    $($(Opcode::$opcode)|+ => $variant::read_proto(opcode, reader).map(Op::$variant),)*
                    later => Err(Error::unimplemented(format!("operation {later} is not implemented yet"))),
                }
            }

            /// Writes the operation's own attributes into its message.
            pub fn write_proto(&self, writer: &mut ProtoWriter<'_>) -> Result<()> {
                match self { $(Op::$variant(op) => op.write_proto(writer),)* }
            }
        }

        impl Opcode {
            /// Whether this crate has the operation; text that uses another is refused by name.
            pub const fn is_implemented(self) -> bool {
                matches!(self, $($(Opcode::$opcode)|+)|*)
            }
        }

        $(impl From<$variant> for Op {
            fn from(op: $variant) -> Op {
                Op::$variant(op)
            }
        })*
    };
}

operations! {
    /// An input of the computation.
    Parameter: Parameter;
    /// A value known when compiling.
    Constant: Constant;
    /// Values put together.
    Tuple: Tuple;
    /// One value of a tuple.
    GetTupleElement: GetTupleElement;
    /// Identity that blocks motion across it.
    OptBarrier: OptBarrier;
    /// A function of one element.
    Unary: Abs | Acos | Acosh | Asin | Asinh | Atan | Atanh | Cbrt | Ceil | Cosh | Cosine | CountLeadingZeros | Erf
        | Exponential | ExponentialMinusOne | Floor | Imag | IsFinite | Log | LogPlusOne | Logistic | Negate | Not
        | Popcnt | Real | RoundNearestAfz | RoundNearestEven | Rsqrt | Sign | Sine | Sinh | Sqrt | Tan | Tanh;
    /// A function of two elements.
    Binary: Add | And | Atan2 | Complex | Divide | Maximum | Minimum | Mulhi | Multiply | Or | Power | Remainder
        | ShiftLeft | ShiftRightArithmetic | ShiftRightLogical | Subtract | Xor;
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
    /// A strided box.
    Slice: Slice;
    /// Elements added around and between.
    Pad: Pad;
    /// Arrays one after the other.
    Concatenate: Concatenate;
    /// Dimensions backwards.
    Reverse: Reverse;
    /// The index along a dimension.
    Iota: Iota;
    /// A box at a place known when running.
    DynamicSlice: DynamicSlice;
    /// A box written at a place known when running.
    DynamicUpdateSlice: DynamicUpdateSlice;
    /// The same value in another buffer, perhaps in another layout.
    Copy: Copy;
    /// The same bytes under another shape.
    Bitcast: Bitcast;
    /// Contraction of two arrays.
    Dot: Dot;
    /// Contraction of two arrays, one of which falls into groups of sizes known when running.
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
    /// Boxes read at indexed places.
    Gather: Gather;
    /// Boxes written at indexed places.
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
    /// An operation begun, gone on with or awaited.
    Async: AsyncDone | AsyncStart | AsyncUpdate | CopyDone | CopyStart;
    /// Sizes known when running.
    Dynamic: DynamicReshape | GetDimensionSize | SetDimensionSize;
    /// What devices do together.
    Collective: AllGather | AllGatherDone | AllGatherStart | AllReduce | AllReduceDone | AllReduceStart | AllToAll
        | CollectiveBroadcast | CollectivePermute | CollectivePermuteDone | CollectivePermuteStart | CollectiveReduce
        | PartitionId | RaggedAllToAll | ReduceScatter | ReplicaId;
    /// Arrays sorted together.
    Sort: Sort;
    /// The greatest or least elements of each row.
    TopK: TopK;
}

impl Op {
    /// The opcode, as text spells it.
    pub fn opcode(&self) -> Opcode {
        self.rules().opcode()
    }

    /// Computations named by attributes, in the order of the text.
    pub fn called_computations(&self) -> Vec<CompId> {
        self.rules().called_computations()
    }

    /// Replaces computations named by attributes; tells whether one changed.
    pub fn map_called_computations(&mut self, f: &mut dyn FnMut(CompId) -> CompId) -> bool {
        let mut changed = false;
        self.rules_mut().visit_called_computations(&mut |id| {
            let new = f(*id);
            changed |= new != *id;
            *id = new;
        });
        changed
    }
}
