//! Tuning constants by subject, each with its trade-off.

/// Number of rows (outermost iterations) below which one row is split into several work items.
pub(crate) const FEW_ROWS: u64 = 16;
/// Elements of a work item that is a chunk of a row; a multiple of every lane count.
pub(crate) const CHUNK: u64 = 4096;
/// Number of vector registers for accumulators in a reduction across lanes, so that its steps overlap.
pub(crate) const REDUCE_REGISTERS: u32 = 8;
/// Minimum number of elementary operations per element to emit the body of a loop once, with a mask in all iterations,
/// instead of again for the remainder.
pub(crate) const LARGE_BODY: f64 = 200.0;
/// Maximum number of operands of a concatenation or a sort that are accessed in one loop, with all addresses and
/// conditions in front of it. More of them have loops of their own, or branches that compute addresses and conditions.
pub(crate) const FEW_OPERANDS: usize = 8;
/// Maximum number of array addresses that are all loaded in front of the loops; registers hold most of them.
pub(crate) const FEW_ADDRESSES: usize = 32;

/// Returns `lanes`, a power of two, or the least power of two that is not below `extent` if that is fewer.
pub(crate) fn fitting(lanes: u32, extent: u64) -> u32 {
    u64::from(lanes).min(extent.next_power_of_two()) as u32
}

/// Loops over the operands of a concatenation on a CPU.
pub(crate) mod operand_loops {
    /// Maximum number of rows of the result, of which each operand is a few columns: one cache line of each row stays
    /// in the L2 cache until the next operands have been stored.
    pub const MOST_ROWS: u64 = 4096;
    /// Minimum mean bytes of an operand's columns, a cache line, if there are more rows.
    pub const RUN_BYTES: u64 = 64;
}

/// Loops of scalar steps on a CPU.
pub(crate) mod scalar_loop {
    /// Maximum number of operations in the steps: larger loops compile much more slowly than calls of their kernels.
    pub const MOST_OPERATIONS: usize = 1024;
    /// Maximum number of arrays and elements in memory.
    pub const MOST_PLACES: usize = 128;
}

/// Fourier transforms on a CPU.
pub(crate) mod fft {
    /// Maximum length of a line. The code contains a root of unity per element, or about five complex numbers per
    /// element of a convolution.
    pub const MAX_LENGTH: usize = 1 << 16;
    /// Maximum prime radix, whose butterfly has a quadratic number of operations. Lengths with larger prime factors are
    /// computed as convolutions of at least twice the length.
    pub const MAX_PRIME: usize = 31;
    /// Maximum composite radix: a butterfly of 16 needs twice the vector registers of most processors.
    pub const MAX_COMPOSITE: usize = 16;
    /// Maximum bytes of the buffers for a line per lane: about the size of an L1 cache.
    pub const BLOCK_BYTES: u64 = 64 << 10;
}

/// CPUs with vectors.
pub(crate) mod vector {
    /// Minimum extent of a dimension that is vectorized.
    pub const LEAST_LANE_EXTENT: u64 = 8;
    /// Minimum trip count of a loop that is tiled.
    pub const LEAST_TILED: u64 = 8;
    /// Bytes of accumulators of a block of columns, if one thread computes all columns: each row is read in segments
    /// long enough for full memory bandwidth, and the accumulators stay in the L1 cache.
    pub const ACCUMULATOR_BYTES: u64 = 16 << 10;
    /// Bytes of accumulators of a block of columns, if threads may share the blocks.
    pub const SHARED_ACCUMULATOR_BYTES: u64 = 4 << 10;
    /// Bytes of a cache line, or of half of one.
    pub const CACHE_LINE: usize = 64;
    /// Rows that are reduced per visit of a block: the number of concurrent memory streams.
    pub const ROWS: u64 = 8;
    /// Matrix size in bytes above which the read order matters more than accumulators in registers.
    pub const STREAMED_BYTES: usize = 128 << 10;
    /// Minimum work per element to keep a value instead of recomputing it.
    pub const KEEP_WORK: f64 = 8.0;
    /// Maximum bytes of values that one kernel keeps for its later loops.
    pub const SCRATCH_BYTES: usize = 128 << 10;
    /// Maximum number of arrays of one kernel that are transposed into buffers; others use gathers.
    pub const MOST_BUFFERS: usize = 4;
    /// Maximum side, in elements, of blocks that are transposed in registers.
    pub const LARGEST_BLOCK: u32 = 16;
    /// Minimum side, in elements, of blocks that are transposed in registers.
    pub const SMALLEST_BLOCK: u32 = 4;
    /// Minimum number of rows for column reductions in blocks; fewer rows keep their accumulators in registers.
    pub const LEAST_ROWS: usize = 32;
    /// Minimum number of columns for column reductions in blocks.
    pub const LEAST_COLUMNS: usize = 64;
}

