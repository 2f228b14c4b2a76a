//! Target profile: plain data that a backend hands to the passes.

use std::collections::{BTreeMap, BTreeSet};

use xla_hlo::ops::Family;
use xla_hlo::text::did_you_mean;
use xla_hlo::{ElementType, Error, Op, Opcode, Result};

/// Functions of one float that [`ExpandFunctions`](crate::ExpandFunctions) has formulas for.
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

/// Profile of a target, for target-independent passes.
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
    /// Whether threads may share a reduction with any combiner, each a part in order: HLO wants combiners to be
    /// associative. Else only those that are one operation are; see [`SplitReductions`](crate::SplitReductions).
    pub splits_any_reduction: bool,
    /// Fusion: operations and limits.
    pub fusion: FusionProfile,
    /// Forms of a contraction that are as fast as any other.
    pub dot: DotProfile,
    /// Orders of dimensions that are as fast as any other.
    pub layout: LayoutProfile,
    /// The tiles that arrays lie in; `None` for plain row-major memory.
    pub tiles: Option<TileProfile>,
    /// Operations that the target has not: those of [`expandable`](TargetProfile::expandable) are put in terms of
    /// others, the rest stays for the backend to refuse or to leave to the host.
    pub lacks: BTreeSet<Opcode>,
    /// Form of `topk` that it does by itself, though it lacks the others. None by default.
    pub top_k: TopKProfile,
    /// Rows of the largest matrices of each element type that it factors and solves by itself, though it lacks
    /// `cholesky` and `triangular-solve`: lower factors, and `x` in `a x = b` with `a` as it is. None by default.
    pub small_matrices: BTreeMap<ElementType, usize>,
    /// The floats it computes in.
    pub floats: FloatProfile,
    /// Floats of fewer than 32 bits whose convolutions, of operands and result of that one type, it sums as `f32` and
    /// rounds once by itself; others are put in terms of `f32` by
    /// [`UnifyConvolutionTypes`](crate::UnifyConvolutionTypes). None by default.
    pub convolution_floats: BTreeSet<ElementType>,
    /// Whether products and convolutions of `f32` whose precision is `default` may round their factors to TF32; see
    /// [`AllowTf32`](crate::AllowTf32). Not by default.
    pub tf32: bool,
    /// Bytes that one execution may need in all, arguments and results included: see
    /// [`Rematerialize`](crate::Rematerialize). `None` for no limit.
    pub memory_bytes: Option<u64>,
    /// Memories besides the default one, the fastest first: see [`AssignMemorySpaces`](crate::AssignMemorySpaces).
    pub memory_spaces: Vec<MemorySpaceProfile>,
}

/// The `topk` of a target that has no general one; see [`ExpandTopK`](crate::ExpandTopK).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopKProfile {
    /// The most elements that it picks of a row.
    pub most: usize,
    /// The element types that it does it for.
    pub elements: BTreeSet<ElementType>,
}

/// Floats that a target computes in.
///
/// Arrays of the others are only stored, moved and converted; see [`NormalizeFloats`](crate::NormalizeFloats).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatProfile {
    /// Floats that the target has no arithmetic for.
    pub storage_only: BTreeSet<ElementType>,
    /// The type that it computes in instead: one that has every value of those in `storage_only`, `f32` as a rule.
    pub compute_in: ElementType,
}

/// A memory of a device besides its default one, such as a scratchpad, and the values that may live there.
///
/// Arguments and results of programs are always in the default memory, and so are operands and results of custom calls,
/// transfers and collectives.
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
/// The two minor dimensions of an array lie in tiles of `rows` by `columns` elements, a vector in tiles of as many
/// elements, and a scalar as it is. Tiles follow one another in row-major order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileProfile {
    /// Elements along the second minor dimension.
    pub rows: usize,
    /// Elements along the minor dimension.
    pub columns: usize,
}

