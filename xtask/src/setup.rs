//! `cargo xtask setup`: finds LLVM 22, or installs it from the distribution's packages.

use anyhow::Result;
use pico_args::Arguments;

use crate::{finish, packages, ptxas};

pub const HELP: &str = "\
Looks for LLVM 22 and the C++ library that it is linked with. Says what is missing, then installs it with apt-get (through
sudo when needed) on Debian and Ubuntu; elsewhere it says what to install. Does nothing when all is there. The other commands call it themselves.

  --check    only say what is missing; fail if anything is
  --cross    also have what programs for other processors are linked and run with: llvm-22, lld-22, qemu-user, nodejs
  --ptxas    also have NVIDIA's assembler for `cargo xtask ptxas`: see its --help for what is fetched

LLVM is looked for as the build does: `llvm-config` in $LLVM_SYS_221_PREFIX/bin when that is set, else
`llvm-config-22` (or another usual name) on PATH.
";

pub fn run(mut args: Arguments) -> Result<()> {
    let check = args.contains("--check");
    let ptxas = args.contains("--ptxas");
    let cross = args.contains("--cross");
    finish(args)?;
    if check {
        packages::check()?
    } else {
        packages::ensure()?
    }
    if cross {
        packages::ensure_cross()?;
    }
    if ptxas {
        println!("ptxas: {}", ptxas::PTXAS.find_or_fetch(None)?.display());
    }
    if let Ok(llvm) = packages::find_llvm() {
        println!("LLVM {}: {}\nNothing is missing.", llvm.version, llvm.config.display());
    }
    Ok(())
}