/// Register-blocked contractions.
pub(crate) mod register_tiles {
    use std::ops::RangeInclusive;

    /// Minimum number of multiplications for register tiles.
    pub const LEAST_WORK: u64 = 1 << 13;
    /// Maximum number of vectors in a row of a tile, if the tile has several rows.
    pub const MOST_VECTORS: u64 = 4;
    /// Bytes of scratch memory for a packed block of the right operand's columns, which should stay in the L2 cache.
    pub const BLOCK_BYTES: u64 = 512 << 10;
    /// Length of a block of K: the rows of a tile stay in the L1 cache, many columns stay in L2, and sums are rarely
    /// loaded and stored.
    pub const PART: RangeInclusive<u64> = 192..=512;
    /// Maximum bytes of partial sums that are kept between blocks of K.
    pub const SUMS_BYTES: u64 = 4 << 20;
    /// Maximum size in bytes of an operand that stays in the cache without packing.
    pub const NEAR_BYTES: u64 = 128 << 10;
    /// Minimum number of row tiles that must read an operand's columns to justify packing them.
    pub const LEAST_TILES: u64 = 6;
    /// Work items per thread, if there are several threads: a slow item does not delay the rest.
    pub const ITEMS_A_THREAD: u64 = 4;
    /// Minimum number of column tiles that must read an operand's rows to justify packing them.
    pub const LEAST_PANELS: u64 = 3;
    /// Row stride in bytes whose multiples map to few sets of the L1 cache.
    pub const ALIASING: u64 = 1 << 10;
    /// Columns of a tile whose lanes are steps of K.
    pub const COLUMNS_ALONG_K: u64 = 4;
    /// Minimum number of vectors along K to use the lanes for steps of K.
    pub const LEAST_K_VECTORS: u64 = 4;
    /// Cost per row of the horizontal reduction of its accumulators, minus the cost of transposing a column, in steps
    /// of K.
    pub const REDUCING: u64 = 6;
    /// Maximum side, in elements, of blocks that are transposed while they are packed into a panel.
    pub const LARGEST_BLOCK: u64 = 8;
    /// Maximum number of pieces that are emitted as straight-line code instead of a loop.
    pub const FEW_PIECES: u64 = 4;
    /// Number of independent multiplications that hide the latency of one.
    pub const LATENCY: u64 = 8;
}

/// Attention with register tiles.
pub(crate) mod register_attention {
    use std::ops::RangeInclusive;

    /// Number of keys of a block: the scores of a tile of queries stay in the L1 cache, the packed keys and values in
    /// L2, and results are rarely rescaled.
    pub const BLOCK: u64 = 256;
    /// Numbers of keys of a block that save a smaller last block, which has code of its own.
    pub const BLOCKS: RangeInclusive<u64> = 128..=384;
    /// Maximum bytes of the state of the queries in a work item, which is read and written for each block of keys.
    pub const STATE_BYTES: u64 = 128 << 10;
}

