//! Packages that the build needs: looks for them, or installs them with the distribution's package manager.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, anyhow, bail};

use crate::shell::{has, output, program, run as run_program};

/// The LLVM release that the compiler is written for.
const MAJOR: &str = "22";

/// The variable that points the build to an LLVM of one's own.
const PREFIX: &str = "LLVM_SYS_221_PREFIX";

/// Something that a distribution installs.
pub struct Package {
    /// Its name on Debian and Ubuntu, or several, separated by spaces.
    pub debian: &'static str,
    /// Advice for machines without apt-get.
    pub elsewhere: &'static str,
    /// Looks whether it is there; the error is a sentence that names the missing part.
    pub find: fn() -> Result<(), String>,
}

/// Needs of the build besides Rust: LLVM's headers, shared library and `llvm-config-22`, and the C++ standard library
/// that it is linked with.
const NEEDS: &[Package] = &[
    Package {
        debian: "llvm-22-dev",
        elsewhere: "Install LLVM 22 with its headers and shared library. Fedora: `dnf install llvm-devel`. Arch: `pacman -S llvm`. \
                    openSUSE: `zypper install llvm22-devel`. macOS: `brew install llvm@22`. A build of one's own (with \
                    LLVM_BUILD_LLVM_DYLIB=ON) works too: set LLVM_SYS_221_PREFIX to its prefix.",
        find: || find_llvm().map(drop),
    },
    Package {
        debian: "g++",
        elsewhere: "Install a C++ compiler. Fedora: `dnf install gcc-c++`. Arch: `pacman -S gcc`.",
        find: find_cpp,
    },
];

/// Emulators of other processors for single programs.
const QEMU_USER: Package = Package {
    debian: "qemu-user",
    elsewhere: "Install QEMU's emulators of programs (Fedora: `dnf install qemu-user`), 7.2 or later.",
    find: || find_program("qemu-aarch64"),
};

/// Packages for cross runs: LLVM's compiler and linkers for all processors, and the emulators.
const CROSS: &[Package] = &[
    Package {
        debian: "llvm-22",
        elsewhere: "Install the programs of LLVM 22, so that llc-22 is on PATH.",
        find: || find_program("llc-22"),
    },
    Package {
        debian: "lld-22",
        elsewhere: "Install lld of LLVM 22, so that ld.lld-22 and wasm-ld-22 are on PATH.",
        find: || find_program("ld.lld-22"),
    },
    QEMU_USER,
    Package {
        debian: "nodejs",
        elsewhere: "Install Node.js, 18 or later, which runs WebAssembly.",
        find: || find_program("node"),
    },
];

/// GNU ld for the processors and systems that a program is linked for: `tests/src/cross/gnu.rs`.
const GNU_LINKERS: Package = Package {
    debian: "binutils-aarch64-linux-gnu binutils-arm-linux-gnueabihf binutils-mingw-w64-x86-64 binutils-powerpc64le-linux-gnu \
             binutils-riscv64-linux-gnu binutils-s390x-linux-gnu binutils-x86-64-linux-gnu",
    elsewhere: "Install GNU ld for other processors (Fedora: `dnf install binutils-aarch64-linux-gnu` and so on).",
    find: || {
        let systems = ["aarch64-linux-gnu", "arm-linux-gnueabihf", "powerpc64le-linux-gnu", "riscv64-linux-gnu"];
        let others = ["s390x-linux-gnu", "x86_64-linux-gnu", "x86_64-w64-mingw32"];
        systems.iter().chain(&others).try_for_each(|system| find_program(&format!("{system}-ld")))
    },
};

/// Installs GNU ld for other processors and systems.
pub fn ensure_gnu_linkers() -> Result<()> {
    provide(&GNU_LINKERS)
}

/// Installs the packages that cross runs need in addition to the build.
pub fn ensure_cross() -> Result<()> {
    provide_all(CROSS)
}

/// Starts to install the packages of cross runs while other work uses the processors. Returns at once. Steps that need
/// the packages wait for the package manager, and report a failed installation.
pub fn start_ensure_cross() {
    std::thread::spawn(|| {
        if let Err(error) = ensure_cross().and_then(|()| ensure_gnu_linkers()) {
            println!("cross runs: {error:#}");
        }
    });
}

/// Compiler of C for AArch64.
const GCC_AARCH64: Package = Package {
    debian: "gcc-aarch64-linux-gnu",
    elsewhere: "Install a compiler of C for AArch64, so that aarch64-linux-gnu-gcc is on PATH.",
    find: || find_program("aarch64-linux-gnu-gcc"),
};

/// Library of C for AArch64.
const LIBC_AARCH64: Package = Package {
    debian: "libc6-dev-arm64-cross",
    elsewhere: "Install the C library for AArch64 under /usr/aarch64-linux-gnu.",
    find: || find_c_library("/usr/aarch64-linux-gnu"),
};

