//! `cargo xtask examples`: the applications of `examples`, built around a compiled program and run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use pico_args::Arguments;

use crate::shell::{capture, cargo, has, line, program, root, run as run_program};
use crate::{build, finish, packages};

pub const HELP: &str = "\
Compiles examples/digits, a trained network, ahead of time, builds the applications in C, C++ and Rust and for WebAssembly around
it, runs them on pictures, and fails where one sees another digit than there is. What the machine has no compiler for is left out, by name.

  --all   also the application in Rust as Cargo builds it, with its build script (else rustc builds it alone), and the one in C for AArch64
          and RISC-V, emulated; installs compilers (gcc-aarch64-linux-gnu, gcc-riscv64-linux-gnu), emulators, the linker for WebAssembly
";

/// An application in C, for a machine that is emulated: triple, compiler, emulator, and where it finds the C library.
const EMULATED: [(&str, &str, &str, &str); 2] = [
    ("aarch64-unknown-linux-gnu", "aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"),
    ("riscv64-unknown-linux-gnu", "riscv64-linux-gnu-gcc", "qemu-riscv64", "/usr/riscv64-linux-gnu"),
];

pub fn run(mut args: Arguments) -> Result<()> {
    let all = args.contains("--all");
    finish(args)?;
    packages::ensure()?;
    if !all {
        return check();
    }
    packages::ensure_cross()?;
    packages::ensure_cross_compilers()?;
    let digits = Digits::new(build::xla()?)?;
    with_tools(&digits)?;
    digits.in_rust_by_cargo()
}

/// Builds and runs the examples that the tools of this machine can build.
pub fn check() -> Result<()> {
    with_tools(&Digits::new(build::xla()?)?)
}

fn with_tools(digits: &Digits) -> Result<()> {
    digits.in_c()?;
    digits.in_cpp()?;
    digits.in_rust()?;
    if has("wasm-ld-22") && has("node") {
        digits.in_wasm()?;
    } else {
        println!("left out: WebAssembly (cargo xtask setup --cross installs wasm-ld-22 and node)");
    }
    for (triple, compiler, emulator, sysroot) in EMULATED {
        if has(compiler) && has(emulator) {
            let built = digits.c_application(compiler, &["--target", triple], triple)?;
            digits.sees(emulator, &["-L".into(), sysroot.into(), built])?;
        } else {
            println!("left out: {triple} (cargo xtask examples --all installs {compiler} and {emulator})");
        }
    }
    Ok(())
}

/// The network, and the pictures that are shown to it.
struct Digits {
    xla: PathBuf,
    source: PathBuf,
    /// Folder that everything is built in.
    output: PathBuf,
    /// Pictures, each with the digit that it shows.
    pictures: Vec<(PathBuf, String)>,
}

impl Digits {
    fn new(xla: PathBuf) -> Result<Digits> {
        let source = root().join("examples/digits");
        let mut pictures = Vec::new();
        for entry in fs::read_dir(source.join("pictures"))? {
            let path = entry?.path();
            let digit = path.file_stem().context("a picture has no name")?.to_string_lossy().into_owned();
            pictures.push((path, digit));
        }
        pictures.sort();
        ensure!(!pictures.is_empty(), "examples/digits/pictures is empty");
        Ok(Digits { xla, source, output: root().join("target/examples/digits"), pictures })
    }

    /// Compiles the network into a folder of its own.
    fn compile(&self, flags: &[&str], folder: &str) -> Result<PathBuf> {
        let folder = self.output.join(folder);
        let mut command = program(&self.xla, &["compile"]);
        command.arg(self.source.join("digits.hlo")).args(["--symbol", "digits"]).args(flags).arg("-o").arg(&folder);
        run_program(command)?;
        Ok(folder)
    }

    fn in_c(&self) -> Result<()> {
        let built = self.c_application("cc", &["--optimize-for", "size"], "c")?;
        self.sees(built, &[])
    }

    fn c_application(&self, compiler: &str, flags: &[&str], folder: &str) -> Result<PathBuf> {
        let folder = self.compile(flags, folder)?;
        self.link(compiler, &["-std=c11", "-Os"], "c/main.c", &folder)
    }

    fn in_cpp(&self) -> Result<()> {
        let folder = self.compile(&["--namespace", "vision"], "cpp")?;
        let built = self.link("c++", &["-std=c++17", "-O2"], "cpp/main.cpp", &folder)?;
        self.sees(built, &[])
    }

    fn link(&self, compiler: &str, flags: &[&str], source: &str, folder: &Path) -> Result<PathBuf> {
        let built = folder.join("digits");
        let mut command = program(compiler, &["-Wall", "-Wextra", "-Werror"]);
        command.args(flags).arg("-I").arg(folder).arg(self.source.join(source));
        command.arg(folder.join("digits.o")).arg("-o").arg(&built);
        run_program(command)?;
        Ok(built)
    }

    fn in_rust(&self) -> Result<()> {
        let folder = self.compile(&["--archive"], "rust")?;
        let built = folder.join("digits");
        let mut command = program("rustc", &["--edition", "2024", "-D", "warnings", "-O", "-l", "static=digits"]);
        command.arg("-L").arg(&folder).arg(self.source.join("rust/src/main.rs")).arg("-o").arg(&built);
        // Where the build script would have put the program.
        command.env("OUT_DIR", &folder);
        run_program(command)?;
        self.sees(built, &[])
    }

    fn in_rust_by_cargo(&self) -> Result<()> {
        let manifest = self.source.join("rust/Cargo.toml");
        // The versions that this workspace was tested with.
        fs::copy(root().join("Cargo.lock"), self.source.join("rust/Cargo.lock"))?;
        let manifest = manifest.to_string_lossy().into_owned();
        let words = ["build", "--quiet", "--manifest-path", &manifest, "--target-dir", "target"];
        run_program(cargo(&words))?;
        self.sees(root().join("target/debug/digits"), &[])
    }

    fn in_wasm(&self) -> Result<()> {
        let flags = ["--target", "wasm32-unknown-unknown", "--features", "+simd128", "--relocation", "static"];
        let folder = self.compile(&flags, "wasm")?;
        let mut command = program("wasm-ld-22", &["--no-entry", "--export=digits", "--export=__heap_base"]);
        command.arg(folder.join("digits.o")).arg("-o").arg(folder.join("digits.wasm"));
        run_program(command)?;
        self.sees("node", &[self.source.join("wasm/run.mjs"), folder])
    }

    /// Runs an application on all pictures.
    fn sees(&self, application: impl AsRef<std::ffi::OsStr>, words: &[PathBuf]) -> Result<()> {
        let mut command = program(application, words);
        command.args(self.pictures.iter().map(|(path, _)| path));
        let shown = line(&command);
        let said = capture(command).with_context(|| shown.clone())?;
        let expected = |(path, digit): &(PathBuf, String)| format!("{} shows a {digit}\n", path.display());
        let expected: String = self.pictures.iter().map(expected).collect();
        if said != expected {
            bail!("`{shown}` saw\n{said}where there is\n{expected}");
        }
        println!("{} pictures are seen right by `{shown}`", self.pictures.len());
        Ok(())
    }
}
