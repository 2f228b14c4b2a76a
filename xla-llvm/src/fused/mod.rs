//! Fused emission: any element of any fusible operation at an index, so that a fusion is one loop nest without buffers.
//!
//! ```text
//! kernel.rs     a fusion (or one operation) as a function: which loops, what is stored
//!   core/       the value of an instruction at an index, by family: elementwise, movement, gather, window, reduce
//!   loops/      indices as affine expressions, the loops of a kernel, levels with open blocks
//!   sequential/ along some dimensions in order, independent along the others: scan, scatter, sorts, columns
//!               scalar_loop: a whole loop of scalar steps, its state in registers
//!   contraction/ dots and convolutions as matmuls; on processors with vectors, tiles of sums in registers
//!   vector/     processors with vectors: blocks transposed on the way in, columns, rows kept in the cache
//!   simt/       targets with threads
//!     elementwise       one thread of many for each few neighbouring elements
//!     row_reduce        one group of threads for each row: reductions, softmax, layer norm
//!     group_turns       loops of a group, with several loads under way
//!     row_turns         rows that stay in registers from one reduction to the next
//!     matmul/           a block for each tile of a dot or a convolution; skinny ones at the pace of memory; split-K;
//!                       alternatives: other tiles, to be measured
//!     attention/        a block for each tile of queries, which goes through all keys and values; few queries at the
//!                       pace of memory
//!     transpose         a block for each tile of two loops, in shared memory
//!     radix/            sorts by the digits of keys; sort: by merging
//!     scan/, top_k/, scatter/
//!     block_loop/       a block for a whole loop of small steps
//! source.rs     where a kernel's code comes from          support.rs   what can be emitted, told before
//! ```
//!
//! Code is placed at the outermost level that its index allows; values are cached by instruction and index, so that a
//! value of two consumers is computed once.

mod analysis;
mod contraction;
mod core;
mod emit;
mod emitter;
mod kernel;
pub mod loops;
mod mode;
mod overwrite_check;
mod results;
mod scatter_plan;
mod sequential;
mod simt;
mod source;
mod strategy;
mod support;
mod tuning;
mod value;
mod vector;

pub use emit::emit_kernel;
pub use kernel::Kernel;
pub use overwrite_check::check_overwrites;
pub use scatter_plan::ScatterPlan;
pub use simt::attention::decode::plan::{ATTENTION_DECODE_QUERIES, AttentionDecode, AttentionPhase};
pub use simt::attention::plan::{ATTENTION_HEADS, ATTENTION_ROWS};
pub use simt::attention::sum_plan::SCORE_SUM_HEADS;
pub use simt::block_loop::phase::{BlockPhase, BlockRounds, PhaseWork, Unfit};
pub use simt::block_loop::plan::BlockLoop;
pub use simt::matmul::alternatives::{MatmulAlternatives, TiledMatmul, WholeSums};
pub use simt::matmul::split_k::{SplitK, SplitKPhase};
pub use simt::radix::plan::{RadixPhase, RadixSortPlan};
pub use simt::scan::plan::{ScanPhase, ScanPlan};
pub use simt::scatter::plan::{ScatterPhase, ThreadedScatter};
pub use simt::small_matrix::SmallMatrixPlan;
pub use simt::sort::{SortPhase, SortPlan};
pub use simt::top_k::plan::{TopKPhase, TopKPlan};
pub use source::{KernelSource, KernelTable, Overwrite, ScalarLoop, ScalarPlace, ScalarRounds, ScalarStep};
pub use strategy::STRATEGIES;
pub use support::{is_fusible, is_kernel_root, is_scalar_computation};