/// Scatters.
pub(crate) mod scatter {
    /// Minimum number of update elements to use several threads.
    pub const PARALLEL: usize = 1 << 14;
    /// Minimum window size, in elements, to distribute the places among threads. Each thread then reads all indices and
    /// mispredicts which ones belong to its share.
    pub const WORTH_LOOKING: usize = 64;
    /// Maximum number of update elements for which one sequential thread is faster than several launches that sort
    /// them.
    pub const FEW_UPDATES: usize = 16;
    /// Threads of a block with copies in shared memory: four such blocks fill a multiprocessor and its shared memory.
    pub const THREADS: u64 = 512;
    /// Number of updates that a thread loads before it combines the first.
    pub const AT_ONCE: u64 = 4;
    /// Bytes of shared memory that a block may use on any GPU.
    pub const SHARED_BYTES: u64 = 48 << 10;
    /// Maximum size in bytes of all copies in a block, if it has several.
    pub const SEVERAL_BYTES: u64 = 8 << 10;
    /// Maximum number of copies in a block; one thread combines all copies of an element.
    pub const MOST_COPIES: u64 = 16;
    /// Seconds per atomic update of global memory; all updates share the L2 cache.
    pub const UPDATE_SECONDS: f64 = 2e-11;
    /// Seconds that an atomic update waits for the previous update of the same element.
    pub const MEETING_SECONDS: f64 = 1e-9;
    /// Seconds per update of a block in shared memory: the block waits 1 microsecond for the indices and updates of
    /// each iteration of its threads.
    pub const BLOCK_SECONDS: f64 = 5e-10;
}

/// Sorts of rows by one thread.
pub(crate) mod row_sort {
    /// Number of items below which a merge sort is faster than a radix sort.
    pub const FEW_ITEMS: u64 = 256;
    /// Length of the runs that are sorted by insertion.
    pub const RUN: i64 = 8;
    /// Ratio of row length to wanted elements above which a heap does less work than a sort.
    pub const FEW_OF: u64 = 4;
    /// Vector registers of elements that are compared at once: mostly none of them is among the best.
    pub const BLOCK_REGISTERS: u32 = 4;
}

/// Capacity of the whole GPU, by the number of its multiprocessors.
pub(crate) mod device {
    use crate::target::Target;

    /// Threads that are resident on a multiprocessor at the same time.
    const RESIDENT: u64 = 2048;
    /// Large blocks that are resident on a multiprocessor at the same time, limited by the registers of their threads.
    const LARGE_BLOCKS: u64 = 2;

    /// Returns the number of threads that keep the GPU busy, a power of two.
    pub fn many_threads(target: &Target) -> u64 {
        1 << (u64::from(target.multiprocessors()) * RESIDENT).ilog2()
    }

    /// Returns the number of threads below which each element gets its own thread: the GPU has enough of them.
    pub fn few_threads(target: &Target) -> u64 {
        many_threads(target) / 4
    }

    /// Returns the number of large blocks that fill the GPU.
    pub fn busy_blocks(target: &Target) -> u64 {
        u64::from(target.multiprocessors()) * LARGE_BLOCKS
    }
}

/// Limits for threads in general.
pub(crate) mod threads {
    /// Bits of the widest memory access.
    pub const ACCESS_BITS: u32 = 128;
    /// Maximum bits of registers for one value of a thread, for narrow elements that are computed in wider lanes.
    pub const VALUE_BITS: u32 = 256;
    /// Maximum number of instructions, over all its elements, of a thread that computes several elements. Above it, the
    /// thread is not memory-bound.
    pub const MOST_INSTRUCTIONS: u64 = 1536;
    /// Maximum number of 32-bit registers for the live values of all elements of a thread. Of 255 registers, some are
    /// needed for addresses and temporaries.
    pub const MOST_REGISTERS: u64 = 208;
    /// Maximum number of concatenation operands that are all read and selected from per element.
    pub const MOST_SELECTED: usize = 8;
    /// Number of instructions above which the assembler may use the full register budget per thread.
    pub const LARGE: u64 = 256;
}

