//! Fused emission: computes any element of any fusible operation at an index, so that a fusion becomes one loop nest
//! without intermediate buffers.
//!
//! ```text
//! kernel.rs     interface of a kernel function              source.rs    source of a kernel's code
//! support.rs    operations that can be emitted              strategy/    the list of code generation strategies
//! kernel_plan/  kinds of kernels: work of a GPU as one or several launches
//!   core/       value of an instruction at an index, by family: elementwise, movement, gather, window, reduce
//!   loops/      indices as affine expressions, loop plans of kernels, nest levels with open basic blocks
//!   sequential/ in order along some dimensions, independent along the others: scan, scatter, sorts, columns
//!               scalar_loop: a whole loop of scalar steps with its state in registers
//!   contraction/ dots and convolutions as GEMMs; on CPUs, register-blocked tiles of accumulators
//!   vector/     CPUs with vectors: blocks transposed in registers, column reductions, rows kept in the cache, FFTs
//!   simt/       targets with threads
//!     elementwise       one thread per few neighbouring elements
//!     row_reduce        one thread group per row: reductions, softmax, layer norm
//!     load_batch        loops of a thread group with several loads in flight
//!     register_row      rows that stay in registers from one reduction to the next
//!     matmul/           one block per tile of a dot or convolution; memory-bound skinny ones; split-K;
//!                       alternatives: other tile sizes, to be measured
//!     attention/        one block per tile of queries, looping over all keys and values; memory-bound decoding of few
//!                       queries
//!     transpose         one block per tile of two loops, through shared memory
//!     pipeline          stages of shared memory for TMA and wgmma: the frame of warp-specialized kernels
//!     radix/            radix sorts; sort: merge sorts
//!     scan/, top_k/, scatter/, small_matrix, random_counter
//!     block_loop/       one block for a whole loop of small steps
//! ```
//!
//! Code is placed at the outermost level that its index allows. Values are cached by instruction and index, so that a
//! value with two consumers is computed once.

mod analysis;
pub(crate) mod contraction;
mod core;
mod emit;
mod emitter;
mod kernel;
mod kernel_plan;
pub mod loops;
mod mode;
mod overwrite_check;
mod results;
pub(crate) mod scatter_plan;
mod sequential;
pub(crate) mod simt;
mod source;
mod strategy;
mod support;
pub(crate) mod tuning;
mod value;
pub(crate) mod vector;

pub use contraction::groups::has_dot_instruction;
pub use emit::emit_kernel;
pub use kernel::Kernel;
pub use kernel_plan::KernelPlan;
pub use kernel_plan::code::{Identity, KernelCode, KernelFunction};
pub use kernel_plan::command::{PlanArgument, PlanCommand};
pub use kernel_plan::kinds::{KERNEL_KINDS, KernelKind};
pub use kernel_plan::launch::LaunchPlan;
pub use kernel_plan::single::SingleKernel;
pub use overwrite_check::check_overwrites;
pub use scatter_plan::ScatterPlan;
pub use simt::attention::backward_plan::ATTENTION_BACKWARD_HEADS;
pub use simt::attention::decode::plan::{ATTENTION_DECODE_QUERIES, AttentionDecode, AttentionPhase};
pub use simt::attention::plan::{ATTENTION_HEADS, ATTENTION_ROWS};
pub use simt::block_loop::phase::{BlockPhase, BlockRounds, PhaseWork, Unfit};
pub use simt::block_loop::plan::BlockLoop;
pub use simt::matmul::alternatives::{MatmulAlternatives, TiledMatmul};
pub use simt::matmul::split_k::{SplitK, SplitKPhase};
pub use simt::radix::plan::{RadixPhase, RadixSortPlan};
pub use simt::scan::plan::{ScanPhase, ScanPlan};
pub use simt::scatter::plan::{ScatterPhase, ThreadedScatter};
pub use simt::small_matrix::SmallMatrixPlan;
pub use simt::sort::{SortPhase, SortPlan};
pub use simt::top_k::plan::{TopKPhase, TopKPlan};
pub use source::{KernelSource, KernelTable, Overwrite, ScalarLoop, ScalarPlace, ScalarRounds, ScalarStep};
pub use strategy::list::strategies;
pub use support::{is_fusible, is_kernel_root, is_scalar_computation};
pub use vector::fft::has_fft_kernel;
