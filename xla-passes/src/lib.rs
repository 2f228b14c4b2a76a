//! Target-independent HLO passes and analyses.
//!
//! The folders, the stages in the order in which they run:
//!
//! ```text
//! framework/      the pass trait, pipelines, stages, the registry, target profiles, observers, bisection
//! rewrite/        edits that passes share        analysis/   call graph, cost, dataflow, aliasing, trip counts
//!
//! join/           programs for several devices as programs for one
//!
//! canonicalize/   one form for one meaning       expand/     operations that the target lacks, in terms of others
//! simplify/       less work, to a fixed point    parallelize/  operations in parts for many threads
//! layout/         every shape states its layout  fuse/       loops that a backend compiles as one kernel
//! schedule/       order, copies, memory          buffers/    an offset in an allocation for every value
//!
//! view/           modules as drawings
//! ```
//!
//! [`stages`] has each of these as a function that returns a [`Pipeline`]; a backend puts them together and states its
//! differences. One file a pass; each rewrite keeps the results of the program bit for bit unless its own docs say
//! otherwise. Passes that depend on the target ask the [`TargetProfile`] that the backend hands in.
//!
//! ```
//! use xla_passes::{PassContext, TargetProfile, stages};
//!
//! # fn optimise(module: &mut xla_hlo::Module) -> xla_hlo::Result<()> {
//! let profile = TargetProfile::generic();
//! let report = stages::standard(&profile).run(module, &PassContext::new(&profile))?;
//! println!("{report}");
//! # Ok(()) }
//! ```

#![warn(missing_docs)]

pub mod analysis;
pub mod buffers;
pub mod rewrite;
pub mod schedule;
pub mod view;

mod canonicalize;
mod expand;
mod framework;
mod fuse;
pub mod join;
mod layout;
mod parallelize;
mod simplify;

pub use analysis::trip_count::trip_count;
pub use canonicalize::{
    DeadCode, ExpandAsync, ExpandCollectives, ExpandCustomCalls, FlattenCallGraph, InlineCalls, InlineMaps, PadDynamic,
    SimplifyTokens, SimplifyTuples,
};
pub use expand::{
    AllowTf32, ExpandBatchNorms, ExpandBitGenerators, ExpandBitcastConverts, ExpandCholesky, ExpandClamps, ExpandFfts,
    ExpandFunctions, ExpandRaggedDots, ExpandRng, ExpandScaledDots, ExpandScans, ExpandSelectAndScatter,
    ExpandStochasticConverts, ExpandTopK, ExpandTriangularSolves, NormalizeFloats, UnifyConvolutionTypes,
    UnifyDotTypes, WidenLinalg,
};
pub use framework::explain::{FusionDecision, FusionReason};
pub use framework::fusion_recorder::FusionRecorder;
pub use framework::observer::{PassEvent, PassObserver};
pub use framework::pass::{Changed, Pass, PassContext, PassOptions};
pub use framework::pipeline::Pipeline;
pub use framework::profile::{
    AttentionProfile, ConvolutionOrder, DotProfile, EpilogueProfile, FilterOrder, FloatProfile, FusionProfile,
    HeadSizes, LayoutProfile, MemorySpaceProfile, TargetProfile, TileProfile, TopKProfile,
};
pub use framework::report::{PassRun, PassTotal, PipelineReport};
pub use framework::{bisect, explain, registry, report, stages};
pub use fuse::{
    AliasRowOutputs, FoldKernels, Fuse, FuseAttention, FuseEpilogues, FuseOutputs, FuseRows, FuseScores,
    ReshapeToBitcast,
};
pub use layout::{NormalizeLayouts, TileLayouts};
pub use parallelize::{SplitReductions, SplitWindows};
pub use schedule::{AssignMemorySpaces, InsertCopies, Rematerialize, Schedule};
pub use simplify::{
    AnnotateTripCounts, AssignLayouts, CommonSubexpressions, DropZeroSized, FoldConstants, HoistInvariants, MergeDots,
    OrderRightOperands, SimplifyAlgebra, SimplifyConditionals, SimplifyLoops, SimplifySorts, SinkSlices, UnrollLoops,
    rule_names,
};
