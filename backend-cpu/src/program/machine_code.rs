//! Machine code of a program as bytes, with its target and build: in serialised programs and in the cache on disk.

use serde::{Deserialize, Serialize};
use xla_hlo::{Error, Result};
use xla_llvm::jit::{LoadedCode, RuntimeSymbol};
use xla_llvm::target::Target;
use xla_service::thunks::ThunkProgram;
use xla_service::{CompileOptions, FileCache};

use crate::program::arguments::ArgumentTable;

/// Object files and how they are called.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MachineCode {
    /// Kernels, and the entry function last.
    pub objects: Vec<Vec<u8>>,
    /// Arguments of the entry function.
    pub arguments: ArgumentTable,
}

impl MachineCode {
    /// Bytes of object code.
    pub fn bytes(&self) -> usize {
        self.objects.iter().map(Vec::len).sum()
    }

    /// Loads it into this process.
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

/// Writes code down that belongs to a program on a target; see [`compiled_for`].
pub(crate) fn write(target: &str, program: &ThunkProgram, code: &MachineCode) -> Result<Vec<u8>> {
    let envelope = Envelope { target: target.to_string(), plan: plan_key(program), code: code.clone() };
    postcard::to_allocvec(&envelope)
        .map_err(|error| Error::internal(format!("machine code cannot be serialised: {error}")))
}

/// The stored code, if there is some, it is for this target, build and program, and its arguments are within the
/// program's memory. The code itself cannot be checked: the caller vouches for the origin of the bytes.
pub(crate) fn read(target: &str, program: &ThunkProgram, bytes: &[u8]) -> Option<MachineCode> {
    let Envelope { target: other, plan, code } = postcard::from_bytes(bytes).ok()?;
    let sizes: Vec<usize> = program.assignment.allocations().iter().map(|allocation| allocation.size).collect();
    (other == target && plan == plan_key(program) && code.arguments.fits(&sizes)).then_some(code)
}

/// Key of machine code in a serialised program: its target, and the options without which other code would be wrong.
pub(crate) fn compiled_for(target: &Target, options: &CompileOptions) -> String {
    let denormals = if options.flush_denormals { "flushed" } else { "kept" };
    format!("{}, denormals {denormals}", target_key(target))
}

/// Whether machine code of this target can be run here: the version of LLVM, the processor and its features.
pub(crate) fn target_key(target: &Target) -> String {
    let (triple, cpu, features) = (target.triple(), target.cpu(), target.features());
    format!("{}, LLVM {}, {triple}, {cpu}, {features}", xla_service::build_identity(), xla_llvm::target::llvm_version())
}

/// Key of thunks and places of values: code for another plan would read and write other memory.
fn plan_key(program: &ThunkProgram) -> String {
    FileCache::key(&[program.plan_text().as_bytes()])
}
