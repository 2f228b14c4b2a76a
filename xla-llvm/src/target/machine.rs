//! LLVM's code generators, pooled for reuse: on its first function, a new one builds the tables of instruction
//! selection, which takes longer than compiling a small kernel.
#![expect(unsafe_code, reason = "a code generator moves between threads")]

use std::sync::{Arc, Mutex, Once, PoisonError};

use inkwell::OptimizationLevel;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;
use inkwell::targets::{
    ByteOrdering, CodeModel, FileType, InitializationConfig, RelocMode, Target as LlvmTarget, TargetMachine,
    TargetMachineOptions, TargetTriple,
};

use xla_hlo::{Error, Result};
use xla_service::Relocation;

use super::host;
use super::passes::Passes;

/// Effort of LLVM's code generator; mid-level passes are configured by [`MachineOptions::passes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CodegenLevel {
    /// Fast instruction selection and register allocation; for debugging.
    None,
    /// Inexpensive optimizations.
    Less,
    /// LLVM's default.
    #[default]
    Default,
    /// All optimizations.
    Aggressive,
}

/// Options of one [`Machine`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MachineOptions {
    /// Effort of the code generator.
    pub level: CodegenLevel,
    /// Passes that run before code generation.
    pub passes: Option<Passes>,
}

/// Code generator for a target, used by one thread at a time and returned to the pool on drop.
pub struct Machine {
    /// Present until the drop.
    generator: Option<Generator>,
    pool: Arc<GeneratorPool>,
}

impl Machine {
    pub(super) fn new(pool: &Arc<GeneratorPool>, options: &MachineOptions) -> Result<Machine> {
        let generator = match pool.take(options) {
            Some(generator) => generator,
            None => pool.create(options)?,
        };
        Ok(Machine { generator: Some(generator), pool: pool.clone() })
    }

    /// Runs the configured passes, if any, and generates an object file in memory.
    pub fn object(&self, module: &Module<'_>) -> Result<Vec<u8>> {
        self.generator()?.object(module)
    }

    /// Runs the configured passes, if any, and generates assembly text.
    pub fn assembly(&self, module: &Module<'_>) -> Result<String> {
        self.generator()?.assembly(module)
    }

    fn generator(&self) -> Result<&Generator> {
        self.generator.as_ref().ok_or_else(|| Error::internal("the code generator was returned to its pool"))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // After a panic, the state of the generator is unknown.
        if let Some(generator) = self.generator.take().filter(|_| !std::thread::panicking()) {
            self.pool.put(generator);
        }
    }
}

/// Target as passed to LLVM.
#[derive(Clone, Debug, Default)]
pub(super) struct MachineDescription {
    pub triple: String,
    pub cpu: String,
    pub features: String,
    /// Name of the ABI; empty for the triple's default.
    pub abi: String,
    pub relocation: Relocation,
}

impl MachineDescription {
    /// Normalizes the triple to all four parts in order. LLVM parses parts by position: it reads `eabihf` in
    /// `thumbv7em-none-eabihf` as an unknown system, and then generates code for another ABI.
    pub fn normalized(self) -> MachineDescription {
        let triple = TargetMachine::normalize_triple(&TargetTriple::create(&self.triple));
        MachineDescription { triple: triple.as_str().to_string_lossy().into_owned(), ..self }
    }
}

/// Set of processor families that code can be generated for. Each constructor links LLVM's code generators for its
/// families.
#[derive(Clone, Copy, Debug)]
pub struct CodeGenerators(fn());

impl CodeGenerators {
    /// Returns the code generator for this machine.
    pub fn host() -> CodeGenerators {
        CodeGenerators(initialize_host)
    }

    /// Returns all code generators that this LLVM was built with.
    pub fn all() -> CodeGenerators {
        CodeGenerators(initialize_all)
    }

    /// Registers the code generators with LLVM.
    pub(super) fn initialize(self) {
        (self.0)();
    }
}

impl Default for CodeGenerators {
    fn default() -> CodeGenerators {
        CodeGenerators::host()
    }
}

/// Pool of code generators for one target.
pub(super) struct GeneratorPool {
    pub description: MachineDescription,
    /// Generators that are not in use.
    idle: Mutex<Vec<Generator>>,
}

impl GeneratorPool {
    pub fn new(description: MachineDescription) -> GeneratorPool {
        GeneratorPool { description, idle: Mutex::default() }
    }

    pub fn create(&self, options: &MachineOptions) -> Result<Generator> {
        let machine = create(&self.description, options)?;
        Ok(Generator { machine, options: options.clone() })
    }

    fn take(&self, options: &MachineOptions) -> Option<Generator> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let place = idle.iter().position(|generator| generator.options == *options)?;
        Some(idle.swap_remove(place))
    }

    pub fn put(&self, generator: Generator) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(generator);
    }
}

/// LLVM's target machine, with the options of its creation.
pub(super) struct Generator {
    machine: TargetMachine,
    options: MachineOptions,
}

// SAFETY: a target machine has no thread affinity. Its cached tables (by processor and features) point only to
// themselves and to constants of LLVM. It must not be used by two threads at once, which its single owner ensures.
unsafe impl Send for Generator {}

