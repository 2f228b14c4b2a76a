//! Tuning constants by subject, each with its trade-off.

/// Rows (outermost iterations) below which one row is cut into several work items.
pub(crate) const FEW_ROWS: u64 = 16;
/// Elements of a work item that is a chunk of a row; a multiple of every lane count.
pub(crate) const CHUNK: u64 = 4096;
/// Vector registers of accumulators in a reduction across lanes, so that its steps overlap.
pub(crate) const REDUCE_REGISTERS: u32 = 8;
/// Operands of a concatenation up to which addresses and conditions of all are computed in front of the loop.
pub(crate) const FEW_OPERANDS: usize = 8;
/// Addresses of a kernel up to which all are loaded in front of the loops: registers for most of them.
pub(crate) const FEW_ADDRESSES: usize = 32;

/// As many lanes, or fewer where a loop is shorter.
pub(crate) fn fitting(mut lanes: u32, extent: u64) -> u32 {
    while lanes > 1 && u64::from(lanes) >= 2 * extent {
        lanes /= 2;
    }
    lanes
}

/// Loops of scalar steps on a processor.
pub(crate) mod scalar_loop {
    /// Operations of the steps: more take much longer than calls of their kernels.
    pub const MOST_OPERATIONS: usize = 1024;
    /// Arrays and elements in memory.
    pub const MOST_PLACES: usize = 128;
}

/// Processors with vectors.
pub(crate) mod vector {
    /// A dimension shorter than this is not worth lanes.
    pub const LEAST_LANE_EXTENT: u64 = 8;
    /// Turns of a loop from which on tiles pay.
    pub const LEAST_TILED: u64 = 8;
    /// Bytes of the accumulators of a block of columns, where one thread does all: so long a part of each row is read
    /// that memory gives its best, and they stay in the first-level cache.
    pub const ACCUMULATOR_BYTES: u64 = 16 << 10;
    /// The same where there may be threads, which take blocks.
    pub const SHARED_ACCUMULATOR_BYTES: u64 = 4 << 10;
    /// Bytes of a line of the caches, or of half of one.
    pub const CACHE_LINE: usize = 64;
    /// Rows reduced in at each visit: streams of memory.
    pub const ROWS: u64 = 8;
    /// Bytes of a matrix from which on the order in which it is read matters more than accumulators in registers.
    pub const STREAMED_BYTES: usize = 128 << 10;
    /// Work on one element from which on a value is kept instead of computed again.
    pub const KEEP_WORK: f64 = 8.0;
    /// Bytes of values that one kernel keeps for its next loops.
    pub const SCRATCH_BYTES: usize = 128 << 10;
    /// Arrays of one kernel that are kept in buffers; others are gathered.
    pub const MOST_BUFFERS: usize = 4;
    /// Elements of the largest blocks that are transposed in registers, along one side.
    pub const LARGEST_BLOCK: u32 = 16;
    /// As for [`LARGEST_BLOCK`]; of the smallest.
    pub const SMALLEST_BLOCK: u32 = 4;
    /// Rows from which on columns are reduced in blocks; fewer have their accumulators in registers.
    pub const LEAST_ROWS: usize = 32;
    /// As for [`LEAST_ROWS`]; of columns.
    pub const LEAST_COLUMNS: usize = 64;
}

/// Contractions by tiles of sums in registers.
pub(crate) mod register_tiles {
    use std::ops::RangeInclusive;

