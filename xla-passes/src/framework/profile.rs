//! Target profile: plain data about a target that a backend supplies to the passes.

use std::collections::{BTreeMap, BTreeSet};

use xla_hlo::ops::Family;
use xla_hlo::text::did_you_mean;
use xla_hlo::{ElementType, Error, Op, Opcode, Result};

/// Functions of one float that [`ExpandFunctions`](crate::ExpandFunctions) can expand into formulas.
pub(crate) const EXPANDABLE_FUNCTIONS: [Opcode; 22] = [
    Opcode::Acosh,
    Opcode::Asinh,
    Opcode::Atanh,
    Opcode::Tanh,
    Opcode::Sinh,
    Opcode::Cosh,
    Opcode::Acos,
    Opcode::Asin,
    Opcode::Atan,
    Opcode::Cbrt,
    Opcode::Erf,
    Opcode::ExponentialMinusOne,
    Opcode::LogPlusOne,
    Opcode::Logistic,
    Opcode::Rsqrt,
    Opcode::Tan,
    Opcode::RoundNearestAfz,
    Opcode::Ceil,
    Opcode::Floor,
    Opcode::RoundNearestEven,
    Opcode::Sign,
    Opcode::IsFinite,
];

/// Properties of a target for target-independent passes.
///
/// Passes query the profile, never the name of a backend. All sizes are in bytes. Bandwidths are for the whole device.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetProfile {
    /// Width of a vector register; 4 if there are none.
    pub vector_bytes: usize,
    /// Size of the L1 data cache of one core.
    pub l1_bytes: usize,
    /// Size of the L2 cache of one core.
    pub l2_bytes: usize,
    /// Size of the last-level cache of the device.
    pub l3_bytes: usize,
    /// Number of threads (or cores, or multiprocessors) that run a parallel loop.
    pub threads: usize,
    /// Clock rate of one thread in cycles per second.
    pub clock_hz: f64,
    /// Bandwidth of main memory in bytes per second.
    pub memory_bandwidth: f64,
    /// Bandwidth of the L2 caches in bytes per second.
    pub cache_bandwidth: f64,
    /// Latency of a kernel launch in seconds.
    pub launch_seconds: f64,
    /// Whether threads may split a reduction with any combiner, each thread reducing a contiguous part: HLO requires
    /// combiners to be associative. Otherwise, only combiners of a single operation are split; see
    /// [`SplitReductions`](crate::SplitReductions).
    pub splits_any_reduction: bool,
    /// Fusible operations and limits of fusion.
    pub fusion: FusionProfile,
    /// Forms of a contraction that cost nothing extra.
    pub dot: DotProfile,
    /// Dimension orders that cost nothing extra.
    pub layout: LayoutProfile,
    /// Tiles of arrays in memory; `None` for plain row-major memory.
    pub tiles: Option<TileProfile>,
    /// Operations that the target lacks. The `expand` stage expands those in [`expandable`](TargetProfile::expandable)
    /// into other operations. The backend rejects the rest or runs them on the host.
    pub lacks: BTreeSet<Opcode>,
    /// Forms of `topk` that the target supports natively, though it lacks the general one. None by default.
    pub top_k: TopKProfile,
    /// Maximum number of rows, by element type, of the matrices that the target factors and solves natively, though it
    /// lacks `cholesky` and `triangular-solve`: lower factors, and `x` in `a x = b` with `a` not transposed. None by
    /// default.
    pub small_matrices: BTreeMap<ElementType, usize>,
    /// Float types with arithmetic on the target.
    pub floats: FloatProfile,
    /// Float types narrower than 32 bits for which the target natively supports convolutions with operands and result
    /// of this type: it accumulates in `f32` and rounds once. [`UnifyConvolutionTypes`](crate::UnifyConvolutionTypes)
    /// rewrites the others to `f32`. None by default.
    pub convolution_floats: BTreeSet<ElementType>,
    /// Whether dots and convolutions of `f32` with precision `default` may round their operands to TF32; see
    /// [`AllowTf32`](crate::AllowTf32). Off by default.
    pub tf32: bool,
    /// Maximum memory of one execution in bytes, including arguments and results; see
    /// [`Rematerialize`](crate::Rematerialize). `None` for no limit.
    pub memory_bytes: Option<u64>,
    /// Memory spaces other than the default one, fastest first; see [`AssignMemorySpaces`](crate::AssignMemorySpaces).
    pub memory_spaces: Vec<MemorySpaceProfile>,
}

