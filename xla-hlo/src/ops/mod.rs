//! Operations, one folder for each family: attributes, shape rule, text and protobuf forms, evaluator.

pub mod async_;
mod checks;
pub mod collective;
mod combiner;
pub mod control_flow;
pub mod convolution;
pub mod custom;
mod dispatch;
pub mod dot;
mod dot_arithmetic;
pub mod dynamic;
pub mod elementwise;
pub mod indexing;
pub mod linalg;
mod list;
pub mod movement;
pub mod normalization;
mod opcode;
mod pairs;
pub mod random;
pub mod reduction;
mod rules;
mod shape_context;
pub mod sorting;
pub mod structure;
pub mod token;
mod traits;
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
    CallState, CallStates, CustomCall, CustomCallApi, CustomCallContext, CustomCallHandler, CustomCallOperation,
    CustomCallRegistry, CustomCallSchedule, DimLabels, FfiAttributes, FfiValue, OnMemory, PaddingType, RawCall,
    RawCustomCall, RawOperand, RawResult, RunContext,
};
pub use dot::{Dot, DotAlgorithm, DotDims, DotOperandDims, Precision, RaggedDot, RaggedMode, ScaledDot};
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
pub use rules::{OpRules, OpSharding, ReadAttributes};
pub use shape_context::ShapeContext;
pub use sorting::{Sort, TopK};
pub use structure::{Constant, Domain, GetTupleElement, OptBarrier, Parameter, Tuple};
pub use token::{AddDependency, AfterAll, Channel, Transfer};
pub use traits::{CallContext, OpTrait};
pub use transform::{Fft, FftType};
pub use window::{Cumulative, ReduceWindow, SelectAndScatter, Window, WindowDim};

use list::for_operations;

macro_rules! define {
    ($($(#[$doc:meta])* $variant:ident [$($trait:ident)*] $(calls $context:ident)?: $($opcode:ident)|+;)*) => {
        /// An operation with its own attributes.
        ///
        /// Exhaustive matches over this type have no wildcard arm, so that the compiler lists every place that must
        /// handle a new operation.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Op { $($(#[$doc])* $variant($variant),)* }

        $(impl From<$variant> for Op {
            fn from(op: $variant) -> Op {
                Op::$variant(op)
            }
        })*
    };
}

for_operations!(define);