/// Operations that a target's compiler can put into one fusion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FusionProfile {
    /// Operations that can be computed element by element inside a fusion. Empty: nothing is fused.
    pub inside: BTreeSet<Opcode>,
    /// Operations that a fusion may be rooted in besides those in `inside`.
    pub roots: BTreeSet<Opcode>,
    /// Most instructions that one fusion evaluates, copies of an instruction at another index counted.
    pub max_instructions: usize,
    /// The same for kernels of whole rows, which evaluate many of their instructions in several loops.
    pub max_row_instructions: usize,
    /// Most code of one fusion, in machine instructions for an element of each evaluation: compilation takes time in
    /// proportion, and a sine is as much as 25 additions.
    pub max_code: u64,
    /// Most registers of 32 bits that values of one fusion take at a time, by the number of those that are still to be
    /// computed for others: a target that would keep more of them in memory is better off with two kernels.
    pub max_live_registers: usize,
    /// Most arrays that one fusion reads and writes.
    pub max_operands: usize,
    /// Whether one kernel may reduce rows and use the reductions in the same row; see [`FuseRows`](crate::FuseRows). It
    /// reduces a row before it stores anything of it, so that its result may lie where an operand does; see
    /// [`AliasRowOutputs`](crate::AliasRowOutputs).
    pub row_kernels: bool,
    /// Whether a fusion may write several arrays of the same dimensions.
    pub multi_output: bool,
    /// Bytes of results up to which kernels over the same dimensions become one though they share nothing: about the
    /// bytes that memory moves in the time of one launch. 0 where launches cost next to nothing.
    pub horizontal_bytes: usize,
    /// Whether elementwise operations on the result of a reduction may go into the reduction's fusion.
    pub reduce_epilogue: bool,
    /// Elementwise operations that may go with the contraction whose result they take.
    pub epilogues: EpilogueProfile,
    /// Attentions that may become one fusion.
    pub attention: AttentionProfile,
    /// Largest array that may be read along another dimension than its minor-most inside a fusion.
    pub max_transposed_bytes: usize,
    /// Whether `dynamic-update-slice` may be a root that writes only the update, in place.
    pub in_place_update: bool,
}

/// Contractions that a target finishes with elementwise operations; see [`FuseEpilogues`](crate::FuseEpilogues). None
/// by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpilogueProfile {
    /// Operations: dots, convolutions.
    pub of: BTreeSet<Opcode>,
    /// Element types of operands and result for which it can.
    pub types: BTreeSet<ElementType>,
    /// Arithmetic operations below which a contraction is better alone, or a kernel's own loop.
    pub least_flops: u64,
}

/// Attentions that a target computes in one kernel, without scores in memory; see
/// [`FuseAttention`](crate::FuseAttention). None by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttentionProfile {
    /// Element types of the dots' operands; f32 of those that may be rounded to TF32, unless queries are few.
    pub types: BTreeSet<ElementType>,
    /// Sizes of heads by the bytes of their elements; nothing for a target that has no such kernel.
    pub head_sizes: BTreeMap<usize, HeadSizes>,
    /// The same for sums of functions of scores, such as an attention's gradients; see
    /// [`FuseScores`](crate::FuseScores).
    pub sum_head_sizes: BTreeMap<usize, HeadSizes>,
    /// Queries of a batch's head from which on a kernel has something to share, and keys.
    pub least_queries: usize,
    /// As for `least_queries`.
    pub least_keys: usize,
    /// Queries of a batch's head up to which a kernel goes at the pace of memory: in full precision, and with the keys
    /// of a head in parts where heads are few. 0 for a target that has no such kernel.
    pub few_queries: usize,
    /// Queries that a block of threads has.
    pub tile: usize,
    /// Keys up to which a kernel pays whose blocks leave most of the machine idle.
    pub few_keys: usize,
    /// Whether 16-bit floats may be rounded elsewhere than where the program says: a softmax of them at its end, and
    /// probabilities before they are divided.
    pub excess_precision: bool,
}

/// Sizes of an attention's heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadSizes {
    /// Number that they are multiples of.
    pub step: usize,
    /// The largest.
    pub most: usize,
}

impl HeadSizes {
    fn contain(self, size: usize) -> bool {
        size > 0 && size.is_multiple_of(self.step) && size <= self.most
    }
}

impl AttentionProfile {
    /// Whether heads may have as many elements of a type.
    pub fn takes_head(&self, (size, ty): (usize, ElementType)) -> bool {
        self.head_sizes.get(&ty.byte_width()).is_some_and(|sizes| sizes.contain(size))
    }

    /// The same for sums of functions of scores.
    pub fn takes_head_of_sum(&self, (size, ty): (usize, ElementType)) -> bool {
        self.sum_head_sizes.get(&ty.byte_width()).is_some_and(|sizes| sizes.contain(size))
    }
}

/// Forms that a target's contractions take without extra cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DotProfile {
    /// Operands in any order of dimensions: transposes that feed a dot fold into its dimension numbers.
    pub any_operand_order: bool,
    /// Whether right operands are read sooner where contracted dimensions come before free ones; see
    /// [`OrderRightOperands`](crate::OrderRightOperands). Not by default.
    pub right_rows: bool,
    /// Bytes of operands and result up to which dots are merged; see
    /// [`MergeDots`](crate::MergeDots). 0 where dots stay as they are: by default, since only a measurement tells
    /// whether a target gains by it.
    pub merge_bytes: usize,
}