/// Rows and columns that several threads reduce together.
pub(crate) mod row_reduce {
    /// Elements of a row per thread, a power of two; twice this number if there are more than enough threads.
    pub const PER_THREAD: u64 = 8;
    /// Minimum number of elements of a reduction that is executed by a warp instead of a thread.
    pub const LEAST_REDUCTION: u64 = 32;
    /// Maximum bits of a thread's part of a row that stay in registers: a row of 32 KB in blocks of 512 threads with 16
    /// elements each, or 32 elements of 16 bits that are computed in 32 bits.
    pub const REGISTER_BITS: u64 = 32 * 32;
    /// Maximum product of elements per thread and instructions to unroll the loops over the row.
    pub const MOST_CODE: u64 = 1024;
    /// Warps of a block whose groups are warps.
    pub const WARPS: u32 = 4;
    /// Maximum number of threads that reduce a column together: blocks of 512 threads leave each thread 128 registers.
    pub const MOST_MEMBERS: u64 = 16;
    /// Maximum number of threads of a group.
    pub const LARGEST: u32 = 512;
}

/// Loops of a thread group that issue the loads of several iterations at once.
pub(crate) mod load_batch {
    /// Bits that a thread loads at a time.
    pub const BITS: u64 = 16 * 32;
    /// Minimum number of iterations whose loads are in flight at once.
    pub const LEAST: u64 = 4;
    /// Maximum number of iterations whose loads are in flight at once.
    pub const MOST: u64 = 8;
    /// Maximum product of elements per thread and instructions to unroll the iterations.
    pub const MOST_CODE: u64 = 512;
}

/// Transposes in shared memory.
pub(crate) mod shared_transpose {
    /// Side of a tile, in elements: the number of threads of a warp.
    pub const EDGE: u64 = 32;
    /// Warps of a block.
    pub const WARPS: u64 = 8;
    /// Maximum bytes of shared memory of a block for its tiles.
    pub const MOST_BYTES: u64 = 48 << 10;
}

/// Tiled GEMMs.
pub(crate) mod matmul {
    /// Minimum M, N and K: a smaller GEMM leaves most of a tile empty.
    pub const LEAST_EXTENT: u64 = 16;
    /// Minimum number of multiplications for a tiled kernel; smaller GEMMs use one thread per result.
    pub const LEAST_WORK: u64 = 1 << 18;
    /// Number of threads along each side of a tile.
    pub const SIDE: u64 = 16;
    /// Number of tiles that keep a large GPU busy; with fewer tiles, smaller ones are better.
    pub const BUSY: u64 = 128;
    /// Minimum number of rows and columns of accumulators per thread.
    pub const LEAST: u64 = 2;
    /// Minimum trip count of the K loop in a split-K part. Shorter parts take less time than the launch that adds up
    /// the partial sums, and the partial sums of the largest tile have more bytes than the operands that they are
    /// computed from.
    pub const LEAST_TURNS: u64 = 32;
    /// Minimum number of multiplications to measure other tile sizes; a smaller GEMM takes less time than its launch.
    pub const LEAST_TUNED: u64 = 1 << 22;
    /// Maximum number of kernels for a GEMM with alternative tile sizes: each takes time to compile.
    pub const MOST_KERNELS: usize = 4;
}

/// Multistage GEMMs, whose operands are copied by cp.async.
pub(crate) mod matmul_stages {
    /// Maximum number of pipeline stages: K steps that are computed or in flight. Two iterations of a warp take longer
    /// than a memory access.
    pub const MOST: u64 = 4;
    /// Bytes of shared memory for all stages: the maximum that a kernel may declare statically.
    pub const MOST_BYTES: u64 = 48 << 10;
    /// Warps of a block along each side: with few large warp tiles, each loaded fragment serves most multiplications.
    pub const WARPS_ALONG: u64 = 2;
}

