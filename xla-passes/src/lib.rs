//! Target-independent HLO passes and analyses.
//!
//! Folders, with the stages in execution order:
//!
//! ```text
//! framework/      the pass trait, pipelines, stages, the registry, target profiles, observers, bisection
//! rewrite/        edits that passes share        analysis/   call graph, cost, dataflow, aliasing, trip counts
//!
//! join/           merges the programs of several devices into one program
//! localize/       programs of each device from manual computations over all devices
//!
//! canonicalize/   one form for each meaning      expand/       operations that the target lacks, as other operations
//! simplify/       less work, to a fixpoint       parallelize/  operations split for many threads
//! layout/         an explicit layout per shape   fuse/         loops that a backend compiles as one kernel
//! schedule/       order, copies, memory          buffers/      an offset in an allocation for each value
//!
//! view/           drawings of modules
//! ```
//!
//! [`stages`] has a function for each stage, which returns a [`Pipeline`]. A backend assembles its pipeline from them
//! and adds its own passes. Each pass has its own file. Unless its documentation states otherwise, a rewrite keeps the
//! results of the program bit for bit. Passes that depend on the target query the [`TargetProfile`] that the backend
//! supplies.
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
#[doc(hidden)]
pub mod internals;
pub mod join;
mod layout;
mod localize;
mod parallelize;
mod program_form;
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
pub use framework::report::{PassRun, PipelineReport};
pub use framework::statistics::{PassStatistics, PipelineStatistics, RewriteCounts};
pub use framework::{bisect, explain, reference, registry, report, stages};
pub use fuse::{
    AliasRowOutputs, FoldKernels, Fuse, FuseAttention, FuseEpilogues, FuseOutputs, FuseRows, FuseScores,
    ReshapeToBitcast,
};
pub use layout::{NormalizeLayouts, TileLayouts};
pub use localize::{Localized, localize, localize_by_gathers};
pub use parallelize::{SplitReductions, SplitWindows};
pub use program_form::{GlobalCause, GlobalValues, ProgramForm, program_form};
pub use schedule::{AssignMemorySpaces, InsertCopies, Rematerialize, Schedule};
pub use simplify::{
    AnnotateTripCounts, AssignLayouts, CommonSubexpressions, DropZeroSized, FoldConstants, HoistInvariants, MergeDots,
    OrderRightOperands, SimplifyAlgebra, SimplifyConditionals, SimplifyLoops, SimplifySorts, SinkSlices,
    SolveCountingLoops, UnrollLoops, rule_names,
};