/// Installs the tools that build and run programs for AArch64, without LLVM for AArch64.
pub fn ensure_emulated_aarch64() -> Result<()> {
    provide_all(&[QEMU_USER, GCC_AARCH64, LIBC_AARCH64])
}

/// Compilers of C for the processors that an example is emulated on.
const CROSS_COMPILERS: &[Package] = &[
    GCC_AARCH64,
    Package {
        debian: "gcc-riscv64-linux-gnu",
        elsewhere: "Install a compiler of C for RISC-V, so that riscv64-linux-gnu-gcc is on PATH.",
        find: || find_program("riscv64-linux-gnu-gcc"),
    },
    LIBC_AARCH64,
    Package {
        debian: "libc6-dev-riscv64-cross",
        elsewhere: "Install the C library for RISC-V under /usr/riscv64-linux-gnu.",
        find: || find_c_library("/usr/riscv64-linux-gnu"),
    },
];

fn find_c_library(prefix: &str) -> Result<(), String> {
    let is_there = Path::new(prefix).join("include/stdio.h").exists();
    if is_there {
        Ok(())
    } else {
        Err(format!("{prefix} has no C library: programs for that processor are built with it."))
    }
}

/// Installs compilers for other processors.
pub fn ensure_cross_compilers() -> Result<()> {
    provide_all(CROSS_COMPILERS)
}

fn find_program(name: &str) -> Result<(), String> {
    if has(name) { Ok(()) } else { Err(format!("{name} is missing: cross runs need it.")) }
}

/// Fails with the missing packages and their remedies.
pub fn check() -> Result<()> {
    let plan = Plan::of(&Machine::this());
    let say = |package: &Package| Some(format!("{}\n{}", (package.find)().err()?, plan.advice(package)));
    let missing: Vec<String> = NEEDS.iter().filter_map(say).collect();
    if missing.is_empty() { Ok(()) } else { bail!("{}", missing.join("\n")) }
}

/// Installs missing packages; silent and fast when nothing is missing.
pub fn ensure() -> Result<()> {
    provide_all(NEEDS)
}

/// Whether this process has updated the lists of packages. Locked while the package manager runs, because a second one
/// would fail.
static HAS_UPDATED: Mutex<bool> = Mutex::new(false);

/// Installs a package if it is missing.
///
/// # Errors
/// Describes the person's part on a machine where this process cannot install packages.
pub fn provide(package: &Package) -> Result<()> {
    provide_all(std::slice::from_ref(package))
}

/// Installs those packages that are missing, in one call of the package manager, after a message for each.
fn provide_all(packages: &[Package]) -> Result<()> {
    let find_missing = || packages.iter().filter_map(|package| Some((package, (package.find)().err()?)));
    if find_missing().next().is_none() {
        return Ok(());
    }
    let mut has_updated = HAS_UPDATED.lock().unwrap_or_else(PoisonError::into_inner);
    // Another thread may have installed some in the meantime.
    let missing: Vec<(&Package, String)> = find_missing().collect();
    if missing.is_empty() {
        return Ok(());
    }
    let plan = Plan::of(&Machine::this());
    for (package, reason) in &missing {
        println!("{reason}\n{}", plan.advice(package));
    }
    let Plan::Apt { sudo } = plan else { bail!("do that, then run this command again") };
    if !std::mem::replace(&mut *has_updated, true) {
        // A package source that cannot be reached is no reason to stop: the install decides.
        if let Err(error) = run_program(apt(sudo, &["update"])) {
            println!("{error}; going on");
        }
    }
    let names = missing.iter().flat_map(|(package, _)| package.debian.split_whitespace());
    let words: Vec<&str> = ["install", "--yes", "--no-install-recommends"].into_iter().chain(names).collect();
    run_program(apt(sudo, &words))
        .context("https://apt.llvm.org has LLVM 22 for releases of Debian and Ubuntu that lack it")?;
    for (package, _) in missing {
        (package.find)().map_err(|missing| anyhow!("{} is installed, yet: {missing}", package.debian))?;
    }
    Ok(())
}

fn apt(sudo: bool, args: &[&str]) -> Command {
    // Through `env`, because sudo drops the caller's environment.
    let words = [&["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"], args].concat();
    if sudo { program("sudo", &words) } else { program(words[0], &words[1..]) }
}

/// An LLVM that the build will find and can link.
pub struct Llvm {
    pub config: PathBuf,
    pub version: String,
}