/// GEMMs by wgmma.
pub(crate) mod matmul_wgmma {
    /// K steps per stage: rows of 128 bytes.
    pub const DEPTH: u64 = 64;
    /// Minimum M and N: the size of one warp group's accumulator tile.
    pub const LEAST_EXTENT: u64 = 64;
    /// Columns of the largest tile, in units of [`SIDE`](super::matmul::SIDE), with 128 rows: the accumulators of two
    /// warp groups leave their threads registers for the epilogue.
    pub const COLUMNS: u64 = 16;
    /// Rows and columns of the smallest tile, in units of [`SIDE`](super::matmul::SIDE).
    pub const LEAST: u64 = 4;
    /// Maximum number of pipeline stages.
    pub const MOST_STAGES: u64 = 8;
    /// Bytes of shared memory for all stages: four stages of the largest tile, out of the 227 KB that a block may have.
    pub const MOST_BYTES: u64 = 192 << 10;
}

/// Attention.
pub(crate) mod attention {
    /// Warps of a block, with 16 queries each.
    pub const WARPS: u64 = 4;
    /// Keys per tile, in order of preference: their scores must leave a thread registers for its results.
    pub const KEYS: [u64; 3] = [64, 32, 16];
    /// Bytes of shared memory for queries, keys and values: the maximum that a kernel may declare statically.
    pub const MOST_BYTES: u64 = 48 << 10;
    /// Supported head sizes, as (bytes of an element, divisor of the size, maximum): tiles of 16 keys fit into
    /// [`MOST_BYTES`], and results fit into registers.
    pub const HEADS: [(usize, usize, usize); 2] = [(2, 16, 256), (4, 16, 128)];
    /// Supported head sizes for sums over functions of two dots' scores, in the format of [`HEADS`]. These kernels have
    /// twice the number of tiles. Heads of twice the size would fit, but are as slow as scores that are stored in
    /// memory.
    pub const SUM_HEADS: [(usize, usize, usize); 2] = [(2, 16, 64), (4, 16, 32)];
}

/// Attention by wgmma.
pub(crate) mod attention_groups {
    /// Consumer warp groups of a block: one multiplies while another one computes exponentials.
    pub const GROUPS: u64 = 2;
    /// Minimum grid size at which a block gets [`GROUPS`] consumer warp groups.
    pub const BUSY: u64 = 128;
    /// Keys per tile, with scores and exponentials in registers; half of it if heads are longer than [`LONG_KEYS`] or
    /// keys are few.
    pub const KEYS: u64 = 128;
    /// Maximum head size for which [`KEYS`] keys fit into registers, and two stages of them into shared memory.
    pub const LONG_KEYS: u64 = 128;
    /// Maximum head size, in elements.
    pub const MOST_HEAD: u64 = 256;
    /// Number of pipeline stages of key and value tiles (double buffering).
    pub const STAGES: u64 = 2;
}

/// Attention with few queries (decoding).
pub(crate) mod attention_decode {
    /// Maximum number of queries per head: each takes registers, and time during which memory is idle.
    pub const MOST_QUERIES: u64 = 8;
    /// Warps of a block: several blocks of a multiprocessor load while others combine.
    pub const WARPS: u64 = 4;
    /// Maximum number of keys, and of values, that a thread loads at once: accesses in flight.
    pub const MOST_KEYS: u64 = 8;
    /// Maximum number of 32-bit registers per thread for queries, sums, scores, keys and values; the softmax needs the
    /// others.
    pub const MOST_REGISTERS: u64 = 160;
    /// Minimum trip count of a block: fewer iterations take less time than the launch that combines the parts.
    pub const LEAST_TURNS: u64 = 4;
}