/// Creates LLVM's machine for this process without a processor name or features: for the linker, which generates no
/// code.
pub(crate) fn bare_host_machine() -> Result<TargetMachine> {
    let triple = host::names().triple.clone();
    create(&MachineDescription { triple, ..MachineDescription::default() }, &MachineOptions::default())
}

/// Registers this machine's processor with LLVM. Callers register other processors on demand, so that a statically
/// linked library contains none that it does not use.
fn initialize_host() {
    static INITIALIZED: Once = Once::new();
    // Fails if LLVM was built without this processor; the lookup by triple then reports the error.
    INITIALIZED.call_once(|| {
        LlvmTarget::initialize_native(&WITHOUT_DISASSEMBLER).ok();
    });
}

/// Registers LLVM's backend for NVIDIA GPUs.
pub(super) fn initialize_nvptx() {
    static INITIALIZED: Once = Once::new();
    INITIALIZED.call_once(|| LlvmTarget::initialize_nvptx(&WITHOUT_DISASSEMBLER));
}

/// Registers all backends that this LLVM was built with.
fn initialize_all() {
    static INITIALIZED: Once = Once::new();
    INITIALIZED.call_once(|| LlvmTarget::initialize_all(&WITHOUT_DISASSEMBLER));
}

const WITHOUT_DISASSEMBLER: InitializationConfig = InitializationConfig {
    asm_parser: true,
    asm_printer: true,
    base: true,
    disassembler: false,
    info: true,
    machine_code: true,
};

fn create(description: &MachineDescription, options: &MachineOptions) -> Result<TargetMachine> {
    initialize_host();
    let MachineDescription { triple, cpu, features, abi, relocation } = description;
    let parsed = TargetTriple::create(triple);
    let target = LlvmTarget::from_triple(&parsed)
        .map_err(|reason| Error::invalid_argument(format!("LLVM has no target for triple `{triple}`: {reason}")))?;
    let level = match options.level {
        // For nested loops (such as select-and-scatter), the software pipeliner of LLVM 22 generates wrong code.
        CodegenLevel::Default | CodegenLevel::Aggressive if triple.starts_with("hexagon") => OptimizationLevel::Less,
        CodegenLevel::None => OptimizationLevel::None,
        CodegenLevel::Less => OptimizationLevel::Less,
        CodegenLevel::Default => OptimizationLevel::Default,
        CodegenLevel::Aggressive => OptimizationLevel::Aggressive,
    };
    let relocation = match relocation {
        // The WebAssembly linker places all code; position-independent code there means dynamic linking.
        _ if triple.starts_with("wasm") => RelocMode::Static,
        Relocation::Pic => RelocMode::PIC,
        Relocation::Static => RelocMode::Static,
    };
    // An object is contiguous in memory and reaches outside symbols through the linker's stubs. LLVM's default for JIT
    // code is the large code model, in which fast instruction selection supports no calls and constants cannot be
    // operands.
    let all = TargetMachineOptions::new().set_cpu(cpu).set_features(features).set_abi(abi).set_level(level);
    let all = all.set_reloc_mode(relocation).set_code_model(CodeModel::Small);
    target.create_target_machine_from_options(&parsed, all).ok_or_else(|| {
        Error::invalid_argument(format!(
            "LLVM cannot generate code for triple `{triple}`, cpu `{cpu}`, features `{features}`"
        ))
    })
}

impl Generator {
    /// Returns LLVM's data layout string of the target.
    pub(super) fn data_layout(&self) -> String {
        self.machine.get_target_data().get_data_layout().as_str().to_string_lossy().into_owned()
    }

    /// Returns the pointer size in bytes, and whether the target is big-endian.
    pub(super) fn memory(&self) -> (u32, bool) {
        let data = self.machine.get_target_data();
        (data.get_pointer_byte_size(None), matches!(data.get_byte_ordering(), ByteOrdering::BigEndian))
    }

    fn object(&self, module: &Module<'_>) -> Result<Vec<u8>> {
        if !self.machine.get_target().has_asm_backend() {
            let triple = self.machine.get_triple();
            let reason =
                format!("LLVM writes no object files for {}, only assembly", triple.as_str().to_string_lossy());
            return Err(Error::invalid_argument(reason));
        }
        Ok(self.generate(module, FileType::Object)?.as_slice().to_vec())
    }

    pub(super) fn assembly(&self, module: &Module<'_>) -> Result<String> {
        let buffer = self.generate(module, FileType::Assembly)?;
        Ok(String::from_utf8_lossy(buffer.as_slice()).trim_end_matches('\0').to_string())
    }

    fn generate(&self, module: &Module<'_>, kind: FileType) -> Result<MemoryBuffer<'static>> {
        if let Some(passes) = &self.options.passes {
            passes.run(module, &self.machine)?;
        }
        self.machine.write_to_memory_buffer(module, kind).map_err(|reason| {
            Error::internal(format!("LLVM failed to generate code for module `{}`: {reason}", module_name(module)))
        })
    }
}

fn module_name(module: &Module<'_>) -> String {
    module.get_name().to_string_lossy().into_owned()
}
