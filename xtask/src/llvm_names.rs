//! `cargo xtask llvm-names`: the processors and features that LLVM knows, packed as data for `xla-llvm`.

use anyhow::Result;
use pico_args::Arguments;

use crate::shell::{program, run as run_program};
use crate::{finish, packages};

pub const HELP: &str = "\
Asks `llc` of LLVM 22 (Debian: llvm-22) for the names of processors and features of each kind of processor, and writes them to
xla-llvm/src/target/names.txt. LLVM's libraries do not tell them, and end the process at some that they do not know. Asks `opt` and
`llc` for the features of x86 processors, and writes them to xla-llvm/src/target/x86_features.txt. Run it when the LLVM release changes.

  --check    only say whether the files are those of the installed LLVM; fail if one is not
";

pub fn run(mut args: Arguments) -> Result<()> {
    let check = args.contains("--check");
    finish(args)?;
    let llvm = packages::find_llvm().map_err(anyhow::Error::msg)?;
    let llc = llvm.config.with_file_name("llc");
    let llc = if llc.exists() { llc } else { "llc-22".into() };
    let mut command = program("python3", &["xla-llvm/llvm_names.py"]);
    command.arg(llc).arg(llvm.version).args(check.then_some("--check"));
    run_program(command)
}
