//! Target machine of generated code, and its properties for the emitters.

use std::fmt;
use std::sync::{Arc, OnceLock};

use xla_hlo::{Error, Result};

use crate::own_thread::{self, CODE_STACK};

mod abilities;
mod dots;
mod host;
mod machine;
pub(crate) mod names;
mod passes;
mod spec;
pub(crate) mod triple;
pub(crate) mod x86;

pub use abilities::{Abilities, FloatAbilities};
use abilities::{probe, probe_byte_dots};
pub use dots::{ByteDots, DotAbilities};
pub(crate) use machine::bare_host_machine;
pub use machine::{CodeGenerators, CodegenLevel, Machine, MachineOptions};
use machine::{GeneratorPool, MachineDescription};
pub use passes::Passes;
pub use spec::TargetSpec;
use triple::family;
pub use x86::{CpuidCheck, CpuidRegister, CpuidWord, OSXSAVE, X86Checks};

/// Mechanism that threads of a SIMT kernel use to get their numbers and to synchronize.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Simt {
    /// NVIDIA's intrinsics, in PTX.
    Nvptx,
    /// Calls into a runtime that runs the threads on the host; see [`crate::simt`].
    Host,
}

/// Target of code generation: triple, CPU, features, and properties for the emitters. Cheap to clone, `Send + Sync`.
#[derive(Clone)]
pub struct Target(Arc<Description>);

/// Default number of multiprocessors: that of a data centre GPU.
const MULTIPROCESSORS: u32 = 132;

#[derive(Clone)]
struct Description {
    data_layout: String,
    /// Size of a pointer in bytes.
    pointer_bytes: u32,
    big_endian: bool,
    abilities: Abilities,
    simt: Option<Simt>,
    multiprocessors: u32,
    generators: Arc<GeneratorPool>,
}

