//! Target that Cargo builds for, in LLVM's terms.

use std::path::PathBuf;

use xla::service::{AotCompilationOptions, Relocation};
use xla::{Error, Result};

/// Target, features and folders of a build, as Cargo passes them to build scripts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CargoTarget {
    /// Rust's name of the target, such as `thumbv7em-none-eabihf`.
    pub triple: String,
    /// Rust's names of the features of the target's processors.
    pub features: Vec<String>,
    /// Whether the target has an operating system.
    pub has_system: bool,
    /// Folder of the package.
    pub manifest_dir: PathBuf,
    /// Folder for the build script's output.
    pub out_dir: PathBuf,
}

/// Features that affect the code of programs: architecture, Rust's name, LLVM's name.
const FEATURES: &[(&str, &str, &str)] = &[
    ("x86_64", "sse3", "sse3"),
    ("x86_64", "ssse3", "ssse3"),
    ("x86_64", "sse4.1", "sse4.1"),
    ("x86_64", "sse4.2", "sse4.2"),
    ("x86_64", "popcnt", "popcnt"),
    ("x86_64", "lzcnt", "lzcnt"),
    ("x86_64", "bmi1", "bmi"),
    ("x86_64", "bmi2", "bmi2"),
    ("x86_64", "avx", "avx"),
    ("x86_64", "avx2", "avx2"),
    ("x86_64", "fma", "fma"),
    ("x86_64", "f16c", "f16c"),
    ("x86_64", "avx512f", "avx512f"),
    ("x86_64", "avx512bw", "avx512bw"),
    ("x86_64", "avx512cd", "avx512cd"),
    ("x86_64", "avx512dq", "avx512dq"),
    ("x86_64", "avx512vl", "avx512vl"),
    ("aarch64", "neon", "neon"),
    ("aarch64", "fp16", "fullfp16"),
    ("aarch64", "dotprod", "dotprod"),
    ("aarch64", "sve", "sve"),
    ("aarch64", "sve2", "sve2"),
    ("arm", "neon", "neon"),
    ("arm", "vfp2", "vfp2"),
    ("arm", "vfp3", "vfp3"),
    ("arm", "vfp4", "vfp4"),
    ("riscv", "m", "m"),
    ("riscv", "a", "a"),
    ("riscv", "c", "c"),
    ("riscv", "f", "f"),
    ("riscv", "d", "d"),
    ("riscv", "v", "v"),
    ("riscv", "zba", "zba"),
    ("riscv", "zbb", "zbb"),
    ("riscv", "zbs", "zbs"),
    ("riscv", "zfh", "zfh"),
    ("s390x", "vector", "vector"),
    ("wasm", "simd128", "simd128"),
    ("wasm", "nontrapping-fptoint", "nontrapping-fptoint"),
    ("wasm", "sign-ext", "sign-ext"),
];

impl CargoTarget {
    /// Reads the target from the environment of a build script.
    pub fn from_env() -> Result<CargoTarget> {
        let given = |name: &str| {
            std::env::var(name).map_err(|_| Error::not_found(format!("{name} is not set: this is for build scripts")))
        };
        let features = std::env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
        Ok(CargoTarget {
            triple: given("TARGET")?,
            features: features.split(',').filter(|feature| !feature.is_empty()).map(str::to_string).collect(),
            has_system: std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system != "none"),
            manifest_dir: given("CARGO_MANIFEST_DIR")?.into(),
            out_dir: given("OUT_DIR")?.into(),
        })
    }

    /// Applies the target to options; their processor features follow and override the target's features.
    pub(crate) fn options(&self, options: AotCompilationOptions) -> AotCompilationOptions {
        let AotCompilationOptions { cpus, features, abi, .. } = options.clone();
        // An explicitly named processor implies its features.
        let has = if cpus.is_empty() { self.llvm_features() } else { Vec::new() };
        AotCompilationOptions {
            target: Some(self.llvm_triple()),
            features: has.into_iter().chain(features).collect(),
            abi: abi.or_else(|| self.abi()),
            relocation: if self.has_system { Relocation::Pic } else { Relocation::Static },
            ..options
        }
    }

    /// Returns LLVM's triple. Only for RISC-V, Rust's architecture name lists extensions, which are removed.
    fn llvm_triple(&self) -> String {
        match self.triple.split_once('-') {
            Some((arch, rest)) if arch.starts_with("riscv") => format!("{}-{rest}", &arch[..arch.len().min(7)]),
            _ => self.triple.clone(),
        }
    }

    fn llvm_features(&self) -> Vec<String> {
        let arch = self.triple.split('-').next().unwrap_or_default();
        let is_arm = arch.starts_with("arm") || arch.starts_with("thumb");
        let is_of = |of: &str| match of {
            "arm" => is_arm,
            of => arch.starts_with(of),
        };
        let has = |rust: &str| self.features.iter().any(|feature| feature == rust);
        let known = FEATURES.iter().filter(|(of, rust, _)| is_of(of) && has(rust));
        known.map(|(_, _, llvm)| format!("+{llvm}")).collect()
    }

    /// Returns RISC-V's ABI, which determines the floating-point registers for arguments; all objects of a link must
    /// use the same.
    fn abi(&self) -> Option<String> {
        let bits = if self.triple.starts_with("riscv64") { "lp64" } else { "ilp32" };
        let has = |extension: &str| self.features.iter().any(|feature| feature == extension);
        let registers = match () {
            () if has("d") => "d",
            () if has("f") => "f",
            () => "",
        };
        self.triple.starts_with("riscv").then(|| format!("{bits}{registers}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(triple: &str, features: &str) -> (String, String, Option<String>) {
        let features = features.split(',').map(str::to_string).collect();
        let target = CargoTarget { triple: triple.to_string(), features, ..CargoTarget::default() };
        let options = target.options(AotCompilationOptions::default());
        (options.target.unwrap(), options.features.join(","), options.abi)
    }

    #[test]
    fn targets_are_told_in_llvms_words() {
        let expected = |target: &str, features: &str, abi: Option<&str>| {
            (target.to_string(), features.to_string(), abi.map(str::to_string))
        };
        assert_eq!(
            options("riscv64gc-unknown-linux-gnu", "a,c,d,f,m,zicsr"),
            expected("riscv64-unknown-linux-gnu", "+m,+a,+c,+f,+d", Some("lp64d"))
        );
        assert_eq!(
            options("riscv32imac-unknown-none-elf", "a,c,m"),
            expected("riscv32-unknown-none-elf", "+m,+a,+c", Some("ilp32"))
        );
        assert_eq!(
            options("x86_64-unknown-linux-gnu", "bmi1,fxsr,sse,sse2,avx2"),
            expected("x86_64-unknown-linux-gnu", "+bmi,+avx2", None)
        );
        assert_eq!(options("thumbv7em-none-eabihf", "mclass,vfp2"), expected("thumbv7em-none-eabihf", "+vfp2", None));
    }
}
