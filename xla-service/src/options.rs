//! Compile options: one immutable, hashable value.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use xla_passes::PassOptions;

/// Options of a compilation. Plain data: read nowhere else (no flags, no environment), part of the compilation cache's
/// key.
///
/// ```
/// use xla_service::{CompileOptions, FallbackPolicy};
///
/// let options = CompileOptions { host_fallback: FallbackPolicy::Forbid, ..CompileOptions::default() };
/// assert_ne!(options, CompileOptions::default());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompileOptions {
    /// Optimisation level.
    pub opt_level: OptLevel,
    /// Options of the passes: verification after each, passes left out, where to stop.
    pub passes: PassOptions,
    /// A directory for dumps of the module before and after passes, thunks and other stages; `None` for
    /// none.
    pub dump_to: Option<PathBuf>,
    /// Threads that the program may use; `None` for as many as the machine has cores.
    pub threads: Option<NonZeroUsize>,
    /// Bytes that one execution may need in all, arguments and results included; `None` for the limit of the backend's
    /// profile. Cheap values are then computed again instead of kept, and a program that still needs more is
    /// [`xla_hlo::Error::ResourceExhausted`].
    pub memory_limit: Option<u64>,
    /// Policy for operations that the backend does not lower.
    pub host_fallback: FallbackPolicy,
    /// A directory for results that take a backend long to compute, shared with other processes: machine code that
    /// another program assembles, measured choices. It is made when it is needed, processes may share it, and its files
    /// may be deleted at any time. `None`: nothing is kept.
    pub cache_dir: Option<PathBuf>,
    /// Whether compiled programs are kept in [`cache_dir`](CompileOptions::cache_dir) as well, on platforms whose
    /// serialised programs hold code. One that is found there is not compiled: no pass runs.
    pub cache_programs: bool,
    /// Whether a program may measure, when it first runs, which of several ways to compute something is the fastest.
    /// Otherwise what is in [`cache_dir`](CompileOptions::cache_dir) decides, and where nothing is, a rule. Ways may
    /// differ in how they round. For GPUs large products are then compiled in several ways, which takes longer.
    pub autotune: bool,
    /// Whether launches that follow each other may be sent as one, such as a CUDA graph, on devices where that is
    /// cheaper. Without it, and without optimisation, each is sent by itself: for profiles, and to find errors. Other
    /// platforms do the same with it as without.
    pub graphs: bool,
    /// Whether products and convolutions of f32 may round their factors to the 10 bits of TF32, on devices whose matrix
    /// units then are many times as fast: NVIDIA's GPUs from `sm_80` on. Sums stay f32. It is about operations that
    /// name no algorithm and whose `operand_precision` is `default` on both sides; `high` and `highest` never round.
    /// Other platforms compute the same with it as without.
    pub allow_tf32: bool,
    /// Whether floating-point arithmetic may take subnormal operands and results ("denormals") for zeros of their sign,
    /// as XLA:CPU does. It is a permission: the kernels of platform `cpu` use it on x86-64 and AArch64. What Rust code
    /// computes keeps subnormals, since Rust must not run in another floating-point environment than the default one:
    /// library calls such as large dots, operations left to the host, and constants folded by passes. Other platforms
    /// compute the same with it as without.
    pub flush_denormals: bool,
    /// Whether values of `f16` and `bf16` may stay `f32` from one operation to the next inside of a kernel, and be
    /// rounded once, where they are stored or converted to their type, as XLA does by default. It is a permission that
    /// platforms `gpu` and `gpu-emulated` use; others compute the same with it as without.
    pub excess_precision: bool,
}

/// Optimisation level. Results never differ by level but in rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OptLevel {
    /// Only required lowering.
    O0,
    /// Cheap optimisations.
    O1,
    /// Everything that usually pays.
    O2,
    /// Also optimisations that take long to compile.
    O3,
}

/// Policy for operations that a backend does not lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FallbackPolicy {
    /// Evaluate them on the host.
    Allow,
    /// Refuse to compile: [`xla_hlo::Error::Unimplemented`], naming the instruction.
    Forbid,
}

impl Default for CompileOptions {
    fn default() -> Self {
        CompileOptions {
            opt_level: OptLevel::O2,
            passes: PassOptions::default(),
            dump_to: None,
            threads: None,
            memory_limit: None,
            host_fallback: FallbackPolicy::Allow,
            cache_dir: None,
            cache_programs: false,
            autotune: false,
            graphs: true,
            allow_tf32: false,
            flush_denormals: false,
            excess_precision: false,
        }
    }
}

impl CompileOptions {
    /// [`CompileOptions::threads`], or the number of cores that this process may use.
    pub fn thread_count(&self) -> usize {
        let available = || std::thread::available_parallelism();
        self.threads.map_or_else(|| available().map_or(1, NonZeroUsize::get), NonZeroUsize::get)
    }
}