/// Split-K GEMMs.
pub(crate) mod split_k {
    /// Number of threads of the whole device that add up partial sums.
    pub const MANY_THREADS: u64 = 1 << 16;
    /// Minimum number of partial sums per thread: fewer take less time than combining the threads' results.
    pub const LEAST_PARTS: u64 = 4;
    /// Maximum number of threads that add up the partial sums of one result.
    pub const MOST_MEMBERS: u64 = 16;
}

/// Skinny GEMMs.
pub(crate) mod skinny_matmul {
    /// Minimum K to split a sum among several threads.
    pub const LEAST_DEPTH: u64 = 64;
    /// Maximum number of 32-bit accumulator registers per thread, if a group computes the sums.
    pub const GROUP_SUMS: u64 = 32;
    /// Maximum number of 32-bit accumulator registers per thread, if a block computes the sums.
    pub const BLOCK_SUMS: u64 = 64;
    /// Maximum number of rows per group.
    pub const MOST_ROWS: u64 = 4;
    /// Number of warps that keep a large GPU busy.
    pub const BUSY_WARPS: u64 = 4096;
    /// Number of blocks that keep a large GPU busy.
    pub const ENOUGH_BLOCKS: u64 = 128;
    /// Minimum trip count of the K loop in a split-K part: fewer iterations take less time than the launch that adds up
    /// the partial sums.
    pub const LEAST_TURNS: u64 = 8;
    /// Maximum number of warps of a group.
    pub const MOST_GROUP_WARPS: u64 = 8;
    /// Maximum number of warps of a block.
    pub const MOST_WARPS: u64 = 16;
    /// Minimum contiguous bytes that neighbouring threads read: shorter reads waste memory bandwidth.
    pub const LEAST_BYTES: u64 = 32;
    /// Bytes of shared memory for the sums of a block.
    pub const SHARED_BYTES: u64 = 32 << 10;
}

/// Scans.
pub(crate) mod scan {
    /// Minimum length of a fiber that is scanned by a block instead of a thread.
    pub const LEAST_FIBER: u64 = 256;
    /// Number of contiguous fibers above which one thread per fiber fills the GPU with coalesced reads.
    pub const MANY_FIBERS: u64 = 1 << 14;
    /// Minimum length of a fiber that several blocks share, if there are too few fibers to keep the GPU busy.
    pub const LEAST_TILED: u64 = 8192;
    /// Bits of the elements that a thread holds in registers until the prefix before them is known. Larger tiles mean
    /// fewer blocks that wait for each other.
    pub const TILE_BITS: u64 = 1024;
    /// Maximum number of iterations of all threads in a tile.
    pub const MOST_TURNS: u64 = 8;
}

/// Sorts.
pub(crate) mod sort {
    /// Elements that a block sorts, a power of two.
    pub const TILE: u64 = 1024;
    /// Elements of a block that each thread places.
    pub const PER_THREAD: u64 = 4;
    /// Minimum number of threads of a block.
    pub const LEAST_THREADS: u64 = 32;
    /// Bytes of shared memory that a block may use on any GPU.
    pub const SHARED_BYTES: u64 = 48 << 10;
}

/// Radix sorts.
///
/// The times are estimates for a large GPU (3e13 instructions per second over all lanes, memory bandwidth of 2.5e12
/// bytes per second). The rates of merge and radix sort scale together from one GPU to another, so the choice holds on
/// any GPU.
pub(crate) mod radix_sort {
    /// Threads of a block: one per digit value.
    pub const THREADS: u64 = 256;
    /// Elements per thread, in order of preference: many, so that neighbours with the same digit are written together;
    /// fewer if blocks would not keep the GPU busy.
    pub const PER_THREAD: [u64; 3] = [16, 8, 4];
    /// Number of blocks that keep a large GPU busy.
    pub const BUSY_BLOCKS: u64 = 128;
    /// Maximum size of an element in bytes, so that shared memory holds the elements of a block.
    pub const WIDEST: u64 = 8;
    /// Seconds of a launch that merges runs of few elements: launch overhead, and the memory latency of each step of
    /// the search.
    pub const MERGE_SECONDS: f64 = 5e-6;
    /// Seconds of the three launches that sort few elements by one digit.
    pub const DIGIT_SECONDS: f64 = 9e-6;
    /// Seconds per element that is merged, or sorted by one digit: about 110 instructions.
    pub const ELEMENT_SECONDS: f64 = 3.7e-12;
    /// Seconds per iteration of a block that adds up the counts of a row's digit: 1 microsecond, with a thousand blocks
    /// at a time.
    pub const SUM_SECONDS: f64 = 1e-9;
    /// Seconds to read or write a byte.
    pub const BYTE_SECONDS: f64 = 4e-13;
}

