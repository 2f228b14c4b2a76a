//! What passes may know about a target: plain data that a backend hands in.

use std::collections::BTreeSet;

use xla_hlo::ops::Family;
use xla_hlo::{Op, Opcode};

/// What a target is like, as far as target-independent passes care.
///
/// Passes ask this, never the name of a backend. All sizes are bytes, all rates are of the whole device.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetProfile {
    /// Width of a vector register; 4 where there are none.
    pub vector_bytes: usize,
    /// First-level data cache of one core.
    pub l1_bytes: usize,
    /// Second-level cache of one core.
    pub l2_bytes: usize,
    /// Last-level cache of the device.
    pub l3_bytes: usize,
    /// Threads (or cores, or multiprocessors) that a parallel loop is spread over.
    pub threads: usize,
    /// Cycles in a second of one thread.
    pub clock_hz: f64,
    /// Bytes in a second to and from main memory.
    pub memory_bandwidth: f64,
    /// Bytes in a second to and from the second-level caches.
    pub cache_bandwidth: f64,
    /// Seconds it takes to begin one kernel.
    pub launch_seconds: f64,
    /// What may be fused, and how.
    pub fusion: FusionProfile,
    /// Which forms of a contraction are as fast as any other.
    pub dot: DotProfile,
    /// The tiles that arrays lie in; `None` for plain row-major memory.
    pub tiles: Option<TileProfile>,
    /// Bytes that one execution may need in all, arguments and results included: see [`Rematerialize`](crate::Rematerialize). `None` for no
    /// limit.
    pub memory_bytes: Option<u64>,
    /// Memories besides the default one, the fastest first: see [`AssignMemorySpaces`](crate::AssignMemorySpaces).
    pub memory_spaces: Vec<MemorySpaceProfile>,
}

/// A memory of a device besides its default one, such as a scratchpad; what of a program may live there.
///
/// Arguments and results of programs are always in the default memory, and so is what custom calls, transfers and collectives read and
/// write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySpaceProfile {
    /// `S(n)` of layouts; not 0, which is the default memory.
    pub space: i64,
    /// Bytes of it that one execution may use.
    pub bytes: usize,
    /// Alignment in bytes of values there: that of the backend's [`BufferOptions`](crate::buffers::BufferOptions).
    pub alignment: usize,
    /// Bytes of the largest value that may live there.
    pub max_value_bytes: usize,
    /// Whether constants may live there, all the time.
    pub constants: bool,
    /// Operations whose operands are copied there just before where they are not there already and there is room.
    pub staged: BTreeSet<Opcode>,
}

/// Tiles that arrays lie in on a device, padded up to whole tiles; see [`Layout::tiles`](xla_hlo::Layout::tiles).
///
/// The two minor dimensions of an array lie in tiles of `rows` by `columns` elements, a vector in tiles of as many elements, and
/// a scalar as it is. Tiles follow one another in row-major order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileProfile {
    /// Elements along the second minor dimension.
    pub rows: usize,
    /// Elements along the minor dimension.
    pub columns: usize,
}

/// What a target's compiler can put into one fusion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FusionProfile {
    /// Operations that can be computed element by element inside a fusion. Empty: nothing is fused.
    pub inside: BTreeSet<Opcode>,
    /// Operations that a fusion may be rooted in besides those in `inside`.
    pub roots: BTreeSet<Opcode>,
    /// Most instructions that one fusion evaluates, copies of an instruction at another index counted.
    pub max_instructions: usize,
    /// Most arrays that one fusion reads and writes.
    pub max_operands: usize,
    /// Whether one kernel may fold rows and use the folds in the same row; see [`FuseRows`](crate::FuseRows). It folds a row before it
    /// stores anything of it, so that its result may lie where an operand does; see [`ShareRows`](crate::ShareRows).
    pub row_kernels: bool,
    /// Whether a fusion may write several arrays of the same dimensions.
    pub multi_output: bool,
    /// Whether elementwise operations on the result of a reduction may go into the reduction's fusion.
    pub reduce_epilogue: bool,
    /// Largest array that may be read along another dimension than its minor-most inside a fusion.
    pub max_transposed_bytes: usize,
    /// Whether `dynamic-update-slice` may be a root that writes only the update, in place.
    pub in_place_update: bool,
}

/// What a target's contractions take without extra cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DotProfile {
    /// Operands in any order of dimensions: transposes that feed a dot fold into its dimension numbers.
    pub any_operand_order: bool,
}

impl TargetProfile {
    /// A machine of no special abilities, for tests and as a start: one thread, 16-byte vectors, nothing unusual fused.
    pub fn generic() -> TargetProfile {
        TargetProfile {
            vector_bytes: 16,
            l1_bytes: 32 << 10,
            l2_bytes: 512 << 10,
            l3_bytes: 8 << 20,
            threads: 1,
            clock_hz: 2.5e9,
            memory_bandwidth: 1e10,
            cache_bandwidth: 4e10,
            launch_seconds: 5e-7,
            fusion: FusionProfile::loops(),
            dot: DotProfile { any_operand_order: true },
            tiles: None,
            memory_bytes: None,
            memory_spaces: Vec::new(),
        }
    }

    /// Whether an operation may be inside a fusion, computed element by element.
    pub fn can_fuse(&self, op: &Op) -> bool {
        self.fusion.inside.contains(&op.opcode())
    }

    /// Whether a fusion may be rooted in an operation.
    pub fn can_root(&self, op: &Op) -> bool {
        self.can_fuse(op) || self.fusion.roots.contains(&op.opcode())
    }
}

impl FusionProfile {
    /// What a compiler of loop nests over an elemental emitter can do: elementwise and movement inside; reductions and
    /// in-place updates as roots.
    pub fn loops() -> FusionProfile {
        let of = |family| Opcode::ALL.iter().copied().filter(move |o| o.family() == family);
        let mut inside: BTreeSet<Opcode> = of(Family::Elementwise).chain(of(Family::Movement)).collect();
        // Copies are made on purpose, bitcasts are free outside; updates change a buffer and can only be the root.
        for opcode in [Opcode::Copy, Opcode::Bitcast, Opcode::DynamicUpdateSlice] {
            inside.remove(&opcode);
        }
        inside.extend([Opcode::Gather, Opcode::Constant]);
        FusionProfile {
            inside,
            roots: BTreeSet::from([Opcode::Reduce, Opcode::DynamicUpdateSlice]),
            max_instructions: 512,
            max_operands: 48,
            row_kernels: false,
            multi_output: true,
            reduce_epilogue: false,
            max_transposed_bytes: 32 << 10,
            in_place_update: true,
        }
    }

    /// What a compiler can do that also keeps folds at hand: loops, whole rows in one kernel, and what is made of a reduction's result
    /// in the kernel that reduces.
    pub fn folds() -> FusionProfile {
        FusionProfile { row_kernels: true, reduce_epilogue: true, ..FusionProfile::loops() }
    }

    /// Nothing is fused: each operation is compiled alone.
    pub fn none() -> FusionProfile {
        FusionProfile { inside: BTreeSet::new(), roots: BTreeSet::new(), ..FusionProfile::loops() }
    }
}