    /// Products in all from which on tiles pay.
    pub const LEAST_WORK: u64 = 1 << 13;
    /// The most vectors of a row of a tile, where there are more rows than one.
    pub const MOST_VECTORS: u64 = 4;
    /// Bytes of scratch for a block of the right operand's columns, which are to stay in the second-level cache.
    pub const BLOCK_BYTES: u64 = 512 << 10;
    /// Steps of a part of K: a tile's rows stay in the first-level cache, and many columns in the second-level one;
    /// sums come and go seldom.
    pub const PART: RangeInclusive<u64> = 192..=512;
    /// Bytes of sums between parts of K.
    pub const SUMS_BYTES: u64 = 4 << 20;
    /// Bytes of an operand that stays in the cache as it lies.
    pub const NEAR_BYTES: u64 = 128 << 10;
    /// Tiles of rows that read an operand's columns from which on packing them pays.
    pub const LEAST_TILES: u64 = 6;
    /// Work items for each of several threads, so that a slow one does not hold up the rest.
    pub const ITEMS_A_THREAD: u64 = 4;
    /// Tiles of columns that read an operand's rows from which on packing them pays.
    pub const LEAST_PANELS: u64 = 3;
    /// Bytes between rows, multiples of which lie in a few sets of the first-level cache.
    pub const ALIASING: u64 = 1 << 10;
    /// Columns of a tile whose lanes are steps of K.
    pub const COLUMNS_ALONG_K: u64 = 4;
    /// Vectors along K from which on lanes may be steps of it.
    pub const LEAST_K_VECTORS: u64 = 4;
    /// Steps of K that take as long for a row as adding up the lanes of its sums, less what it takes to turn a column
    /// around.
    pub const REDUCING: u64 = 6;
    /// Elements along the side of the largest block that is transposed on its way into a panel.
    pub const LARGEST_BLOCK: u64 = 8;
    /// Pieces up to which they are code one after the other, rather than a loop.
    pub const FEW_PIECES: u64 = 4;
    /// Steps of the independent multiplications that hide the time that one takes.
    pub const LATENCY: u64 = 8;
}

/// Scatters.
pub(crate) mod scatter {
    /// Elements of the updates that are worth several threads.
    pub const PARALLEL: usize = 1 << 14;
    /// Elements of a window that are worth more than what threads lose who share the places: each looks at all indices,
    /// and cannot predict which ones are of its share.
    pub const WORTH_LOOKING: usize = 64;
    /// Elements of the updates up to which one thread does them in order sooner than several launches sort them.
    pub const FEW_UPDATES: usize = 16;
    /// Threads of a block with copies in shared memory: four such blocks fill a multiprocessor, and its shared memory.
    pub const THREADS: u64 = 512;
    /// Updates that a thread reads before it combines the first.
    pub const AT_ONCE: u64 = 4;
    /// Bytes of shared memory that a block may take on any GPU.
    pub const SHARED_BYTES: u64 = 48 << 10;
    /// Bytes up to which a block has several copies, and the most: a thread adds up those of a place.
    pub const SEVERAL_BYTES: u64 = 8 << 10;
    pub const MOST_COPIES: u64 = 16;
    /// Seconds of an update of the device's memory, all of which share its second-level cache, and those that the next
    /// update of the same element waits.
    pub const UPDATE_SECONDS: f64 = 2e-11;
    pub const MEETING_SECONDS: f64 = 1e-9;
    /// Seconds that a block takes for an update in shared memory: it waits a microsecond for the indices and updates of
    /// a turn of its threads.
    pub const BLOCK_SECONDS: f64 = 5e-10;
}

/// Sorts of rows by one thread.
pub(crate) mod row_sort {
    /// Items below which comparing them takes less time than counting digits.
    pub const FEW_ITEMS: u64 = 256;
    /// Items that are sorted by insertion.
    pub const RUN: i64 = 8;
    /// Elements of a row for each one wanted, from which on a heap of those wanted does less than a sort.
    pub const FEW_OF: u64 = 4;
    /// Vector registers of elements that are looked at together: mostly none is among the best.
    pub const BLOCK_REGISTERS: u32 = 4;
}

/// The whole machine, by the number of its multiprocessors.
pub(crate) mod device {
    use crate::target::Target;

    /// Threads that a multiprocessor holds at a time.
    const RESIDENT: u64 = 2048;
    /// Large blocks that a multiprocessor holds at a time, which is what the registers of their threads allow.
    const LARGE_BLOCKS: u64 = 2;