/// Looks for LLVM where the build looks; the error names the fault of the version found.
pub fn find_llvm() -> Result<Llvm, String> {
    let prefix = std::env::var_os(PREFIX).map(PathBuf::from);
    let folder = prefix.map(|prefix| prefix.join("bin")).unwrap_or_default();
    let place = match folder.as_os_str().is_empty() {
        true => "on PATH".to_owned(),
        false => format!("in {}, which {PREFIX} names", folder.display()),
    };
    let mut other = None;
    for name in ["llvm-config-22", "llvm-config22", "llvm22-config", "llvm-config"] {
        let config = folder.join(name);
        match ask(&config, &["--version"]) {
            Some(version) if version.split('.').next() == Some(MAJOR) => {
                return check_parts(Llvm { config, version });
            }
            Some(version) => other = Some(version),
            None => {}
        }
    }
    Err(match other {
        Some(version) => {
            format!("LLVM {MAJOR} is missing: the llvm-config {place} is of LLVM {version}.")
        }
        None => format!("LLVM {MAJOR} is missing: no llvm-config-{MAJOR} {place}."),
    })
}

/// The tools may be there without the parts that the build needs: the shared library and the headers are other
/// packages.
fn check_parts(llvm: Llvm) -> Result<Llvm, String> {
    let config = llvm.config.display();
    if ask(&llvm.config, &["--link-shared", "--libnames"]).is_none() {
        return Err(format!("LLVM {} is there, but {config} knows no shared library.", llvm.version));
    }
    let header = Path::new(&ask(&llvm.config, &["--includedir"]).unwrap_or_default()).join("llvm-c/Core.h");
    if !header.exists() {
        return Err(format!("LLVM {} is there, but not its header {}.", llvm.version, header.display()));
    }
    Ok(llvm)
}

/// Asks the linker's driver for the library that `-lstdc++` would find; elsewhere than on Linux there is another one.
fn find_cpp() -> Result<(), String> {
    let library = "libstdc++.so";
    let found = output(program("cc", &[format!("-print-file-name={library}")])).unwrap_or_default();
    // It answers with the bare name when there is none.
    if cfg!(target_os = "linux") && !found.contains('/') {
        return Err(format!("The C++ standard library is missing: `cc` finds no {library}."));
    }
    Ok(())
}

fn ask(config: &Path, args: &[&str]) -> Option<String> {
    output(program(config, args))
}

/// Facts that decide how a machine gets its packages.
struct Machine {
    apt: bool,
    root: bool,
    sudo: bool,
}

impl Machine {
    fn this() -> Machine {
        let root = output(program("id", &["-u"])).is_some_and(|id| id == "0");
        Machine { apt: has("apt-get"), root, sudo: !root && has("sudo") }
    }
}

/// Way to get a package on a machine.
#[derive(Debug, PartialEq)]
enum Plan {
    Apt { sudo: bool },
    AskAnAdministrator,
    OtherSystem,
}

impl Plan {
    fn of(machine: &Machine) -> Plan {
        match machine {
            Machine { apt: false, .. } => Plan::OtherSystem,
            Machine { root: true, .. } => Plan::Apt { sudo: false },
            Machine { sudo: true, .. } => Plan::Apt { sudo: true },
            Machine { .. } => Plan::AskAnAdministrator,
        }
    }

    /// Describes the installation, or the person's part in it.
    fn advice(&self, package: &Package) -> String {
        let name = package.debian;
        match self {
            Plan::Apt { sudo: false } => format!("`apt-get install {name}` provides it."),
            Plan::Apt { sudo: true } => format!("`sudo apt-get install {name}` provides it."),
            Plan::AskAnAdministrator => {
                format!("As root: `apt-get update && apt-get install {name}`. There is no sudo here to do it with.")
            }
            Plan::OtherSystem => package.elsewhere.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_fits_the_machine() {
        let plan = |apt, root, sudo| Plan::of(&Machine { apt, root, sudo });
        assert_eq!(plan(true, true, false), Plan::Apt { sudo: false });
        assert_eq!(plan(true, false, true), Plan::Apt { sudo: true });
        assert_eq!(plan(true, false, false), Plan::AskAnAdministrator);
        assert_eq!(plan(false, true, true), Plan::OtherSystem);
    }

    #[test]
    fn every_advice_names_the_package() {
        for package in NEEDS {
            for plan in [Plan::Apt { sudo: true }, Plan::Apt { sudo: false }, Plan::AskAnAdministrator] {
                assert!(plan.advice(package).contains(package.debian), "{plan:?}");
            }
            assert_eq!(Plan::OtherSystem.advice(package), package.elsewhere);
        }
    }

    #[test]
    fn apt_asks_no_questions() {
        let line = crate::shell::line(&apt(true, &["update"]));
        assert_eq!(line, "sudo env DEBIAN_FRONTEND=noninteractive apt-get update");
    }
}
