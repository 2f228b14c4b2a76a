//! Target machine of generated code, and its properties for the emitters.

use std::fmt;
use std::sync::{Arc, OnceLock};

use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::targets::TargetMachine;

use xla_hlo::{Error, Result};

mod machine;
mod passes;

pub(crate) use machine::bare_host_machine;
pub use machine::{CodegenLevel, Machine, MachineOptions};
use machine::{Generator, GeneratorPool};
pub use passes::Passes;

/// Means by which the threads of a program that many threads run at once (SIMT) know of themselves and of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Simt {
    /// By NVIDIA's intrinsics, in PTX.
    Nvptx,
    /// By calls into a runtime that runs them on the host; see [`crate::simt`].
    Host,
}

/// A target: triple, CPU, features, and properties for the emitters. Cheap to clone, `Send + Sync`.
#[derive(Clone)]
pub struct Target(Arc<Description>);

struct Description {
    data_layout: String,
    abilities: Abilities,
    simt: Option<Simt>,
    generators: Arc<GeneratorPool>,
}

/// Hardware abilities of a target, found by asking LLVM to compile a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Bits of the widest vector register worth using; 0 where emission should stay scalar (GPUs).
    pub vector_bits: u32,
    /// Fused multiply-add is one instruction, for f32 and f64.
    pub fma: bool,
    /// Rounding to integral values is inline code, not a library call.
    pub rounding: bool,
    /// Conversion between f16 and f32 is inline code, not a library call.
    pub half: bool,
    /// AVX-512F.
    pub avx512: bool,
}