/// Limits of a native `topk` on a target without a general one; see [`ExpandTopK`](crate::ExpandTopK).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopKProfile {
    /// Maximum number of elements that it selects per row.
    pub most: usize,
    /// Supported element types.
    pub elements: BTreeSet<ElementType>,
}

/// Float types with arithmetic on a target.
///
/// Arrays of other float types are only stored, moved and converted; see [`NormalizeFloats`](crate::NormalizeFloats).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatProfile {
    /// Float types without arithmetic on the target.
    pub storage_only: BTreeSet<ElementType>,
    /// Type for the arithmetic of `storage_only` types. It must represent all their values; usually `f32`.
    pub compute_in: ElementType,
}

/// A memory of a device other than its default one, such as a scratchpad, and the values that may be placed in it.
///
/// Arguments and results of programs are always in the default memory, and so are operands and results of custom calls,
/// transfers and collectives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySpaceProfile {
    /// Number `n` of `S(n)` in layouts; not 0, which is the default memory.
    pub space: i64,
    /// Capacity for one execution in bytes.
    pub bytes: usize,
    /// Alignment in bytes of values in this memory. It must equal the alignment in the backend's
    /// [`BufferOptions`](crate::buffers::BufferOptions).
    pub alignment: usize,
    /// Size in bytes of the largest value that may be placed there.
    pub max_value_bytes: usize,
    /// Whether constants may be placed there, for the whole execution.
    pub constants: bool,
    /// Operations whose operands are copied into this memory right before them, if they are not there already and fit.
    pub staged: BTreeSet<Opcode>,
}

/// Tiles of arrays in device memory, padded to whole tiles; see [`Layout::tiles`](xla_hlo::Layout::tiles).
///
/// The two minor dimensions of an array are stored in tiles of `rows` by `columns` elements. A vector is stored in
/// tiles of `rows * columns` elements, and a scalar without tiles. Tiles are in row-major order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileProfile {
    /// Tile size along the second-minor dimension.
    pub rows: usize,
    /// Tile size along the minor dimension.
    pub columns: usize,
}

/// Operations that a target's compiler can fuse, and limits of fusions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FusionProfile {
    /// Operations that can be computed element by element inside a fusion. Nothing is fused if it is empty.
    pub inside: BTreeSet<Opcode>,
    /// Operations that may be the root of a fusion in addition to those in `inside`.
    pub roots: BTreeSet<Opcode>,
    /// Maximum number of instructions that one fusion evaluates. An instruction that is evaluated at several indices
    /// counts several times.
    pub max_instructions: usize,
    /// Maximum number of instructions of a row kernel, which evaluates many of its instructions in several loops.
    pub max_row_instructions: usize,
    /// Maximum code size of one fusion, in machine instructions per element, summed over all evaluations. Compile time
    /// is proportional to it. A sine counts as 25 additions.
    pub max_code: u64,
    /// Maximum register pressure of one fusion, in live 32-bit registers. Above it, the target would spill, and two
    /// kernels are faster.
    pub max_live_registers: usize,
    /// Maximum number of arrays that one fusion reads and writes.
    pub max_operands: usize,
    /// Whether one kernel may reduce rows and use the reductions in the same row; see [`FuseRows`](crate::FuseRows). It
    /// finishes the reductions of a row before it stores any element of the row, so that its result may alias an
    /// operand; see [`AliasRowOutputs`](crate::AliasRowOutputs).
    pub row_kernels: bool,
    /// Whether a fusion may have several results of equal dimensions.
    pub multi_output: bool,
    /// Maximum size in bytes of the results of independent kernels that are merged if they have equal dimensions. About
    /// the bytes that memory transfers during one launch; 0 if launches are almost free.
    pub horizontal_bytes: usize,
    /// Whether elementwise operations on the result of a reduction may be part of the reduction's fusion.
    pub reduce_epilogue: bool,
    /// Elementwise epilogues of contractions.
    pub epilogues: EpilogueProfile,
    /// Attentions that may become one fusion.
    pub attention: AttentionProfile,
    /// Size in bytes of the largest array that a fusion may read along another dimension than the minor-most one.
    pub max_transposed_bytes: usize,
    /// Whether `dynamic-update-slice` may be a root that only writes the update, in place.
    pub in_place_update: bool,
}