/// Small matrices.
pub(crate) mod small_matrix {
    /// Maximum number of rows of a matrix with elements of 8 bytes: together with [`COLUMNS`] right-hand sides it fills
    /// the shared memory that a block may use on any GPU.
    pub const ROWS: usize = 64;
    /// Right-hand sides of a block, with one thread each: a warp.
    pub const COLUMNS: u64 = 32;
}

/// Largest elements of rows (top-k).
pub(crate) mod top_k {
    /// Maximum K for sequential picking by a group; above it, counting digits is faster.
    pub const FEW: u64 = 8;
    /// Maximum K to sort the selected elements in one block: twice this number of items must fit into shared memory.
    pub const MOST: u64 = 1024;
    /// Minimum chunk length of a row, in elements.
    pub const LEAST_CHUNK: u64 = 8192;
    /// Minimum number of items that are sorted: the larger it is, the sooner a selection may end.
    pub const LEAST_SLOTS: u64 = 256;
    /// Minimum number of row elements per selecting thread.
    pub const PER_THREAD: u64 = 8;
    /// Maximum number of threads of a selecting block: more would have too few registers each.
    pub const MOST_THREADS: u64 = 512;
    /// Number of best elements of its own that a thread keeps.
    pub const KEPT: usize = 4;
    /// Elements that a thread loads before it examines any.
    pub const READ: u64 = 4;
    /// Maximum number of threads of a group.
    pub const LARGEST: u64 = 1024;
}

/// Loops of one block. Times are cycles of a multiprocessor, about 1.7 per nanosecond.
pub(crate) mod block_loop {
    /// Cycles of a launch within a CUDA graph (2 microseconds): the budget of one block for a phase that replaces a
    /// launch.
    pub const LAUNCH_CYCLES: u64 = 3400;
    /// Cycles of a phase's barrier and its first memory access, which mostly hits the L2 cache.
    pub const PHASE_CYCLES: f64 = 400.0;
    /// Latency in cycles from an operation to a dependent one in the same thread.
    pub const OPERATION_CYCLES: f64 = 6.0;
    /// Cycles per access to the L1 cache, with several accesses in flight.
    pub const LOAD_CYCLES: f64 = 10.0;
    /// Cycles to combine the threads' partial reductions by shuffles and shared memory.
    pub const SHUFFLE_CYCLES: f64 = 300.0;
    /// Maximum number of threads that issue without waiting for each other: eight warps, two per scheduler.
    pub const AT_ONCE: u64 = 256;
    /// Maximum number of threads of a block, which leaves each 128 registers.
    pub const MOST_THREADS: u64 = 512;
    /// Maximum number of elements of a phase: larger ones deserve several multiprocessors.
    pub const MOST_ITEMS: u64 = 4096;
    /// Maximum number of phases of one loop: code of this size assembles within a second and fits into the instruction
    /// cache.
    pub const MOST_PHASES: usize = 64;
    /// Maximum number of operations of one loop; see [`MOST_PHASES`].
    pub const MOST_OPERATIONS: usize = 2048;
    /// Maximum number of pointers of one loop, which are kernel parameters; see [`MOST_PHASES`].
    pub const MOST_POINTERS: usize = 256;
}
