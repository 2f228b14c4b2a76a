//! The compiler itself on another processor: built for AArch64, and run there by QEMU, so that its JIT generates and
//! loads code of AArch64.

mod llvm;
mod processors;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use pico_args::Arguments;

use crate::shell::{capture, cargo, has, program, run as run_program};
use crate::{build, packages};
use llvm::Llvm;
use processors::{PROCESSORS, Processor};

/// Rust's target.
const TRIPLE: &str = "aarch64-unknown-linux-gnu";

/// Compiler of C, which links.
const LINKER: &str = "aarch64-linux-gnu-gcc";

/// Emulator of programs.
const EMULATOR: &str = "qemu-aarch64";

/// Options with a value that are handed on to `xla-tests conformance`.
const HANDED_ON: &[&str] = &["--filter", "--jobs", "--corpus"];

/// Runs levels of the conformance suite, the models among them, on emulated processors.
pub fn run(mut args: Arguments) -> Result<()> {
    let level: Option<String> = args.opt_value_from_str("--level")?;
    let mut words =
        ["conformance", "cpu", "--level", level.as_deref().unwrap_or("0,1,2,3,4")].map(str::to_owned).to_vec();
    for &option in HANDED_ON {
        let value: Option<String> = args.opt_value_from_str(option)?;
        let value = value.or_else(|| (option == "--corpus").then(|| "models".to_owned()));
        words.extend(value.into_iter().flat_map(|value| [option.to_owned(), value]));
    }
    words.extend(args.contains("--quick").then(|| "--quick".to_owned()));
    let names = args.finish();
    let names = names.iter().map(|name| name.to_str().context("a name that is not Unicode"));
    let mut chosen = names.map(|name| Processor::find(name?)).collect::<Result<Vec<_>>>()?;
    if chosen.is_empty() {
        chosen.extend(PROCESSORS.first());
    }
    let machine = Machine::provide()?;
    machine.build()?;
    let mut failed = Vec::new();
    for processor in chosen {
        println!("\nplatform cpu on {}", processor.name);
        if run_program(machine.program(processor, "xla-tests", &words)?).is_err() {
            failed.push(processor.name);
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("these failed: {}", failed.join(", ")) }
}

/// AArch64 machine: its libraries, and the programs built for it.
struct Machine {
    /// Cargo's folder.
    target: PathBuf,
    llvm: Llvm,
}

impl Machine {
    /// Looks for the required tools, and installs missing ones.
    fn provide() -> Result<Machine> {
        packages::ensure()?;
        packages::ensure_emulated_aarch64()?;
        ensure_rust_target()?;
        let target = build::target()?;
        let llvm = Llvm::provide(&target.join("jit-aarch64"))?;
        Ok(Machine { target, llvm })
    }

    /// Builds the release form of `xla` and of `xla-tests` for it.
    fn build(&self) -> Result<()> {
        let bins = ["--package", "xla", "--bin", "xla", "--package", "xla-tests", "--bin", "xla-tests"];
        let mut command = cargo(&[&["build", "--release", "--target", TRIPLE], &bins[..]].concat());
        command.env("LLVM_SYS_221_PREFIX", self.llvm.prefix());
        let variable = |name: &str| format!("CARGO_TARGET_{}_{name}", TRIPLE.replace('-', "_").to_uppercase());
        command.env(variable("LINKER"), LINKER);
        let flags = format!("-Clink-arg=-Wl,-rpath-link={}", self.llvm.libraries());
        // Cargo prefers `RUSTFLAGS` to the flags of one target.
        command.env_remove("RUSTFLAGS").env(variable("RUSTFLAGS"), flags);
        command.env(format!("CC_{}", TRIPLE.replace('-', "_")), LINKER);
        run_program(command)
    }

    /// One of its programs, on one of its processors.
    fn program(&self, processor: &Processor, name: &str, words: &[String]) -> Result<Command> {
        let folder = self.folder_of(processor)?;
        let built = self.target.join(TRIPLE).join("release").join(name);
        let emulator = ["-cpu".as_ref(), processor.qemu.as_ref(), "-L".as_ref(), folder.as_os_str(), built.as_os_str()];
        let words = words.iter().map(AsRef::as_ref);
        Ok(program(EMULATOR, &emulator.into_iter().chain(words).collect::<Vec<_>>()))
    }

    /// The root of a machine with that processor: the emulator takes files from it before it takes the host's.
    fn folder_of(&self, processor: &Processor) -> Result<PathBuf> {
        let folder = self.target.join("jit-aarch64").join(processor.name);
        fs::create_dir_all(folder.join("proc"))?;
        for name in ["lib", "usr"] {
            if !folder.join(name).exists() {
                run_program(program("ln", &[Path::new("-s"), &self.llvm.root().join(name), &folder.join(name)]))?;
            }
        }
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        fs::write(folder.join("proc/cpuinfo"), processor.cpuinfo(count))?;
        Ok(folder)
    }
}

/// Rust's standard library for the target.
fn ensure_rust_target() -> Result<()> {
    let rustc = || {
        program(
            std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()),
            &["--print", "target-libdir", "--target", TRIPLE],
        )
    };
    let is_there = || capture(rustc()).is_ok_and(|folder| Path::new(folder.trim()).exists());
    if is_there() {
        return Ok(());
    }
    if !has("rustup") {
        bail!(
            "Rust's standard library for {TRIPLE} is missing. Debian: `dpkg --add-architecture arm64`, then \
               `apt-get install libstd-rust-web-dev:arm64` or libstd-rust-dev:arm64, that of the release of rustc."
        );
    }
    run_program(program("rustup", &["target", "add", TRIPLE]))
}
