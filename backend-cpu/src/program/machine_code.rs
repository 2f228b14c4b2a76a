//! Serialised machine code with its target and build, in serialised programs and in the cache on disk.

use serde::{Deserialize, Serialize};
use xla_hlo::{Error, Result};
use xla_llvm::jit::{LoadedCode, RuntimeSymbol};
use xla_llvm::target::Target;
use xla_service::thunks::ThunkProgram;
use xla_service::{CompileOptions, FileCache};

use crate::program::arguments::ArgumentTable;

/// Object files, and the arguments of their entry function.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MachineCode {
    /// Object files of the kernels and of the entry function.
    pub objects: Vec<Vec<u8>>,
    /// Arguments of the entry function.
    pub arguments: ArgumentTable,
}

impl MachineCode {
    /// Returns the size of the object code in bytes.
    pub fn bytes(&self) -> usize {
        self.objects.iter().map(Vec::len).sum()
    }

    /// Loads the code into this process.
    pub fn link(&self) -> Result<LoadedCode> {
        let symbols = xla_cpu_runtime::symbols();
        let symbols: Vec<_> = symbols.map(|s| RuntimeSymbol { name: s.name, address: s.address }).collect();
        LoadedCode::link(&self.objects, &symbols)
    }
}

/// Machine code with its target, build and program.
#[derive(Serialize, Deserialize)]
struct Envelope {
    target: String,
    plan: String,
    code: MachineCode,
}

/// Serialises the code of a program for a target; see [`compiled_for`].
pub(crate) fn write(target: &str, program: &ThunkProgram, code: &MachineCode) -> Result<Vec<u8>> {
    let envelope = Envelope { target: target.to_string(), plan: plan_key(program), code: code.clone() };
    postcard::to_allocvec(&envelope)
        .map_err(|error| Error::internal(format!("machine code cannot be serialised: {error}")))
}

/// Returns the stored code if it exists, matches this target, build and program, and its arguments are within the
/// program's memory. The code itself cannot be checked: the caller is responsible for the origin of the bytes.
pub(crate) fn read(target: &str, program: &ThunkProgram, bytes: &[u8]) -> Option<MachineCode> {
    let Envelope { target: other, plan, code } = postcard::from_bytes(bytes).ok()?;
    let sizes: Vec<usize> = program.assignment.allocations().iter().map(|allocation| allocation.size).collect();
    (other == target && plan == plan_key(program) && code.arguments.fits(&sizes)).then_some(code)
}

/// Returns the key of machine code in a serialised program: its target, and the options that change the generated code.
pub(crate) fn compiled_for(target: &Target, options: &CompileOptions) -> String {
    let denormals = if options.flush_denormals { "flushed" } else { "kept" };
    format!("{}, denormals {denormals}", target_key(target))
}

/// Returns the key of code that can run here: compiler build, LLVM version, processor and features.
pub(crate) fn target_key(target: &Target) -> String {
    let (triple, cpu, features) = (target.triple(), target.cpu(), target.features());
    format!("{}, LLVM {}, {triple}, {cpu}, {features}", xla_service::build_identity(), xla_llvm::target::llvm_version())
}

/// Returns the key of thunks and allocations: code for another plan would access wrong memory.
fn plan_key(program: &ThunkProgram) -> String {
    FileCache::key(&[program.plan_text().as_bytes()])
}
