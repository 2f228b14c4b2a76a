//! Links with GNU ld: a program compiled ahead of time for common triples, with an object of `llc` for the same triple.
//! The linker compares attributes and flags of both, such as the calling convention of floats; warnings are errors.

use std::path::Path;
use std::process::{Command, Output};

use serde::Deserialize;
use xla::{Error, Platform, Result, VerifiedModule};
use xla_hlo::text::parse_module;
use xla_service::AotCompilationOptions;

/// Triple, and the linker of GNU binutils for it.
#[derive(Debug)]
pub struct GnuLink {
    /// Triple of the program.
    pub triple: &'static str,
    /// Processor, if it is not the triple's baseline.
    pub cpu: Option<&'static str>,
    /// Linker and its options.
    pub linker: &'static [&'static str],
    /// Features of the triple's systems that LLVM's baseline does not have.
    pub features: &'static str,
}

const fn link(triple: &'static str, linker: &'static [&'static str]) -> GnuLink {
    GnuLink { triple, cpu: None, linker, features: "" }
}

/// All links; triples of three and four parts, with and without an operating system.
pub const GNU_LINKS: &[GnuLink] = &[
    link("x86_64-linux-gnu", &["x86_64-linux-gnu-ld"]),
    link("i686-pc-linux-gnu", &["x86_64-linux-gnu-ld", "-m", "elf_i386"]),
    GnuLink { cpu: Some("x86-64-v3"), ..link("x86_64-unknown-none-elf", &["x86_64-linux-gnu-ld"]) },
    link("aarch64-linux-gnu", &["aarch64-linux-gnu-ld"]),
    link("arm-linux-gnueabihf", &["arm-linux-gnueabihf-ld"]),
    GnuLink { cpu: Some("cortex-m4"), ..link("thumbv7em-none-eabihf", &["arm-linux-gnueabihf-ld"]) },
    GnuLink { cpu: Some("cortex-m3"), ..link("thumbv7m-none-eabi", &["arm-linux-gnueabihf-ld"]) },
    GnuLink { features: "+m,+a,+f,+d,+c", ..link("riscv64-linux-gnu", &["riscv64-linux-gnu-ld"]) },
    GnuLink { features: "+m,+a,+c", ..link("riscv32-unknown-elf", &["riscv64-linux-gnu-ld", "-m", "elf32lriscv"]) },
    link("s390x-linux-gnu", &["s390x-linux-gnu-ld"]),
    link("powerpc64le-linux-gnu", &["powerpc64le-linux-gnu-ld"]),
    link("x86_64-w64-mingw32", &["x86_64-w64-mingw32-ld"]),
];

/// Program with a dot, a division of 64-bit integers, which some processors lack, and a constant.
const MODULE: &str = include_str!("programs/gnu.hlo");

/// Part of an object's description: the functions that it calls.
#[derive(Deserialize)]
struct Description {
    externals: Vec<String>,
}

impl GnuLink {
    /// Compiles the program into the folder and links it; an error contains the linker's message.
    pub fn check(&self, platform: &dyn Platform, folder: &Path) -> Result<()> {
        let compiler = platform.compiler();
        let ahead = compiler.ahead_of_time().ok_or_else(|| Error::internal("platform cpu compiles ahead of time"))?;
        let options = AotCompilationOptions {
            target: Some(self.triple.to_string()),
            cpus: self.cpu.iter().map(ToString::to_string).collect(),
            ..AotCompilationOptions::default()
        };
        let module = VerifiedModule::new(parse_module(MODULE)?)?;
        let write = |name: &str, bytes: &[u8]| {
            std::fs::write(folder.join(name), bytes)
                .map_err(|error| Error::failed_precondition(format!("cannot write {name}: {error}")))
        };
        let mut externals = Vec::new();
        for file in ahead.compile_ahead_of_time(vec![module], &options)? {
            write(&file.name, &file.bytes)?;
            if file.name.ends_with(".json") {
                let description: Description = serde_json::from_slice(&file.bytes)
                    .map_err(|error| Error::internal(format!("the description of the object: {error}")))?;
                externals = description.externals;
            }
        }
        let start = "declare i32 @linked(ptr)
            define float @_start(float %x) nounwind { %s = call i32 @linked(ptr null)\n ret float %x }";
        write("start.ll", start.as_bytes())?;
        let words = [
            format!("-mtriple={}", self.triple),
            format!("-mcpu={}", self.cpu.unwrap_or_default()),
            format!("-mattr={}", self.features),
        ];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let of_llc = ["-filetype=obj", "-relocation-model=pic", "start.ll", "-o", "start.o"];
        tool(folder, "llc-22", &[&words[..], &of_llc].concat())?;
        // Nothing is run, so builtins of compilers need no definition.
        let defined: Vec<String> = externals.iter().map(|name| format!("--defsym={name}=0")).collect();
        let defined: Vec<&str> = defined.iter().map(String::as_str).collect();
        let [linker, of_linker @ ..] = self.linker else { return Err(Error::internal("there is no linker")) };
        let objects = ["--fatal-warnings", "-e", "_start", "-o", "linked", "start.o", "linked.o"];
        tool(folder, linker, &[of_linker, &objects, &defined].concat())
    }
}

fn tool(folder: &Path, name: &str, words: &[&str]) -> Result<()> {
    let done = Command::new(name).args(words).current_dir(folder).output();
    let Output { status, stderr, .. } = done.map_err(|error| {
        Error::failed_precondition(format!("cannot run {name}: {error}; cargo xtask setup --cross installs it"))
    })?;
    if status.success() {
        return Ok(());
    }
    Err(Error::internal(format!("{name} failed: {}", String::from_utf8_lossy(&stderr).trim())))
}