    /// Threads that keep it busy, a power of two.
    pub fn many_threads(target: &Target) -> u64 {
        1 << (u64::from(target.multiprocessors()) * RESIDENT).ilog2()
    }

    /// Threads below which each element gets one of its own: the machine has as many at hand.
    pub fn few_threads(target: &Target) -> u64 {
        many_threads(target) / 4
    }

    /// Large blocks that fill it.
    pub fn busy_blocks(target: &Target) -> u64 {
        u64::from(target.multiprocessors()) * LARGE_BLOCKS
    }
}

/// Threads in general.
pub(crate) mod threads {
    /// Bits of the widest access to memory.
    pub const ACCESS_BITS: u32 = 128;
    /// Bits of registers that a value of a thread may take, where narrow elements are computed in wider lanes.
    pub const VALUE_BITS: u32 = 256;
    /// Instructions, of all its elements, of a thread that computes several; where there are more, memory is not what
    /// it waits for.
    pub const MOST_INSTRUCTIONS: u64 = 1536;
    /// Registers of 32 bits for values of all its elements at a time: of 255, some are for addresses and for values
    /// within operations.
    pub const MOST_REGISTERS: u64 = 208;
    /// Operands of a concatenation up to which each element reads all and selects.
    pub const MOST_SELECTED: usize = 8;
    /// Instructions above which the assembler is told that a thread may have all registers.
    pub const LARGE: u64 = 256;
}

/// Rows and columns that threads reduce together.
pub(crate) mod row_reduce {
    /// Elements of a row that one thread is worth, a power of two; twice as many where threads abound.
    pub const PER_THREAD: u64 = 8;
    /// Elements of a reduction from which on a warp does it rather than a thread.
    pub const LEAST_REDUCTION: u64 = 32;
    /// Bits of a thread's part of a row that stay in registers: a row of 32 KB, in blocks of 512 threads with 16
    /// elements each, or 32 of 16 bits that are computed in 32.
    pub const REGISTER_BITS: u64 = 32 * 32;
    /// Elements of a thread times instructions up to which loops over the row are written out.
    pub const MOST_CODE: u64 = 1024;
    /// Warps of a block whose groups are warps.
    pub const WARPS: u32 = 4;
    /// The most threads that reduce a column together: blocks of 512 threads, which leave each of them 128 registers.
    pub const MOST_MEMBERS: u64 = 16;
    /// The largest group.
    pub const LARGEST: u32 = 512;
}

/// Loops of a group, a few turns at a time.
pub(crate) mod group_turns {
    /// Bits that a thread reads at a time.
    pub const BITS: u64 = 16 * 32;
    /// Turns at a time: as many loads are under way.
    pub const LEAST: u64 = 4;
    /// As for [`LEAST`].
    pub const MOST: u64 = 8;
    /// Elements of a thread times instructions up to which turns are written out.
    pub const MOST_CODE: u64 = 512;
}

/// Transposes in shared memory.
pub(crate) mod shared_transpose {
    /// Elements along a tile's side: the threads of a warp.
    pub const EDGE: u64 = 32;
    /// Warps of a block.
    pub const WARPS: u64 = 8;
    /// Bytes of shared memory that a block may take for its tiles.
    pub const MOST_BYTES: u64 = 48 << 10;
}

/// Matmuls in tiles.
pub(crate) mod matmul {
    /// M, N and K from which on tiles pay: a smaller matmul leaves most of a tile empty.
    pub const LEAST_EXTENT: u64 = 16;
    /// Products in all from which on tiles pay; below, one thread for each result has little to wait for.
    pub const LEAST_WORK: u64 = 1 << 18;
    /// Threads along each side of a tile.
    pub const SIDE: u64 = 16;
    /// Tiles that keep a large GPU busy; with fewer, smaller ones are better.
    pub const BUSY: u64 = 128;
    /// Rows and columns of sums that a thread has at least.
    pub const LEAST: u64 = 2;
    /// Turns of the loop over the sum that a part of it has at least: fewer take less time than the launch that adds up
    /// the parts, and the parts' sums of the largest tile are more bytes than what they are made of.
    pub const LEAST_TURNS: u64 = 32;
    /// Products in all from which on other tiles than the usual ones may be measured; below, a launch takes longer.
    pub const LEAST_TUNED: u64 = 1 << 22;
    /// Kernels of a matmul at most, where it has other tiles than the usual ones: each takes time to compile.
    pub const MOST_KERNELS: usize = 4;
}