/// Contractions that a target can compute with an elementwise epilogue; see [`FuseEpilogues`](crate::FuseEpilogues).
/// None by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpilogueProfile {
    /// Supported operations: dots, convolutions.
    pub of: BTreeSet<Opcode>,
    /// Supported element types of operands and result.
    pub types: BTreeSet<ElementType>,
    /// Minimum number of flops. A smaller contraction is faster without epilogue, or as a loop in a kernel.
    pub least_flops: u64,
}

/// Attentions that a target computes in one kernel without storing the scores; see
/// [`FuseAttention`](crate::FuseAttention). None by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttentionProfile {
    /// Element types of the dots' operands. Unless [`full_precision`](Self::full_precision) is set, f32 requires that
    /// dots may be rounded to TF32, except with few queries.
    pub types: BTreeSet<ElementType>,
    /// Whether the kernel for many queries multiplies f32 operands without rounding them.
    pub full_precision: bool,
    /// Whether queries, keys and values may have any dimension order, instead of contiguous elements.
    pub any_head_order: bool,
    /// Head sizes by element size in bytes; empty for a target without such a kernel.
    pub head_sizes: BTreeMap<usize, HeadSizes>,
    /// Head sizes for sums of functions of scores, such as an attention's gradients, by element size in bytes; see
    /// [`FuseScores`](crate::FuseScores).
    pub sum_head_sizes: BTreeMap<usize, HeadSizes>,
    /// Minimum number of queries per head of a batch, so that the queries can share loads of the keys.
    pub least_queries: usize,
    /// Minimum number of keys per head of a batch.
    pub least_keys: usize,
    /// Maximum number of queries per head of a batch for the decode kernel, which is bound by memory bandwidth. It
    /// computes in full precision, and splits the keys of a head if there are few heads. 0 for a target without such a
    /// kernel.
    pub few_queries: usize,
    /// Number of queries that one thread block (GPU) or work item (CPU) computes.
    pub tile: usize,
    /// Maximum number of keys for which a kernel is worthwhile although its thread blocks or work items leave most of
    /// the machine idle.
    pub few_keys: usize,
    /// Whether 16-bit floats may be rounded at other points than the program states: a 16-bit softmax only at its end,
    /// and probabilities before the division.
    pub excess_precision: bool,
}

/// Supported sizes of an attention's heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadSizes {
    /// Sizes must be multiples of this number.
    pub step: usize,
    /// Largest size.
    pub most: usize,
}

impl HeadSizes {
    fn contain(self, size: usize) -> bool {
        size > 0 && size.is_multiple_of(self.step) && size <= self.most
    }
}

impl AttentionProfile {
    /// Whether heads may have this size and element type.
    pub fn takes_head(&self, (size, ty): (usize, ElementType)) -> bool {
        self.head_sizes.get(&ty.byte_width()).is_some_and(|sizes| sizes.contain(size))
    }

    /// Whether heads may have this size and element type in sums of functions of scores.
    pub fn takes_head_of_sum(&self, (size, ty): (usize, ElementType)) -> bool {
        self.sum_head_sizes.get(&ty.byte_width()).is_some_and(|sizes| sizes.contain(size))
    }
}

