//! `cargo xtask llvm-names`: the processors and features that LLVM knows, packed as data for `xla-llvm`.

use std::fmt::Write as _;
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use pico_args::Arguments;

use crate::shell::{program, root};
use crate::{finish, packages, x86_features};

pub const HELP: &str = "\
Asks `llc` of LLVM 22 (Debian: llvm-22) for the names of processors and features of each kind of processor, and writes them to
xla-llvm/src/target/names.txt. LLVM's libraries do not tell them, and end the process at some that they do not know. Asks `opt` and
`llc` for the features of x86 processors, and writes them to xla-llvm/src/target/x86_features.txt. Run it when the LLVM release changes.

  --check    only say whether the files are those of the installed LLVM; fail if one is not
";

/// The file of names, from the root of the repository.
const FILE: &str = "xla-llvm/src/target/names.txt";
/// The file of features of x86 processors.
const X86_FILE: &str = "xla-llvm/src/target/x86_features.txt";

/// Kinds of processor, by LLVM's name of the target and a triple of it.
const TARGETS: &[(&str, &str)] = &[
    ("aarch64", "aarch64"),
    ("arm", "armv7"),
    ("avr", "avr"),
    ("bpf", "bpf"),
    ("hexagon", "hexagon"),
    ("loongarch", "loongarch64"),
    ("m68k", "m68k"),
    ("mips", "mips64"),
    ("msp430", "msp430"),
    ("nvptx", "nvptx64"),
    ("powerpc", "powerpc64le"),
    ("riscv", "riscv64"),
    ("sparc", "sparcv9"),
    ("systemz", "s390x"),
    ("ve", "ve"),
    ("webassembly", "wasm32"),
    ("x86", "x86_64"),
    ("xtensa", "xtensa"),
];

pub fn run(mut args: Arguments) -> Result<()> {
    let check = args.contains("--check");
    finish(args)?;
    let llvm = packages::find_llvm().map_err(anyhow::Error::msg)?;
    let llc = llvm.config.with_file_name("llc");
    let llc = if llc.exists() { llc } else { "llc-22".into() };
    let mut text = format!(
        "# Names of processors and features in LLVM {}, from `cargo xtask llvm-names`.\n",
        llvm.version.split('.').next().unwrap_or_default()
    );
    let mut x86 = String::new();
    for (target, triple) in TARGETS {
        let mut command = program(&llc, &[&format!("-mtriple={triple}"), "-mcpu=help"]);
        let done = command.stdin(Stdio::null()).output();
        let done = done.with_context(|| format!("{} is not there; Debian: apt-get install llvm-22", llc.display()))?;
        let said = String::from_utf8_lossy(&done.stderr);
        let (processors, features) = (list(&said, "Available CPUs"), list(&said, "Available features"));
        ensure!(!processors.is_empty(), "llc tells no processors of {triple}: {}", said.trim());
        writeln!(text, "{target}\ncpus {}\nfeatures {}", processors.join(" "), features.join(" "))?;
        if *target == "x86" {
            x86 = x86_features::text(&llc, &processors, &features)?;
        }
    }
    for (file, text) in [(FILE, text), (X86_FILE, x86)] {
        let path = root().join(file);
        if !check {
            std::fs::write(&path, text).with_context(|| format!("cannot write {file}"))?;
        } else if std::fs::read_to_string(&path).with_context(|| format!("cannot read {file}"))? != text {
            bail!("{file} is of another LLVM than {}: run `cargo xtask llvm-names`", llvm.version);
        }
    }
    Ok(())
}

/// The names below a title, each at the beginning of an indented line, up to a line that is not.
fn list<'a>(said: &'a str, title: &str) -> Vec<&'a str> {
    let lines = said.lines().skip_while(|line| !line.starts_with(title)).skip(2);
    lines.map_while(|line| line.strip_prefix("  ")?.split_whitespace().next()).collect()
}