/// Matmuls whose operands come in stages.
pub(crate) mod matmul_stages {
    /// Stages at most: steps of K that are computed or under way. Two turns of a warp take longer than memory.
    pub const MOST: u64 = 4;
    /// Bytes of all stages; as much as a kernel may declare.
    pub const MOST_BYTES: u64 = 48 << 10;
    /// Warps of a block along each side: of few large tiles each reads its fragments for most products.
    pub const WARPS_ALONG: u64 = 2;
}

/// Matmuls that warp groups multiply.
pub(crate) mod matmul_groups {
    /// Steps of K that are in a stage: rows of 128 bytes.
    pub const DEPTH: u64 = 64;
    /// Rows and columns from which on groups multiply: those of one group's sums.
    pub const LEAST_EXTENT: u64 = 64;
    /// Columns of the largest tile, in units of [`SIDE`](super::matmul::SIDE), of 128 rows: two groups have as many
    /// sums as leave their threads registers for the epilogue.
    pub const COLUMNS: u64 = 16;
    /// Rows and columns of the smallest tile, in the same units.
    pub const LEAST: u64 = 4;
    /// Stages at most.
    pub const MOST_STAGES: u64 = 8;
    /// Bytes of all stages: of the 227 KB that a block may have, as many as are four stages of the largest tile.
    pub const MOST_BYTES: u64 = 192 << 10;
}

/// Attention.
pub(crate) mod attention {
    /// Warps of a block, each with 16 queries.
    pub const WARPS: u64 = 4;
    /// Keys of a tile, from the most on: as many scores as leave a thread registers for its results.
    pub const KEYS: [u64; 3] = [64, 32, 16];
    /// Bytes of shared memory for queries, keys and values; as much as a kernel may declare.
    pub const MOST_BYTES: u64 = 48 << 10;
    /// Sizes of heads whose tiles of 16 keys fit there, and whose results fit into registers: bytes of an element, the
    /// number that they are multiples of, and the largest.
    pub const HEADS: [(usize, usize, usize); 2] = [(2, 16, 256), (4, 16, 128)];
    /// The same of sums over functions of two dots' scores, which have twice as many tiles. Heads of twice that size
    /// fit as well, and take as long as memory takes for scores.
    pub const SUM_HEADS: [(usize, usize, usize); 2] = [(2, 16, 64), (4, 16, 32)];
}

/// Attention by warp groups.
pub(crate) mod attention_groups {
    /// Groups of a block: one multiplies while another one computes exponentials.
    pub const GROUPS: u64 = 2;
    /// Blocks from which on there are so many groups in each.
    pub const BUSY: u64 = 128;
    /// Keys of a tile, whose scores and exponentials are in registers; half as many where heads are longer than
    /// [`LONG_KEYS`], or keys are few.
    pub const KEYS: u64 = 128;
    /// Elements of a head beside which so many keys fit into registers, and two stages of them into shared memory.
    pub const LONG_KEYS: u64 = 128;
    /// Elements of the largest head.
    pub const MOST_HEAD: u64 = 256;
    /// Tiles of keys and values that are multiplied or under way.
    pub const STAGES: u64 = 2;
}

