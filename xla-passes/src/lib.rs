//! Target-independent HLO passes and analyses.
//!
//! ```text
//! Module ─ canonicalize ─ expand ─ simplify ─ layout ─ fuse ─ schedule ─ Module
//!            │ one meaning,   │ fewer       │ less work, │ every shape   │ loops that  │ order, copies,
//!            │ one form       │ operations  │ to a fixed │ says its own  │ a backend   │ buffers
//!            │                │             │ point      │ layout        │ compiles    │
//! ```
//!
//! [`stages`] has each of these as a function that gives a [`Pipeline`]; a backend puts them together and states its
//! differences. One file a pass; each rewrite keeps the meaning of the program bit by bit but for what its own docs
//! say. What needs the target asks the [`TargetProfile`] that the backend hands in.
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

pub mod alias;
pub mod analysis;
pub mod bisect;
pub mod buffers;
pub mod copy_insertion;
pub mod dump;
pub mod explain;
pub mod facts;
pub mod graph;
mod pass;
mod pipeline;
mod profile;
pub mod registry;
pub mod report;
pub mod schedule;
pub mod stages;
pub mod view;

mod algebra;
mod allow_tf32;
mod chain;
mod conditional;
mod constant_fold;
mod convolution_types;
mod cse;
mod dead_code;
mod drop_dependencies;
mod equal_state;
mod expand;
mod expand_async;
mod expand_collectives;
mod flatten;
mod fuse;
mod hoist_invariants;
mod inline;
mod insert;
mod layout;
mod loop_state;
mod loops;
mod map_inline;
mod memory_spaces;
mod merge_dots;
mod normalize_floats;
mod pad_dynamic;
mod rematerialize;
mod sink_slices;
mod sort_simplify;
mod split_folds;
mod split_windows;
mod trip_count;
mod tuple_simplify;
mod unroll;
mod widen;
mod widen_linalg;
mod zero_sized;

pub use algebra::{SimplifyAlgebra, rule_names};
pub use allow_tf32::AllowTf32;
pub use conditional::SimplifyConditionals;
pub use constant_fold::FoldConstants;
pub use convolution_types::UnifyConvolutionTypes;
pub use copy_insertion::InsertCopies;
pub use cse::CommonSubexpressions;
pub use dead_code::DeadCode;
pub use drop_dependencies::DropDependencies;
pub use dump::{PassEvent, PassObserver};
pub use expand::{
    ExpandBatchNorms, ExpandBitGenerators, ExpandBitcastConverts, ExpandCholesky, ExpandClamps, ExpandCustomCalls,
    ExpandFfts, ExpandFunctions, ExpandRaggedDots, ExpandRng, ExpandScaledDots, ExpandScans, ExpandSelectAndScatter,
    ExpandStochasticConverts, ExpandTopK, ExpandTriangularSolves,
};
pub use expand_async::ExpandAsync;
pub use expand_collectives::ExpandCollectives;
pub use explain::{FusionDecision, FusionReason, FusionRecorder};
pub use flatten::FlattenCallGraph;
pub use fuse::{FoldKernels, FreeReshapes, Fuse, FuseEpilogues, FuseOutputs, FuseRows, ShareRows};
pub use hoist_invariants::HoistInvariants;
pub use inline::InlineCalls;
pub use layout::{AssignLayouts, NormalizeLayouts, TileLayouts};
pub use loop_state::SimplifyLoops;
pub use map_inline::InlineMaps;
pub use memory_spaces::AssignMemorySpaces;
pub use merge_dots::MergeDots;
pub use normalize_floats::NormalizeFloats;
pub use pad_dynamic::PadDynamic;
pub use pass::{Changed, Pass, PassContext, PassOptions};
pub use pipeline::Pipeline;
pub use profile::{
    ConvolutionOrder, DotProfile, EpilogueProfile, FloatProfile, FusionProfile, LayoutProfile, MemorySpaceProfile,
    TargetProfile, TileProfile, TopKProfile,
};
pub use rematerialize::Rematerialize;
pub use report::{PassRun, PassTotal, PipelineReport};
pub use schedule::Schedule;
pub use sink_slices::SinkSlices;
pub use sort_simplify::SimplifySorts;
pub use split_folds::SplitFolds;
pub use split_windows::SplitWindows;
pub use trip_count::{AnnotateTripCounts, trip_count};
pub use tuple_simplify::SimplifyTuples;
pub use unroll::UnrollLoops;
pub use widen_linalg::WidenLinalg;
pub use zero_sized::DropZeroSized;