/// Forms of contractions that cost nothing extra on a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DotProfile {
    /// Whether operands may have any dimension order, so that a transpose of an operand folds into the dot's dimension
    /// numbers.
    pub any_operand_order: bool,
    /// Whether right operands are faster with contracted dimensions before free ones; see
    /// [`OrderRightOperands`](crate::OrderRightOperands). Off by default.
    pub right_rows: bool,
    /// Maximum size in bytes of operands and result of dots that are merged; see [`MergeDots`](crate::MergeDots). 0
    /// disables merging. This is the default, since only measurements show whether a target profits.
    pub merge_bytes: usize,
}

/// Dimension orders that a target prefers, in addition to those of contractions; see
/// [`AssignLayouts`](crate::AssignLayouts).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutProfile {
    /// Order of the arrays of convolutions.
    pub convolution: ConvolutionOrder,
    /// Order of filters that are constant or invariant in a loop; see
    /// [`OrderRightOperands`](crate::OrderRightOperands).
    pub filters: FilterOrder,
    /// Whether reductions of minor dimensions stay minor, since rows are reduced in the kernel that computes them.
    pub minor_reductions: bool,
}

/// Dimension order that a target requires of convolutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvolutionOrder {
    /// Any order: transposes of operands and results fold into the dimension numbers.
    Any,
    /// Batch, spatial, features; for the kernel spatial, input features, output features (NHWC, HWIO).
    ChannelsLast,
}

/// Dimension order that a target prefers for convolution filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterOrder {
    /// Any order, or the one of [`ConvolutionOrder`].
    Any,
    /// Output features first; input features at the position where the images have theirs: OHWI for images in NHWC,
    /// OIHW for NCHW. Libraries with this preference copy filters of another order first.
    OutputFeaturesFirst,
}