/// Orders of dimensions that a target prefers, besides those of contractions; see
/// [`AssignLayouts`](crate::AssignLayouts).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutProfile {
    /// Of the arrays of convolutions.
    pub convolution: ConvolutionOrder,
    /// Of filters that are the same in all runs, or in all iterations of a loop; see
    /// [`OrderRightOperands`](crate::OrderRightOperands).
    pub filters: FilterOrder,
    /// Whether reductions along minor dimensions stay so, since rows are reduced in the kernel that makes them.
    pub minor_reductions: bool,
}

/// The order of dimensions in which a target takes convolutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvolutionOrder {
    /// Any: transposes of operands and results fold into the dimension numbers.
    Any,
    /// Images, places, channels; in the kernel places, input channels, output channels (NHWC, HWIO).
    ChannelsLast,
}

/// The order of dimensions in which a target takes the filters of convolutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterOrder {
    /// Any, or the one of [`ConvolutionOrder`].
    Any,
    /// Output features, then input features on the side on which the images have theirs: OHWI for images in NHWC, OIHW
    /// for NCHW. So do libraries that take others only after a copy.
    OutputFeaturesFirst,
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

    /// A target that can do everything that passes know of, to try them on.
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

    /// A target like [`able`](TargetProfile::able) that lacks everything that passes can do without.
    pub fn poor() -> TargetProfile {
        let narrow = |ty: &ElementType| ty.is_float() && ty.bit_width() < 32;
        let storage_only = ElementType::ALL.iter().copied().filter(narrow).collect();
        let floats = FloatProfile { storage_only, ..FloatProfile::all() };
        TargetProfile { lacks: TargetProfile::expandable(), floats, ..TargetProfile::able() }
    }

    /// A target like this one without the named abilities: operations (`cholesky`), and floats (`bf16`) that it then
    /// only stores.
    ///
    /// [`Error::InvalidArgument`] for what is neither, and for what programs cannot do without.
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
                        "no target can do without {name:?}{hint}; there is {}, and floats narrower than {}",
                        known.join(", "),
                        self.floats.compute_in
                    )));
                }
            }
        }
        Ok(self)
    }

    /// Operations that a target may lack without losing anything but speed: stage `expand` puts them in terms of
    /// others.
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
    /// Dots and convolutions of those types, from `least_flops` arithmetic operations on.
    pub fn contractions(types: impl IntoIterator<Item = ElementType>, least_flops: u64) -> EpilogueProfile {
        let of = BTreeSet::from([Opcode::Dot, Opcode::Convolution]);
        EpilogueProfile { of, types: types.into_iter().collect(), least_flops }
    }
}

impl FloatProfile {
    /// Arithmetic in every float type.
    pub fn all() -> FloatProfile {
        FloatProfile { storage_only: BTreeSet::new(), compute_in: ElementType::F32 }
    }
}

impl FusionProfile {
    /// Profile of a compiler of loop nests over an elemental emitter: elementwise and movement inside; reductions and
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

    /// Profile of a compiler that also keeps reductions at hand: loops, whole rows in one kernel, and operations on a
    /// reduction's result in the kernel that reduces.
    pub fn reductions() -> FusionProfile {
        FusionProfile { row_kernels: true, reduce_epilogue: true, ..FusionProfile::loops() }
    }

    /// Nothing is fused: each operation is compiled alone.
    pub fn none() -> FusionProfile {
        FusionProfile { inside: BTreeSet::new(), roots: BTreeSet::new(), ..FusionProfile::loops() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_lack_operations_and_floats_by_name() {
        let poor = TargetProfile::generic().without(["cholesky", "bf16", "tanh"]).expect("what a target may lack");
        assert_eq!(poor.lacks, BTreeSet::from([Opcode::Cholesky, Opcode::Tanh]));
        assert_eq!(poor.floats.storage_only, BTreeSet::from([ElementType::BF16]));
        assert_eq!(poor.floats.computed_in(ElementType::BF16), ElementType::F32);
        // Types that are not storage-only are computed as they are.
        for ty in [ElementType::F16, ElementType::F32, ElementType::F64, ElementType::S8, ElementType::C64] {
            assert_eq!(poor.floats.computed_in(ty), ty);
        }
    }

    #[test]
    fn what_programs_cannot_do_without_is_refused() {
        for name in ["add", "f32", "f64", "s8", "tan_h", ""] {
            let error = TargetProfile::generic().without([name]).expect_err(name).to_string();
            assert!(error.contains("no target can do without") && error.contains("cholesky"), "{error}");
        }
    }
}
