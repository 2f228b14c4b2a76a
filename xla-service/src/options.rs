//! Compile options: one immutable, hashable value.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use xla_passes::PassOptions;

/// Options of a compilation. They are plain data and part of the key of the compilation cache. No flag or environment
/// variable adds to them.
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
    /// Options of the passes: verification after each pass, disabled passes, where to stop.
    pub passes: PassOptions,
    /// Directory for dumps of the module before and after passes, of thunks and of other stages; `None` for no dumps.
    pub dump_to: Option<PathBuf>,
    /// Number of threads that the program may use; `None` for the number of cores.
    pub threads: Option<NonZeroUsize>,
    /// Memory limit of one execution in bytes, including arguments and results; `None` for the limit of the backend's
    /// profile. To stay below it, the compiler rematerialises cheap values. A program that still needs more is
    /// [`xla_hlo::Error::ResourceExhausted`].
    pub memory_limit: Option<u64>,
    /// Policy for operations that the backend does not lower.
    pub host_fallback: FallbackPolicy,
    /// Directory for results that are slow to compute: machine code from an external assembler, autotuning
    /// measurements. It is created on first use, other processes may share it, and its files may be deleted at any
    /// time. `None` disables caching on disk.
    pub cache_dir: Option<PathBuf>,
    /// Whether compiled programs are also stored in [`cache_dir`](CompileOptions::cache_dir), on platforms whose
    /// serialised programs contain code. A program that is found there is not compiled: no pass runs.
    pub cache_programs: bool,
    /// Whether a program may measure at its first run which of several implementations is the fastest. Without
    /// measurement, stored results in [`cache_dir`](CompileOptions::cache_dir) select the implementation, or a
    /// heuristic if there are none. Implementations may differ in rounding. On GPUs, large matrix products are then
    /// compiled in several variants, which takes longer.
    pub autotune: bool,
    /// Whether consecutive launches may be sent as one unit, such as a CUDA graph, on devices where that is cheaper. If
    /// this is off, or at level `O0`, each launch is sent separately, which helps with profiling and debugging. Other
    /// platforms ignore it.
    pub graphs: bool,
    /// Whether matrix products and convolutions of f32 may round their operands to the 10-bit mantissa of TF32, on
    /// devices whose matrix units are then many times as fast: NVIDIA GPUs from `sm_80` on. Accumulation stays in f32.
    /// This applies to operations without an explicit algorithm whose `operand_precision` is `default` on both sides;
    /// `high` and `highest` never round. Other platforms ignore it.
    pub allow_tf32: bool,
    /// Whether floating-point arithmetic may flush subnormal operands and results (denormals) to zeros of their sign,
    /// as XLA:CPU does. This is a permission: the kernels of platform `cpu` use it on x86-64 and AArch64. Rust code
    /// must run in the default floating-point environment and therefore keeps subnormals: library calls such as large
    /// dots, operations with host fallback, and constant folding. Other platforms ignore it.
    pub flush_denormals: bool,
    /// Whether values of type `f16` and `bf16` may stay `f32` between operations of one kernel, and be rounded only
    /// when they are stored or converted to their type, as XLA does by default. This is a permission that platforms
    /// `gpu` and `gpu-emulated` use; others ignore it.
    pub excess_precision: bool,
}

/// Optimisation level. Results differ between levels only in rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OptLevel {
    /// Required lowering only.
    O0,
    /// Cheap optimisations.
    O1,
    /// All optimisations that usually pay off.
    O2,
    /// Additionally optimisations that compile slowly.
    O3,
}

/// Policy for operations that a backend does not lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FallbackPolicy {
    /// Evaluates them on the host.
    Allow,
    /// Fails the compilation with [`xla_hlo::Error::Unimplemented`], naming the instruction.
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
    /// Returns [`CompileOptions::threads`], or the number of cores that this process may use.
    pub fn thread_count(&self) -> usize {
        let available = || std::thread::available_parallelism();
        self.threads.map_or_else(|| available().map_or(1, NonZeroUsize::get), NonZeroUsize::get)
    }
}
