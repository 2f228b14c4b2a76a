//! Target triples: parsed and checked before LLVM sees them, since LLVM silently ignores parts that it does not know.

use xla_hlo::text::did_you_mean;
use xla_hlo::{Error, Result};

/// Processor families with the spellings of their architectures in triples.
const FAMILIES: &[(&str, &[&str])] = &[
    ("x86", &["x86_64", "amd64", "x86_64h", "i386", "i486", "i586", "i686", "i786", "i886", "i986"]),
    ("aarch64", &["aarch64", "aarch64_be", "aarch64_32", "arm64", "arm64_32", "arm64e", "arm64ec"]),
    ("riscv", &["riscv32", "riscv64", "riscv32be", "riscv64be"]),
    ("systemz", &["s390x", "systemz"]),
    ("powerpc", &["powerpc", "ppc", "ppc32", "powerpcle", "ppcle", "ppc32le", "powerpc64", "ppu", "ppc64"]),
    ("powerpc", &["powerpc64le", "ppc64le", "powerpcspe"]),
    ("hexagon", &["hexagon"]),
    ("webassembly", &["wasm32", "wasm64"]),
    ("mips", &["mips", "mipseb", "mipsallegrex", "mipsisa32r6", "mipsr6", "mipsel", "mipsallegrexel", "mipsisa32r6el"]),
    ("mips", &["mipsr6el", "mips64", "mips64eb", "mipsn32", "mipsisa64r6", "mips64r6", "mipsn32r6", "mips64el"]),
    ("mips", &["mipsn32el", "mipsisa64r6el", "mips64r6el", "mipsn32r6el"]),
    ("loongarch", &["loongarch32", "loongarch64"]),
    ("sparc", &["sparc", "sparcel", "sparcv9", "sparc64"]),
    ("m68k", &["m68k"]),
    ("msp430", &["msp430"]),
    ("avr", &["avr"]),
    ("bpf", &["bpf", "bpfel", "bpf_le", "bpfeb", "bpf_be"]),
    ("ve", &["ve"]),
    ("xtensa", &["xtensa"]),
    ("lanai", &["lanai"]),
    ("xcore", &["xcore"]),
    ("gpu", &["nvptx", "nvptx64", "amdgcn", "r600", "amdil", "amdil64", "hsail", "hsail64", "spir", "spir64"]),
    ("gpu", &["spirv", "spirv32", "spirv64", "dxil"]),
];

/// Prefixes of the spellings of ARM architectures.
const ARM: &[&str] = &["arm", "armeb", "thumb", "thumbeb"];
/// Suffixes that may follow an ARM prefix.
const ARM_VERSIONS: &[&str] = &[
    "",
    "v4",
    "v4t",
    "v5",
    "v5t",
    "v5e",
    "v5te",
    "v5tej",
    "v6",
    "v6j",
    "v6k",
    "v6kz",
    "v6t2",
    "v6m",
    "v6-m",
    "v6sm",
    "v7",
    "v7a",
    "v7l",
    "v7hl",
    "v7ve",
    "v7r",
    "v7m",
    "v7em",
    "v7s",
    "v7k",
    "v8",
    "v8a",
    "v8l",
    "v8.1a",
    "v8.2a",
    "v8.3a",
    "v8.4a",
    "v8.5a",
    "v8.6a",
    "v8.7a",
    "v8.8a",
    "v8.9a",
    "v8r",
    "v8m.base",
    "v8m.main",
    "v8.1m.main",
    "v9",
    "v9a",
    "v9.1a",
    "v9.2a",
    "v9.3a",
    "v9.4a",
    "v9.5a",
];

/// Operating systems; a version may follow.
const SYSTEMS: &[&str] = &[
    "aix",
    "amdhsa",
    "amdpal",
    "bridgeos",
    "chipstar",
    "cloudabi",
    "contiki",
    "cuda",
    "cygwin",
    "darwin",
    "dragonfly",
    "driverkit",
    "elfiamcu",
    "emscripten",
    "firmware",
    "freebsd",
    "fuchsia",
    "haiku",
    "hermit",
    "hurd",
    "ios",
    "kfreebsd",
    "linux",
    "liteos",
    "lv2",
    "macos",
    "macosx",
    "managarm",
    "mesa3d",
    "mingw32",
    "mingw64",
    "nacl",
    "netbsd",
    "none",
    "nvcl",
    "openbsd",
    "ps4",
    "ps5",
    "qurt",
    "rtems",
    "serenity",
    "solaris",
    "tvos",
    "uefi",
    "unknown",
    "visionos",
    "vulkan",
    "wasi",
    "wasip",
    "watchos",
    "win32",
    "windows",
    "xros",
    "zephyr",
    "zos",
];

