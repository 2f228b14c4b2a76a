//! Compilation, linking, execution and comparison of one program on one target.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use xla::compare::Tolerance;
use xla::npz::Archive;
use xla::{ArrayShape, Error, Layout, Literal, Platform, Result, VerifiedModule};
use xla_hlo::text::parse_module;
use xla_service::host::HostTransfer;
use xla_service::{AotCompilationOptions, ConstantsIn, Signature, TransferManager};

use super::custom_call;
use super::start::{self, Description};
use super::targets::CrossTarget;
use crate::corpus::{Case, stored};

/// Symbol of every program's entry.
const ENTRY: &str = "program";

/// Outcome of a case on a target.
#[derive(Debug)]
pub enum Verdict {
    /// Results that agree with the expected ones.
    Agrees,
    /// Program that the compiler rejects, with its message.
    Refused(String),
    /// Object that calls compiler builtins that are not available, with their names.
    NeedsBuiltins(String),
    /// Crash of the emulator, which is not an error of the program.
    Emulator(String),
    /// Any other failure.
    Failed(String),
}

/// Tools and a folder for cross runs.
#[derive(Debug)]
pub struct CrossRun<'a> {
    /// Platform `cpu` with the code generators of all processors.
    pub platform: &'a dyn Platform,
    /// Folder for files.
    pub folder: PathBuf,
    /// Maximum number of threads of a call. A single thread executes all parts, in descending order.
    pub threads: NonZeroUsize,
}

impl CrossRun<'_> {
    /// Runs a case on a target.
    pub fn check(&self, case: &Case, target: &CrossTarget) -> Verdict {
        match self.try_check(case, target) {
            Ok(verdict) => verdict,
            Err(Error::Unimplemented(reason)) => Verdict::Refused(reason.to_string()),
            Err(error) => Verdict::Failed(error.to_string()),
        }
    }

    fn try_check(&self, case: &Case, target: &CrossTarget) -> Result<Verdict> {
        let module = VerifiedModule::new(parse_module(&case.module)?)?;
        let signature = Signature::new(&module, |shape| HostTransfer.device_shape(shape))?;
        // The case with a custom call has its constants in a file.
        let constants = if case.suite == custom_call::SUITE { ConstantsIn::File } else { ConstantsIn::Object };
        let object = self.compile(module, target, constants)?;
        let is_missing = |name: &&str| *name != custom_call::SYMBOL && !target.builtins.has(name);
        let missing: Vec<&str> = object.externals.iter().map(String::as_str).filter(is_missing).collect();
        if !missing.is_empty() {
            return Ok(Verdict::NeedsBuiltins(missing.join(", ")));
        }
        let arguments = arguments(case, &signature, object.target.big_endian)?;
        let file = self.folder.join(format!("{ENTRY}.bin"));
        let constants = match constants {
            ConstantsIn::File => std::fs::read(file).map_err(unreadable)?,
            ConstantsIn::Object => Vec::new(),
        };
        let start = start::text(&object, (&arguments, &constants), target);
        std::fs::write(self.folder.join("start.ll"), start).map_err(unwritable)?;
        self.link(target)?;
        let (program, words) = match target.emulator {
            [] => (self.folder.join("main"), Vec::new()),
            [emulator, options @ ..] => (
                PathBuf::from(emulator),
                options.iter().copied().map(PathBuf::from).chain([self.folder.join("main")]).collect(),
            ),
        };
        let done = Command::new(&program).args(words).stdin(Stdio::null()).output();
        let done = done.map_err(|e| Error::failed_precondition(format!("cannot run {}: {e}", program.display())))?;
        let said = String::from_utf8_lossy(&done.stderr).trim().to_string();
        if !done.status.success() {
            let broken = said.contains("Assertion") || said.contains("ERROR:");
            let text = format!("{}: {said}", done.status);
            return Ok(if broken { Verdict::Emulator(text) } else { Verdict::Failed(text) });
        }
        compare(case, &signature, &object, &done.stdout)
    }

    /// Compiles the program into the folder.
    fn compile(&self, module: VerifiedModule, target: &CrossTarget, constants: ConstantsIn) -> Result<Description> {
        let compiler = self.platform.compiler();
        let ahead = compiler.ahead_of_time().ok_or_else(|| Error::internal("platform cpu compiles ahead of time"))?;
        let options = AotCompilationOptions {
            target: Some(target.triple.to_string()),
            cpus: target.cpus.iter().map(ToString::to_string).collect(),
            features: target.features.iter().map(ToString::to_string).collect(),
            symbols: vec![ENTRY.to_string()],
            externals: vec![custom_call::external()],
            constants,
            threads: Some(self.threads),
            ..AotCompilationOptions::default()
        };
        let mut description = None;
        for file in ahead.compile_ahead_of_time(vec![module], &options)? {
            std::fs::write(self.folder.join(&file.name), &file.bytes).map_err(unwritable)?;
            if file.name.ends_with(".json") {
                description = serde_json::from_slice(&file.bytes).ok();
            }
        }
        description.ok_or_else(|| Error::internal("the description of the object cannot be read"))
    }

    /// Assembles the start code and links it with the object.
    fn link(&self, target: &CrossTarget) -> Result<()> {
        // Features that all systems of the triple have; LLVM's baseline for RISC-V has fewer.
        let features = if target.triple.starts_with("riscv64") { "-mattr=+m,+a,+f,+d,+c" } else { "-mattr=" };
        let cpu = format!("-mcpu={}", target.cpus.first().unwrap_or(&""));
        let relocation = if target.is_wasm() { "-relocation-model=static" } else { "-relocation-model=pic" };
        self.tool("llc-22", &["-O1", "-filetype=obj", relocation, features, &cpu, "start.ll", "-o", "start.o"])?;
        let object = format!("{ENTRY}.o");
        if target.is_wasm() {
            return self.tool("wasm-ld-22", &["-o", "main", "start.o", &object]);
        }
        let library = target.builtins.library().map(|library| library.display().to_string());
        let objects = ["start.o", &object].into_iter().chain(library.as_deref());
        let words: Vec<&str> = ["-static", "-z", "noexecstack", "-o", "main"].into_iter().chain(objects).collect();
        self.tool("ld.lld-22", &words)
    }

    fn tool(&self, name: &str, words: &[&str]) -> Result<()> {
        let done = Command::new(name).args(words).current_dir(&self.folder).output();
        let Output { status, stderr, .. } = done.map_err(|e| {
            Error::failed_precondition(format!("cannot run {name}: {e}; cargo xtask setup --cross installs it"))
        })?;
        if status.success() {
            return Ok(());
        }
        Err(Error::internal(format!("{name} failed: {}", String::from_utf8_lossy(&stderr).trim())))
    }
}