/// Processors of this machine's architecture that [`Target::host_as`] and [`Target::whole`] accept, by LLVM's names:
/// the levels of x86-64 by their registers (SSE2, SSE4.2, AVX2, AVX-512), then current servers with further features.
/// The list is explicit because LLVM ignores names that it does not know.
pub const HOST_CPUS: &[&str] = if cfg!(target_arch = "x86_64") {
    &["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "znver4", "znver5", "sapphirerapids"]
} else {
    &[]
};

impl Target {
    /// Returns the machine that this process runs on, with all its features.
    pub fn host() -> Result<Target> {
        static HOST: OnceLock<Target> = OnceLock::new();
        if let Some(host) = HOST.get() {
            return Ok(host.clone());
        }
        let names = host::names();
        let host = Target::new(&names.triple, &names.cpu, &names.features)?;
        Ok(HOST.get_or_init(|| host).clone())
    }

    /// Creates a target from LLVM triple, CPU name (empty for the triple's baseline) and features (`"+avx2,-fma"`, may
    /// be empty).
    ///
    /// Fails with `InvalidArgument` if LLVM does not know the triple or the CPU. For processors of other families than
    /// this machine's, [`Target::of`] registers them with LLVM.
    pub fn new(triple: &str, cpu: &str, features: &str) -> Result<Target> {
        let [triple, cpu, features] = [triple, cpu, features].map(str::to_string);
        Target::described(MachineDescription { triple, cpu, features, ..MachineDescription::default() })
    }

    /// Creates a target from a specification, for the processors of `generators`.
    ///
    /// Fails with `InvalidArgument` for a name that LLVM does not know, with the most similar known name, and for names
    /// that contradict each other.
    pub fn of(spec: &TargetSpec, generators: CodeGenerators) -> Result<Target> {
        let description = spec.resolve()?;
        generators.initialize();
        let target = Target::described(description)?;
        if family(target.triple().split('-').next().unwrap_or_default()) == Some("x86")
            && target.abilities().vector_bits == 0
        {
            return Err(Error::invalid_argument(format!(
                "processor {} with features {:?} has no SSE2: its floats would be rounded twice; name a processor that has it",
                target.cpu(),
                target.features()
            )));
        }
        Ok(target)
    }

    /// Whether code is WebAssembly.
    pub fn is_webassembly(&self) -> bool {
        family(self.triple().split('-').next().unwrap_or_default()) == Some("webassembly")
    }

    fn described(description: MachineDescription) -> Result<Target> {
        let description = description.normalized();
        let names = format!(
            "triple `{}`, processor `{}`, features `{}`, ABI `{}`",
            description.triple, description.cpu, description.features, description.abi
        );
        let fatal = |reason: &str| Error::invalid_argument(format!("LLVM cannot generate code for {names}: {reason}"));
        own_thread::run(CODE_STACK, move || Target::described_here(description), fatal)
    }

    fn described_here(description: MachineDescription) -> Result<Target> {
        let simt = description.triple.starts_with("nvptx").then_some(Simt::Nvptx);
        let generators = Arc::new(GeneratorPool::new(description));
        let generator = generators.create(&MachineOptions::default())?;
        let data_layout = generator.data_layout();
        let (pointer_bytes, big_endian) = generator.memory();
        let MachineDescription { triple, cpu, features, .. } = &generators.description;
        let mut abilities = probe(triple, &generator)?;
        abilities.dots = match family(triple.split('-').next().unwrap_or_default()) {
            _ if abilities.vector_bits == 0 => DotAbilities::NONE,
            Some("x86") => DotAbilities::of_x86(&x86::features(cpu, features), abilities.vector_bits),
            Some("aarch64") if !big_endian => probe_byte_dots(triple, &generator)?,
            _ => DotAbilities::NONE,
        };
        generators.put(generator);
        Ok(Target(Arc::new(Description {
            data_layout,
            pointer_bytes,
            big_endian,
            abilities,
            simt,
            multiprocessors: MULTIPROCESSORS,
            generators,
        })))
    }

    /// Returns this machine with the vector width, masks and instructions of processor `cpu` (LLVM's name), without
    /// those that this machine lacks, so that the code can run here.
    ///
    /// Fails with `InvalidArgument` for a processor that is not in [`HOST_CPUS`].
    pub fn host_as(cpu: &str) -> Result<Target> {
        let lacking: Vec<&str> = host::names().features.split(',').filter(|feature| feature.starts_with('-')).collect();
        Target::named(cpu, &lacking.join(","))
    }

    /// Returns the processor `cpu` of this machine's architecture with all its features; this machine may be unable to
    /// run the code.
    ///
    /// Fails with `InvalidArgument` for a processor that is not in [`HOST_CPUS`].
    pub fn whole(cpu: &str) -> Result<Target> {
        Target::named(cpu, "")
    }

    fn named(cpu: &str, features: &str) -> Result<Target> {
        if !HOST_CPUS.contains(&cpu) {
            let names = if HOST_CPUS.is_empty() { "none of this architecture".into() } else { HOST_CPUS.join(", ") };
            return Err(Error::invalid_argument(format!("processor {cpu:?} does not exist; there are {names}")));
        }
        Target::new(&host::names().triple, cpu, features)
    }

    /// Returns an NVIDIA GPU by its architecture: `sm_90`, `sm_100a`.
    ///
    /// Fails with `InvalidArgument` for an architecture that LLVM does not know.
    pub fn nvptx(architecture: &str) -> Result<Target> {
        let number =
            architecture.strip_prefix("sm_").map(|rest| rest.trim_end_matches(|c: char| c.is_ascii_lowercase()));
        if !number.is_some_and(|number| number.len() >= 2 && number.bytes().all(|b| b.is_ascii_digit())) {
            return Err(Error::invalid_argument(format!(
                "{architecture:?} is not a GPU architecture; GPU architectures are named sm_70, sm_80, sm_90, sm_90a, sm_100 and so on"
            )));
        }
        machine::initialize_nvptx();
        Target::new("nvptx64-nvidia-cuda", architecture, "")
    }

    /// Returns this machine as an executor of GPU kernels' threads: scalar code, and the runtime of [`Simt::Host`].
    pub fn host_threads() -> Result<Target> {
        let host = Target::host()?.0;
        let abilities = Abilities { vector_bits: 0, avx512: false, dots: DotAbilities::NONE, ..host.abilities };
        Ok(Target(Arc::new(Description { abilities, simt: Some(Simt::Host), ..Description::clone(&host) })))
    }

    /// Returns this target with another number of multiprocessors, each of which runs several blocks of threads at a
    /// time. Kernels are divided into blocks so that all multiprocessors have work. No result depends on it.
    #[must_use]
    pub fn with_multiprocessors(&self, multiprocessors: u32) -> Target {
        Target(Arc::new(Description { multiprocessors: multiprocessors.max(1), ..Description::clone(&self.0) }))
    }

    /// Returns the number of multiprocessors of a target with many threads.
    pub fn multiprocessors(&self) -> u32 {
        self.0.multiprocessors
    }

    /// Returns the mechanism that threads of one kernel use to communicate, for targets with many threads.
    pub fn simt(&self) -> Option<Simt> {
        self.0.simt
    }

    /// Returns the compute capability of an NVIDIA GPU, for example 90 for `sm_90a`.
    pub fn compute_capability(&self) -> Option<u32> {
        let digits =
            |cpu: &str| cpu.trim_start_matches("sm_").trim_end_matches(|c: char| c.is_ascii_lowercase()).parse();
        (self.simt() == Some(Simt::Nvptx)).then(|| digits(self.cpu()).ok()).flatten()
    }

    /// Returns the LLVM triple.
    pub fn triple(&self) -> &str {
        &self.0.generators.description.triple
    }

    /// Returns LLVM's name of the CPU; empty for the triple's baseline.
    pub fn cpu(&self) -> &str {
        &self.0.generators.description.cpu
    }

    /// Returns the features beyond the CPU's own, in LLVM's syntax.
    pub fn features(&self) -> &str {
        &self.0.generators.description.features
    }

    /// Returns LLVM's data layout string.
    pub fn data_layout(&self) -> &str {
        &self.0.data_layout
    }

    /// Returns the size of a pointer in bytes.
    pub fn pointer_bytes(&self) -> u32 {
        self.0.pointer_bytes
    }

    /// Whether the target is big-endian.
    pub fn is_big_endian(&self) -> bool {
        self.0.big_endian
    }

    /// Returns the abilities of the hardware.
    pub fn abilities(&self) -> Abilities {
        self.0.abilities
    }

    /// Returns the lanes of `bits` wide elements in the widest register: 16 for 32 bits on AVX-512, 1 for scalar code.
    pub fn lanes(&self, bits: u32) -> u32 {
        (self.0.abilities.vector_bits / bits.max(1)).max(1)
    }

    /// Returns a code generator for this target: an idle one from the pool, or a new one.
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

/// Returns LLVM's version, for example `22.1.8`.
pub fn llvm_version() -> String {
    let (major, minor, patch) = inkwell::support::get_llvm_version();
    format!("{major}.{minor}.{patch}")
}