/// Processors that code generation can pretend to be on this machine's architecture, by LLVM's names: the levels of
/// x86-64 by their registers (SSE2, SSE4.2, AVX2, AVX-512), then what current servers have beyond them. LLVM ignores
/// names that it does not know, so they are listed.
pub const HOST_CPUS: &[&str] = if cfg!(target_arch = "x86_64") {
    &["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "znver4", "znver5", "sapphirerapids"]
} else {
    &[]
};

/// Scalar registers, everything in hardware: GPUs.
const SCALAR: Abilities = Abilities { vector_bits: 0, fma: true, rounding: true, half: true, avx512: false };

impl Target {
    /// The machine this process runs on, with all its features.
    pub fn host() -> Result<Target> {
        static HOST: OnceLock<Target> = OnceLock::new();
        if let Some(host) = HOST.get() {
            return Ok(host.clone());
        }
        let triple = TargetMachine::get_default_triple();
        let cpu = TargetMachine::get_host_cpu_name();
        let features = TargetMachine::get_host_cpu_features();
        let host =
            Target::new(&triple.as_str().to_string_lossy(), &cpu.to_string_lossy(), &features.to_string_lossy())?;
        Ok(HOST.get_or_init(|| host).clone())
    }

    /// A target by LLVM triple, CPU name (empty for the triple's baseline) and features (`"+avx2,-fma"`, may be empty).
    ///
    /// Fails with `InvalidArgument` when LLVM does not know the triple or the CPU. For another kind of processor than
    /// this machine's, call its `initialize` in `inkwell::targets::Target` before.
    pub fn new(triple: &str, cpu: &str, features: &str) -> Result<Target> {
        let generators = Arc::new(GeneratorPool::new(triple, cpu, features));
        let generator = generators.create(&MachineOptions::default())?;
        let data_layout = generator.data_layout();
        let abilities = probe(triple, &generator)?;
        generators.put(generator);
        let simt = triple.starts_with("nvptx").then_some(Simt::Nvptx);
        Ok(Target(Arc::new(Description { data_layout, abilities, simt, generators })))
    }

    /// This machine as if its processor were `cpu`, by LLVM's name: that processor's vector width, masks and
    /// instructions, but for those that this machine lacks, so that the code can be run here.
    ///
    /// Fails with `InvalidArgument` for a processor that is not in [`HOST_CPUS`].
    pub fn host_as(cpu: &str) -> Result<Target> {
        let features = TargetMachine::get_host_cpu_features();
        let features = features.to_string_lossy();
        let lacking: Vec<&str> = features.split(',').filter(|feature| feature.starts_with('-')).collect();
        Target::named(cpu, &lacking.join(","))
    }

    /// The processor `cpu` of this machine's architecture with all that it has, which this machine may be unable to
    /// run.
    ///
    /// Fails with `InvalidArgument` for a processor that is not in [`HOST_CPUS`].
    pub fn whole(cpu: &str) -> Result<Target> {
        Target::named(cpu, "")
    }

    fn named(cpu: &str, features: &str) -> Result<Target> {
        if !HOST_CPUS.contains(&cpu) {
            let names = if HOST_CPUS.is_empty() { "none of this architecture".into() } else { HOST_CPUS.join(", ") };
            return Err(Error::invalid_argument(format!("no processor is called {cpu:?}; there are {names}")));
        }
        Target::new(&TargetMachine::get_default_triple().as_str().to_string_lossy(), cpu, features)
    }

    /// An NVIDIA GPU by its architecture: `sm_90`, `sm_100a`. `InvalidArgument` for one that LLVM does not know.
    pub fn nvptx(architecture: &str) -> Result<Target> {
        let number =
            architecture.strip_prefix("sm_").map(|rest| rest.trim_end_matches(|c: char| c.is_ascii_lowercase()));
        if !number.is_some_and(|number| number.len() >= 2 && number.bytes().all(|b| b.is_ascii_digit())) {
            return Err(Error::invalid_argument(format!(
                "{architecture:?} is not a GPU architecture; they are named sm_70, sm_80, sm_90, sm_90a, sm_100 and so on"
            )));
        }
        machine::initialize_nvptx();
        Target::new("nvptx64-nvidia-cuda", architecture, "")
    }

    /// This machine as one that runs the threads of GPU kernels: scalar code, and the runtime of [`Simt::Host`].
    pub fn host_threads() -> Result<Target> {
        let host = Target::host()?.0;
        let abilities = Abilities { vector_bits: 0, avx512: false, ..host.abilities };
        Ok(Target(Arc::new(Description {
            data_layout: host.data_layout.clone(),
            abilities,
            simt: Some(Simt::Host),
            generators: host.generators.clone(),
        })))
    }

    /// Means by which threads of one kernel know of each other, for targets that run many at once.
    pub fn simt(&self) -> Option<Simt> {
        self.0.simt
    }

    /// The LLVM triple.
    pub fn triple(&self) -> &str {
        &self.0.generators.triple
    }

    /// LLVM's name of the CPU; empty for the triple's baseline.
    pub fn cpu(&self) -> &str {
        &self.0.generators.cpu
    }

    /// The features beyond the CPU's own, in LLVM's spelling.
    pub fn features(&self) -> &str {
        &self.0.generators.features
    }

    /// LLVM's data layout string.
    pub fn data_layout(&self) -> &str {
        &self.0.data_layout
    }

    /// Abilities of the hardware.
    pub fn abilities(&self) -> Abilities {
        self.0.abilities
    }

    /// Lanes of `bits` wide elements in the widest register: 16 for 32 on AVX-512, 1 where emission stays scalar.
    pub fn lanes(&self, bits: u32) -> u32 {
        (self.0.abilities.vector_bits / bits.max(1)).max(1)
    }

    /// A code generator for this target: one that was used before and is idle, else a new one.
    pub fn machine(&self, options: &MachineOptions) -> Result<Machine> {
        Machine::new(&self.0.generators, options)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("triple", &self.triple())
            .field("cpu", &self.cpu())
            .field("features", &self.features())
            .field("abilities", &self.abilities())
            .finish()
    }
}

/// LLVM's version: `22.1.8`.
pub fn llvm_version() -> String {
    let (major, minor, patch) = inkwell::support::get_llvm_version();
    format!("{major}.{minor}.{patch}")
}

/// Compiles two small functions for the target and reads the assembly: the surest answer to "is this one instruction
/// here", as it is LLVM's own, whatever mixture of CPU name and features says so.
fn probe(triple: &str, generator: &Generator) -> Result<Abilities> {
    if triple.starts_with("nvptx") || triple.starts_with("amdgcn") {
        return Ok(SCALAR);
    }
    let context = Context::create();
    let source = PROBE.replace("@TRIPLE@", triple);
    let buffer = MemoryBuffer::create_from_memory_range_copy(source.as_bytes(), "probe");
    let module = context
        .create_module_from_ir(buffer)
        .map_err(|reason| Error::internal(format!("the target probe does not parse: {reason}")))?;
    let text = generator.assembly(&module)?;
    let has = |word: &str| text.contains(word);
    let vector_bits = match () {
        () if has("%zmm") => 512,
        () if has("%ymm") => 256,
        () if triple.starts_with("riscv") && !has("vset") => 0,
        () => 128,
    };
    Ok(Abilities {
        vector_bits,
        fma: !has("fmaf"),
        rounding: !has("floorf"),
        half: !has("__extendhfsf2") && !has("__truncsfhf2"),
        avx512: has("%zmm"),
    })
}

const PROBE: &str = r#"
target triple = "@TRIPLE@"
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
declare <16 x float> @llvm.floor.v16f32(<16 x float>)
define void @fma(ptr %p, ptr %q) #0 {
  %a = load <16 x float>, ptr %p
  %b = load <16 x float>, ptr %q
  %c = call <16 x float> @llvm.fma.v16f32(<16 x float> %a, <16 x float> %b, <16 x float> %b)
  %d = call <16 x float> @llvm.floor.v16f32(<16 x float> %c)
  store <16 x float> %d, ptr %p
  ret void
}
define void @half(ptr %p, ptr %q) #0 {
  %a = load <4 x half>, ptr %p
  %b = fpext <4 x half> %a to <4 x float>
  store <4 x float> %b, ptr %q
  %c = load <4 x float>, ptr %p
  %d = fptrunc <4 x float> %c to <4 x half>
  store <4 x half> %d, ptr %q
  ret void
}
attributes #0 = { "prefer-vector-width"="512" }
"#;