/// Attention of few queries.
pub(crate) mod attention_decode {
    /// Queries of a head at most: each takes registers of a thread, and time in which memory waits.
    pub const MOST_QUERIES: u64 = 8;
    /// Warps of a block: several blocks of a multiprocessor read while others combine.
    pub const WARPS: u64 = 4;
    /// Keys that a thread reads together at most, and as many values: accesses that are under way.
    pub const MOST_KEYS: u64 = 8;
    /// Registers of 32 bits for queries, sums, scores, keys and values of a thread; the rest are for the softmax.
    pub const MOST_REGISTERS: u64 = 160;
    /// Turns of a block at least: fewer take less time than the launch that combines the parts.
    pub const LEAST_TURNS: u64 = 4;
}

/// Matmuls whose K is split.
pub(crate) mod split_k {
    /// Threads that add up parts on a whole device, together.
    pub const MANY_THREADS: u64 = 1 << 16;
    /// Parts that a thread adds up, at least: fewer take less time than combining the threads' results.
    pub const LEAST_PARTS: u64 = 4;
    /// The most threads that add up the parts of one result.
    pub const MOST_MEMBERS: u64 = 16;
}

/// Skinny matmuls.
pub(crate) mod skinny_matmul {
    /// Steps of the sum from which on threads share them.
    pub const LEAST_DEPTH: u64 = 64;
    /// 32-bit registers of sums that a thread has at most: those of a group, and those of a block.
    pub const GROUP_SUMS: u64 = 32;
    pub const BLOCK_SUMS: u64 = 64;
    /// Rows of a group at most.
    pub const MOST_ROWS: u64 = 4;
    /// Warps that keep a large GPU busy, and blocks.
    pub const BUSY_WARPS: u64 = 4096;
    pub const ENOUGH_BLOCKS: u64 = 128;
    /// Turns of the loop over the sum that a part of it has at least: fewer take less time than the launch that adds up
    /// the parts.
    pub const LEAST_TURNS: u64 = 8;
    /// Warps of a group or a block at most.
    pub const MOST_GROUP_WARPS: u64 = 8;
    pub const MOST_WARPS: u64 = 16;
    /// Bytes of neighbours below which memory is read in vain.
    pub const LEAST_BYTES: u64 = 32;
    /// Bytes of shared memory for the sums of a block.
    pub const SHARED_BYTES: u64 = 32 << 10;
}

/// Scans.
pub(crate) mod scan {
    /// Elements of a fiber from which on a block scans it rather than a thread.
    pub const LEAST_FIBER: u64 = 256;
    /// Fibers beside each other in memory from which on threads are as many as the machine has, and read side by side.
    pub const MANY_FIBERS: u64 = 1 << 14;
    /// Elements of a fiber from which on blocks share it, if there are too few fibers to keep the machine busy.
    pub const LEAST_TILED: u64 = 8192;
    /// Bits of the elements of a thread, which it holds until it knows what is before them, and the most turns of so
    /// many threads in a tile. The more elements a tile has, the fewer blocks wait for each other.
    pub const TILE_BITS: u64 = 1024;
    pub const MOST_TURNS: u64 = 8;
}

/// Sorts.
pub(crate) mod sort {
    /// Elements that a block sorts, a power of two.
    pub const TILE: u64 = 1024;
    /// Elements of a block that each thread places.
    pub const PER_THREAD: u64 = 4;
    /// Threads of the smallest block.
    pub const LEAST_THREADS: u64 = 32;
    /// Bytes of shared memory that a block may take on any GPU.
    pub const SHARED_BYTES: u64 = 48 << 10;
}