/// Environments (ABIs and C libraries) and object formats; a version may follow.
const ENVIRONMENTS: &[&str] = &[
    "android",
    "androideabi",
    "code16",
    "coff",
    "coreclr",
    "cygnus",
    "eabi",
    "eabihf",
    "elf",
    "elfv1",
    "elfv2",
    "gnu",
    "gnuabi64",
    "gnuabin32",
    "gnueabi",
    "gnueabihf",
    "gnueabihft64",
    "gnueabit64",
    "gnuf32",
    "gnuf64",
    "gnusf",
    "gnut64",
    "gnux32",
    "gnu_ilp32",
    "goff",
    "itanium",
    "llvm",
    "macabi",
    "macho",
    "mlibc",
    "msvc",
    "mtia",
    "musl",
    "muslabi64",
    "muslabin32",
    "musleabi",
    "musleabihf",
    "muslf32",
    "muslsf",
    "muslwali",
    "muslx32",
    "ohos",
    "opencl",
    "pauthtest",
    "simulator",
    "unknown",
    "wasm",
    "xcoff",
];

/// Vendors, which have little effect. In a triple of three words, the vendor is a word that is neither a system nor an
/// environment.
const VENDORS: &[&str] = &[
    "amd", "apple", "csr", "esp", "fsl", "ibm", "img", "intel", "mesa", "mti", "none", "nvidia", "oe", "pc", "scei",
    "sie", "suse", "unknown", "w64",
];

/// Minimum versions of Apple's systems as (system, processor family or empty for all, version).
const VERSIONS: &[(&str, &str, &str)] = &[
    ("macos", "x86", "10.12"),
    ("macos", "arm64", "11.0"),
    ("macosx", "x86", "10.12"),
    ("macosx", "arm64", "11.0"),
    // Kernel versions of the same releases.
    ("darwin", "x86", "16.0"),
    ("darwin", "arm64", "20.0"),
    ("ios", "", "12.0"),
    ("tvos", "", "12.0"),
    ("watchos", "", "5.0"),
    ("visionos", "", "1.0"),
    ("xros", "", "1.0"),
    ("driverkit", "", "19.0"),
];

/// Triple whose parts are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Triple {
    /// Text as written.
    pub text: String,
    /// Processor family, named as in `names.txt`.
    pub family: &'static str,
    /// Whether the triple has an operating system.
    pub hosted: bool,
}