/// Returns the arguments of a case in the memory layout of the target.
fn arguments(case: &Case, signature: &Signature, big_endian: bool) -> Result<Vec<Vec<u8>>> {
    if signature.arguments().is_empty() {
        return Ok(Vec::new());
    }
    let mut inputs = Archive::from_bytes("inputs.npz", case.inputs.clone())?;
    let leaves = signature.arguments().iter().enumerate();
    let argument = |(i, leaf): (usize, &xla_service::signature::ArgumentLeaf)| {
        let literal = inputs.read(&format!("arg{i}"), &leaf.shape)?;
        let mut bytes = vec![0; literal.bytes().len()];
        for (place, element) in places(&leaf.shape) {
            element.copy_into(&mut bytes, place, literal.bytes(), big_endian);
        }
        Ok(bytes)
    };
    leaves.map(argument).collect()
}

/// Compares the bytes that the program wrote with the expected results.
fn compare(case: &Case, signature: &Signature, object: &Description, written: &[u8]) -> Result<Verdict> {
    let mut outputs = Archive::from_bytes("expected.npz", case.expected.clone())?;
    let tolerance = Tolerance { rtol: case.info.rtol, atol: case.info.atol, signed_zero: case.info.signed_zero };
    let mut rest = written;
    for (i, (leaf, (_, pointer))) in signature.results().iter().zip(object.program.results()).enumerate() {
        let Some((memory, after)) = rest.split_at_checked(pointer.bytes) else {
            return Ok(Verdict::Failed(format!("result {i} was not written")));
        };
        rest = after;
        let (expected, tolerance) = stored(&mut outputs, &format!("out{i}"), &leaf.shape, tolerance)?;
        let mut bytes = vec![0; memory.len()];
        for (place, element) in places(&leaf.shape) {
            element.copy_out(&mut bytes, place, memory, object.target.big_endian);
        }
        let found = Literal::from_bytes(expected.array_shape(), bytes)?;
        if let Some(difference) = tolerance.difference(&expected, &found) {
            return Ok(Verdict::Failed(format!("result {i}: {difference}")));
        }
    }
    Ok(Verdict::Agrees)
}

/// Element of a literal: its row-major index, its size in bytes, and the size of its parts, which are byte-swapped.
struct Element {
    number: usize,
    width: usize,
    part: usize,
}

impl Element {
    /// Copies the element from a literal to its place in memory.
    fn copy_into(&self, memory: &mut [u8], place: usize, literal: &[u8], big_endian: bool) {
        self.copy(memory, place, literal, self.number, big_endian);
    }

    /// Copies the element from its place in memory to a literal.
    fn copy_out(&self, literal: &mut [u8], place: usize, memory: &[u8], big_endian: bool) {
        self.copy(literal, self.number, memory, place, big_endian);
    }

    fn copy(&self, to: &mut [u8], at: usize, from: &[u8], number: usize, big_endian: bool) {
        let range = |number: usize| number * self.width..(number + 1) * self.width;
        let (Some(to), Some(from)) = (to.get_mut(range(at)), from.get(range(number))) else { return };
        to.copy_from_slice(from);
        if big_endian {
            to.chunks_mut(self.part).for_each(<[u8]>::reverse);
        }
    }
}

/// Returns the elements of an array in memory order, each with its position in memory.
fn places(shape: &ArrayShape) -> impl Iterator<Item = (usize, Element)> {
    let ty = shape.element_type();
    let (width, part) = (ty.byte_width(), ty.real_part().byte_width());
    let (dims, order) = (shape.dims().to_vec(), shape.minor_to_major());
    let strides = xla_hlo::strides(&dims, &Layout::row_major(dims.len()).minor_to_major);
    (0..shape.element_count()).map(move |place| {
        let mut rest = place;
        let number = order.iter().fold(0, |number, &dimension| {
            let index = rest % dims[dimension];
            rest /= dims[dimension];
            number + index * strides[dimension]
        });
        (place, Element { number, width, part })
    })
}

fn unreadable(error: std::io::Error) -> Error {
    Error::failed_precondition(format!("cannot read a file: {error}"))
}

fn unwritable(error: std::io::Error) -> Error {
    Error::failed_precondition(format!("cannot write a file: {error}"))
}