/// Sorts by digits of keys.
///
/// Estimates for a large GPU (3e13 instructions a second of all its lanes, 2.5e12 bytes of memory a second): the rates
/// of both sorts change alike from one GPU to another, so they decide between them anywhere.
pub(crate) mod radix_sort {
    /// Threads of a block: one for each digit.
    pub const THREADS: u64 = 256;
    /// Elements of a thread, from the most on: many, so that neighbours of the same digit are written together; fewer
    /// where blocks would not keep the machine busy.
    pub const PER_THREAD: [u64; 3] = [16, 8, 4];
    /// Blocks that do.
    pub const BUSY_BLOCKS: u64 = 128;
    /// Bytes of the widest element that shared memory holds a block's of.
    pub const WIDEST: u64 = 8;
    /// Seconds of a launch that merges runs, of few elements: as it is launched, and as a search waits for memory at
    /// each of its steps.
    pub const MERGE_SECONDS: f64 = 5e-6;
    /// Seconds of the three launches that sort by a digit, of few elements.
    pub const DIGIT_SECONDS: f64 = 9e-6;
    /// Seconds that an element takes when it is merged, or sorted by a digit: about 110 instructions.
    pub const ELEMENT_SECONDS: f64 = 3.7e-12;
    /// Seconds of each turn of a block that adds up the counts of a row's digit: a microsecond, a thousand at a time.
    pub const SUM_SECONDS: f64 = 1e-9;
    /// Seconds to read or write a byte.
    pub const BYTE_SECONDS: f64 = 4e-13;
}

/// Small matrices.
pub(crate) mod small_matrix {
    /// Rows of the largest matrix of elements of 8 bytes, which with [`COLUMNS`] right-hand sides fills the shared
    /// memory that a block may take on any GPU.
    pub const ROWS: usize = 64;
    /// Right-hand sides of a block, each with a thread: a warp.
    pub const COLUMNS: u64 = 32;
}

/// Largest elements of rows.
pub(crate) mod top_k {
    /// Elements up to which a group that picks one after the other is done sooner than one that counts digits.
    pub const FEW: u64 = 8;
    /// The most elements that a block sorts after it has selected them: twice as many items are to fit in shared
    /// memory.
    pub const MOST: u64 = 1024;
    /// Elements of the shortest chunk of a row.
    pub const LEAST_CHUNK: u64 = 8192;
    /// Items that are sorted at least: the more, the sooner a selection may end.
    pub const LEAST_SLOTS: u64 = 256;
    /// Elements of a row for each thread that selects, at least.
    pub const PER_THREAD: u64 = 8;
    /// Threads of the largest block that selects: more would have too few registers each.
    pub const MOST_THREADS: u64 = 512;
    /// Elements of its own that a thread keeps.
    pub const KEPT: usize = 4;
    /// Elements that a thread reads before it looks at any.
    pub const READ: u64 = 4;
    /// The largest group.
    pub const LARGEST: u64 = 1024;
}

/// Loops of one block. Cycles are those of a multiprocessor, about 1.7 in a nanosecond.
pub(crate) mod block_loop {
    /// Cycles of a launch among others of a graph, two microseconds: what one block has for a phase instead.
    pub const LAUNCH_CYCLES: u64 = 3400;
    /// Cycles of a phase's barrier, and of its first access to memory, which is mostly in the second-level cache.
    pub const PHASE_CYCLES: f64 = 400.0;
    /// Cycles from an operation of a thread to the next one that needs its result.
    pub const OPERATION_CYCLES: f64 = 6.0;
    /// Cycles of an access to the first-level cache, several of which are under way.
    pub const LOAD_CYCLES: f64 = 10.0;
    /// Cycles in which threads put together what they have reduced, by shuffles and shared memory.
    pub const SHUFFLE_CYCLES: f64 = 300.0;
    /// Threads up to which none waits for another one's instructions: eight warps, two for each scheduler.
    pub const AT_ONCE: u64 = 256;
    /// Threads of the largest block: each may then have 128 registers.
    pub const MOST_THREADS: u64 = 512;
    /// Elements of the largest phase: more are worth several multiprocessors.
    pub const MOST_ITEMS: u64 = 4096;
    /// Phases, operations and arrays of one loop: so much code is assembled in a second, and is in the instruction
    /// cache.
    pub const MOST_PHASES: usize = 64;
    /// As for [`MOST_PHASES`]; of operations.
    pub const MOST_OPERATIONS: usize = 2048;
    /// As for [`MOST_PHASES`]; of pointers, which are parameters of the kernel.
    pub const MOST_POINTERS: usize = 256;
}