impl Triple {
    /// Parses a triple.
    ///
    /// Fails with [`Error::InvalidArgument`] for an unknown part, with the most similar known name.
    pub fn parse(text: &str) -> Result<Triple> {
        let mut parts = text.split('-');
        let architecture = parts.next().unwrap_or_default();
        let family = family(architecture).ok_or_else(|| {
            let known: Vec<&str> = FAMILIES.iter().flat_map(|(_, spellings)| spellings.iter().copied()).collect();
            wrong(text, architecture, "no architecture", &[&known, ARM])
        })?;
        if family == "gpu" {
            return Err(Error::invalid_argument(format!(
                "triple {text:?} is of a GPU, but this compiler is for CPUs; name a triple such as aarch64-unknown-linux-gnu"
            )));
        }
        let rest: Vec<&str> = parts.collect();
        if rest.len() > 4 || rest.contains(&"") {
            return Err(Error::invalid_argument(format!(
                "triple {text:?} is not of the form ARCHITECTURE-VENDOR-SYSTEM-ENVIRONMENT, such as aarch64-unknown-linux-gnu"
            )));
        }
        let is = |names: &[&str], part: &str| {
            names.contains(&part.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')) || names.contains(&part)
        };
        let has_system = rest.iter().any(|part| is(SYSTEMS, part));
        for (number, part) in rest.iter().enumerate() {
            // Any word is accepted as the vendor if the system is known.
            let vendor = number == 0 && (has_system && rest.len() > 1 || VENDORS.contains(part));
            if !vendor && !is(SYSTEMS, part) && !is(ENVIRONMENTS, part) {
                return Err(wrong(text, part, "neither a system nor an environment", &[SYSTEMS, ENVIRONMENTS]));
            }
        }
        let hosted = rest.iter().any(|part| is(SYSTEMS, part) && !["none", "unknown"].contains(part));
        Ok(Triple { text: text.to_string(), family, hosted })
    }

    /// Returns the architecture as spelled in the triple.
    pub fn architecture(&self) -> &str {
        self.text.split('-').next().unwrap_or_default()
    }

    /// Returns the default processor and additional features: the baseline of the triple's systems, so that code for
    /// the triple runs on all of them.
    pub fn baseline(&self) -> (&'static str, &'static [&'static str]) {
        match (self.family, self.architecture()) {
            ("x86", "x86_64" | "amd64") => ("x86-64", &[]),
            ("x86", "x86_64h") => ("core-avx2", &[]),
            // Without SSE2, x87 arithmetic would round floats twice.
            ("x86", _) => ("pentium4", &[]),
            ("riscv", architecture) => {
                let cpu = if architecture.starts_with("riscv64") { "generic-rv64" } else { "generic-rv32" };
                let features: &[&str] = match self.hosted {
                    true => &["+m", "+a", "+f", "+d", "+c", "+zicsr", "+zifencei"],
                    false => &["+m", "+a", "+c"],
                };
                (cpu, features)
            }
            _ => ("", &[]),
        }
    }

    /// Returns the triple with a version for Apple's systems, the oldest one with tool support, if it has none: linkers
    /// warn about objects without a version, or reject them.
    pub fn with_version(&self) -> String {
        let kind = if self.family == "x86" { "x86" } else { "arm64" };
        let is_apple = self.text.split('-').nth(1) == Some("apple");
        let words = self.text.split('-').map(|word| {
            let version =
                VERSIONS.iter().find(|(system, on, _)| is_apple && *system == word && [kind, ""].contains(on));
            version.map_or_else(|| word.to_string(), |(_, _, version)| format!("{word}{version}"))
        });
        words.collect::<Vec<String>>().join("-")
    }

    /// Returns the names of the ABIs that can be chosen.
    pub fn abis(&self) -> &'static [&'static str] {
        match (self.family, self.architecture().starts_with("riscv64")) {
            ("riscv", true) => &["lp64", "lp64e", "lp64f", "lp64d"],
            ("riscv", false) => &["ilp32", "ilp32e", "ilp32f", "ilp32d"],
            ("loongarch", _) => &["lp64s", "lp64f", "lp64d", "ilp32s", "ilp32f", "ilp32d"],
            ("mips", _) => &["o32", "n32", "n64"],
            ("powerpc", _) => &["elfv1", "elfv2"],
            ("arm", _) => &["aapcs", "aapcs-linux", "apcs-gnu"],
            ("aarch64", _) => &["aapcs", "aapcs-soft", "darwinpcs"],
            _ => &[],
        }
    }

    /// Checks that an ABI exists.
    ///
    /// Fails with [`Error::InvalidArgument`] for an unknown ABI.
    pub fn check_abi(&self, abi: &str) -> Result<()> {
        if self.abis().contains(&abi) {
            return Ok(());
        }
        let others = match self.abis() {
            [] => "there is none to choose".to_string(),
            abis => format!("there are {}", abis.join(", ")),
        };
        Err(Error::invalid_argument(format!("{} has no ABI {abi:?}; {others}", self.text)))
    }
}

/// Returns the processor family of an architecture.
pub(super) fn family(architecture: &str) -> Option<&'static str> {
    let spelled = |&&(_, spellings): &&(&str, &[&str])| spellings.contains(&architecture);
    let arm = |prefix: &&str| architecture.strip_prefix(prefix).is_some_and(|version| ARM_VERSIONS.contains(&version));
    let listed = FAMILIES.iter().find(spelled).map(|&(family, _)| family);
    listed.or_else(|| ARM.iter().any(arm).then_some("arm"))
}

fn wrong(triple: &str, part: &str, what: &str, names: &[&[&str]]) -> Error {
    let known = names.iter().flat_map(|names| names.iter().copied());
    let nearest = match did_you_mean(part, known) {
        nearest if nearest.is_empty() => "; a valid triple is aarch64-unknown-linux-gnu".to_string(),
        nearest => nearest,
    };
    Error::invalid_argument(format!("{part:?} of triple {triple:?} is {what} that LLVM supports{nearest}"))
}