impl TargetProfile {
    /// Returns a profile without special abilities, for tests and as a base: one thread, 16-byte vectors, basic fusion.
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
            splits_any_reduction: false,
            fusion: FusionProfile::loops(),
            dot: DotProfile { any_operand_order: true, right_rows: false, merge_bytes: 0 },
            layout: LayoutProfile {
                convolution: ConvolutionOrder::Any,
                filters: FilterOrder::Any,
                minor_reductions: true,
            },
            tiles: None,
            lacks: BTreeSet::new(),
            top_k: TopKProfile::default(),
            small_matrices: BTreeMap::new(),
            floats: FloatProfile::all(),
            convolution_floats: BTreeSet::new(),
            tf32: false,
            memory_bytes: None,
            memory_spaces: Vec::new(),
        }
    }

    /// Returns a profile with every ability that passes query, for tests.
    pub fn able() -> TargetProfile {
        let epilogues = EpilogueProfile::contractions([ElementType::F32, ElementType::F64], 1000);
        let fusion = FusionProfile { epilogues, horizontal_bytes: 1 << 12, ..FusionProfile::reductions() };
        let dot = DotProfile { right_rows: true, merge_bytes: 1 << 20, ..TargetProfile::generic().dot };
        let layout = LayoutProfile { filters: FilterOrder::OutputFeaturesFirst, ..TargetProfile::generic().layout };
        TargetProfile {
            vector_bytes: 64,
            threads: 8,
            splits_any_reduction: true,
            fusion,
            dot,
            layout,
            ..TargetProfile::generic()
        }
    }

    /// Returns a profile like [`able`](TargetProfile::able) that lacks everything that passes can expand.
    pub fn poor() -> TargetProfile {
        let narrow = |ty: &ElementType| ty.is_float() && ty.bit_width() < 32;
        let storage_only = ElementType::ALL.iter().copied().filter(narrow).collect();
        let floats = FloatProfile { storage_only, ..FloatProfile::all() };
        TargetProfile { lacks: TargetProfile::expandable(), floats, ..TargetProfile::able() }
    }

    /// Removes the named abilities: operations (`cholesky`), and arithmetic in float types (`bf16`), which are then
    /// only stored.
    ///
    /// Returns [`Error::InvalidArgument`] for other names, and for abilities that cannot be expanded.
    pub fn without<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Result<TargetProfile> {
        let expandable = TargetProfile::expandable();
        for name in names {
            let float = ElementType::from_name(name).filter(|&ty| self.floats.can_compute(ty));
            match (Opcode::from_name(name).filter(|opcode| expandable.contains(opcode)), float) {
                (Some(opcode), _) => _ = self.lacks.insert(opcode),
                (None, Some(ty)) => _ = self.floats.storage_only.insert(ty),
                (None, None) => {
                    let known: Vec<&str> = expandable.iter().map(|opcode| opcode.name()).collect();
                    let hint = did_you_mean(name, known.iter().copied());
                    return Err(Error::invalid_argument(format!(
                        "a target cannot lack {name:?}{hint}; it can lack {}, and floats narrower than {}",
                        known.join(", "),
                        self.floats.compute_in
                    )));
                }
            }
        }
        Ok(self)
    }

    /// Returns the operations that a target may lack at no other cost than speed: stage `expand` expands them into
    /// other operations.
    pub fn expandable() -> BTreeSet<Opcode> {
        use Opcode::{Cholesky, Clamp, Fft, SelectAndScatter, TopK, TriangularSolve};
        let others = [Cholesky, TriangularSolve, TopK, Fft, SelectAndScatter, Clamp];
        others.into_iter().chain(EXPANDABLE_FUNCTIONS).collect()
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

impl EpilogueProfile {
    /// Returns an epilogue profile for dots and convolutions of these types with at least `least_flops` flops.
    pub fn contractions(types: impl IntoIterator<Item = ElementType>, least_flops: u64) -> EpilogueProfile {
        let of = BTreeSet::from([Opcode::Dot, Opcode::Convolution]);
        EpilogueProfile { of, types: types.into_iter().collect(), least_flops }
    }
}

impl FloatProfile {
    /// Returns a profile with arithmetic in all float types.
    pub fn all() -> FloatProfile {
        FloatProfile { storage_only: BTreeSet::new(), compute_in: ElementType::F32 }
    }
}

impl FusionProfile {
    /// Returns the profile of a compiler for loop nests with an elemental emitter: elementwise operations and data
    /// movement inside, reductions and in-place updates as roots.
    pub fn loops() -> FusionProfile {
        let of = |family| Opcode::ALL.iter().copied().filter(move |o| o.family() == family);
        let mut inside: BTreeSet<Opcode> = of(Family::Elementwise).chain(of(Family::Movement)).collect();
        // Copies are deliberate, and bitcasts are free outside of fusions. In-place updates write a buffer and can only
        // be roots.
        for opcode in [Opcode::Copy, Opcode::Bitcast, Opcode::DynamicUpdateSlice] {
            inside.remove(&opcode);
        }
        inside.extend([Opcode::Gather, Opcode::Constant]);
        FusionProfile {
            inside,
            roots: BTreeSet::from([Opcode::Reduce, Opcode::DynamicUpdateSlice]),
            max_instructions: 512,
            max_row_instructions: 512,
            max_code: u64::MAX,
            max_live_registers: usize::MAX,
            max_operands: 48,
            row_kernels: false,
            multi_output: true,
            horizontal_bytes: 0,
            reduce_epilogue: false,
            epilogues: EpilogueProfile::default(),
            attention: AttentionProfile::default(),
            max_transposed_bytes: 32 << 10,
            in_place_update: true,
        }
    }

    /// Returns the profile of a compiler that also uses reductions inside a kernel: loops, row kernels, and epilogues
    /// of reductions.
    pub fn reductions() -> FusionProfile {
        FusionProfile { row_kernels: true, reduce_epilogue: true, ..FusionProfile::loops() }
    }

    /// Returns a profile without fusion: each operation is compiled separately.
    pub fn none() -> FusionProfile {
        FusionProfile { inside: BTreeSet::new(), roots: BTreeSet::new(), ..FusionProfile::loops() }
    }
}
