//! Targets of cross runs: triples, emulators and system calls.

use std::path::PathBuf;

/// Processor with Linux, or WebAssembly in Node.
#[derive(Debug)]
pub struct CrossTarget {
    /// Name of the target in this runner.
    pub name: &'static str,
    /// LLVM triple.
    pub triple: &'static str,
    /// Processors that objects have variants for, the least capable one first; empty for the triple's baseline.
    pub cpus: &'static [&'static str],
    /// Features in addition to the processor's.
    pub features: &'static [&'static str],
    /// Emulator and its options; empty for this machine.
    pub emulator: &'static [&'static str],
    /// Method of system calls.
    pub system: SystemCall,
    /// Builtins that programs may call.
    pub builtins: Builtins,
}

/// System call with a number and three arguments.
#[derive(Clone, Copy, Debug)]
pub struct SystemCall {
    /// Means of the call.
    pub by: CallBy,
    /// Number of `write`.
    pub write: u32,
    /// Number of `exit`.
    pub exit: u32,
}

/// Means of a system call.
#[derive(Clone, Copy, Debug)]
pub enum CallBy {
    /// Instruction, with registers as constraints of inline assembly: result, number, three arguments, clobbers.
    Instruction(&'static str, &'static str),
    /// Imported function `system` of module `env`, which the WebAssembly host provides.
    Import,
}

/// Builtins: functions that every compiler provides for a processor.
#[derive(Clone, Copy, Debug)]
pub enum Builtins {
    /// Programs call no builtins.
    None,
    /// `libgcc.a` of GCC's cross compiler, in a subfolder of this folder (Debian: `libgcc-12-dev-armhf-cross`).
    Gcc(&'static str),
    /// Builtins defined by the start code: names, and their LLVM IR.
    Here(&'static [&'static str], &'static str),
}

impl Builtins {
    /// Returns the path of `libgcc.a`, if it is installed.
    pub fn library(self) -> Option<PathBuf> {
        let Builtins::Gcc(folder) = self else { return None };
        let versions = std::fs::read_dir(folder).ok()?;
        versions.flatten().map(|version| version.path().join("libgcc.a")).find(|library| library.exists())
    }

    /// Whether a builtin is available.
    pub fn has(self, name: &str) -> bool {
        match self {
            Builtins::None => false,
            Builtins::Gcc(_) => self.library().is_some(),
            Builtins::Here(names, _) => names.contains(&name),
        }
    }
}

impl CrossTarget {
    /// Whether this machine can run the target's programs: in an emulator, or because its processor has the features.
    pub fn runs_here(&self) -> bool {
        !self.emulator.is_empty() || has_level(self.cpus.first().unwrap_or(&""))
    }

    /// Whether the target is WebAssembly.
    pub fn is_wasm(&self) -> bool {
        matches!(self.system.by, CallBy::Import)
    }
}

/// Whether this machine has all features of an x86-64 level.
#[cfg(target_arch = "x86_64")]
fn has_level(level: &str) -> bool {
    let third = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("bmi2");
    let fourth = is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512cd");
    match level {
        "x86-64-v4" => third && fourth,
        "x86-64-v3" => third,
        _ => true,
    }
}

/// Whether this machine has all features of an x86-64 level.
#[cfg(not(target_arch = "x86_64"))]
fn has_level(_: &str) -> bool {
    false
}

/// Node script that runs a module and provides its imported function.
const NODE: &str = r#"
const { readFileSync, writeSync } = require("fs");
const module = new WebAssembly.Module(readFileSync(process.argv[1]));
const system = (number, one, place, bytes) => {
  if (number === 1) process.exit(one);
  return writeSync(1, new Uint8Array(instance.exports.memory.buffer, place, bytes));
};
const instance = new WebAssembly.Instance(module, { env: { system } });
instance.exports._start();
"#;

const X86_64: SystemCall = SystemCall {
    by: CallBy::Instruction("syscall", "={rax},{rax},{rdi},{rsi},{rdx},~{rcx},~{r11},~{memory}"),
    write: 1,
    exit: 60,
};
const I686: SystemCall =
    SystemCall { by: CallBy::Instruction("int $$0x80", "={eax},{eax},{ebx},{ecx},{edx},~{memory}"), write: 4, exit: 1 };
const AARCH64: SystemCall =
    SystemCall { by: CallBy::Instruction("svc #0", "={x0},{x8},{x0},{x1},{x2},~{memory}"), write: 64, exit: 93 };
const RISCV: SystemCall =
    SystemCall { by: CallBy::Instruction("ecall", "={x10},{x17},{x10},{x11},{x12},~{memory}"), write: 64, exit: 93 };
const S390X: SystemCall =
    SystemCall { by: CallBy::Instruction("svc 0", "={r2},{r1},{r2},{r3},{r4},~{memory}"), write: 4, exit: 1 };
const POWERPC: SystemCall =
    SystemCall { by: CallBy::Instruction("sc", "={r3},{r0},{r3},{r4},{r5},~{cr0},~{memory}"), write: 4, exit: 1 };
const ARM: SystemCall =
    SystemCall { by: CallBy::Instruction("svc #0", "={r0},{r7},{r0},{r1},{r2},~{memory}"), write: 4, exit: 1 };
const HEXAGON: SystemCall =
    SystemCall { by: CallBy::Instruction("trap0(#1)", "={r0},{r6},{r0},{r1},{r2},~{memory}"), write: 64, exit: 93 };
const WASM: SystemCall = SystemCall { by: CallBy::Import, write: 0, exit: 1 };

/// Square root: Newton iterations on the reciprocal root from an initial guess by its bits, and one on the root, with a
/// single rounding.
const HEXAGON_SQUARE_ROOT: &str = "
define float @__hexagon_sqrtf(float %x) {
entry:
  %positive = fcmp ogt float %x, 0.0
  %finite = fcmp olt float %x, 0x7FF0000000000000
  %usual = and i1 %positive, %finite
  br i1 %usual, label %root, label %special
special:
  %negative = fcmp olt float %x, 0.0
  %else = select i1 %negative, float 0x7FF8000000000000, float %x
  ret float %else
root:
  %bits = bitcast float %x to i32
  %half = lshr i32 %bits, 1
  %guess = sub i32 1597463007, %half
  %start = bitcast i32 %guess to float
  %h = fmul float %x, 5.0e-1
  br label %step
step:
  %r = phi float [ %start, %root ], [ %next, %step ]
  %n = phi i32 [ 0, %root ], [ %m, %step ]
  %s = fmul float %r, %r
  %d = fmul float %s, %h
  %f = fsub float 1.5, %d
  %next = fmul float %r, %f
  %m = add i32 %n, 1
  %more = icmp ult i32 %m, 4
  br i1 %more, label %step, label %end
end:
  %y = fmul float %x, %next
  %minus = fneg float %y
  %e = call float @llvm.fma.f32(float %minus, float %y, float %x)
  %g = fmul float %next, 5.0e-1
  %z = call float @llvm.fma.f32(float %e, float %g, float %y)
  ret float %z
}
declare float @llvm.fma.f32(float, float, float)
";

/// All targets.
pub const TARGETS: &[CrossTarget] = &[
    CrossTarget {
        name: "x86_64",
        triple: "x86_64-unknown-linux-gnu",
        cpus: &[],
        features: &[],
        emulator: &[],
        system: X86_64,
        builtins: Builtins::None,
    },
    CrossTarget {
        name: "x86_64-v3",
        triple: "x86_64-unknown-linux-gnu",
        cpus: &["x86-64-v3"],
        features: &[],
        emulator: &[],
        system: X86_64,
        builtins: Builtins::None,
    },
    CrossTarget {
        name: "x86_64-v4",
        triple: "x86_64-unknown-linux-gnu",
        cpus: &["x86-64-v4"],
        features: &[],
        emulator: &[],
        system: X86_64,
        builtins: Builtins::None,
    },
    CrossTarget {
        name: "x86_64-levels",
        triple: "x86_64-unknown-linux-gnu",
        cpus: &["x86-64", "x86-64-v3", "x86-64-v4"],
        features: &[],
        emulator: &[],
        system: X86_64,
        builtins: Builtins::None,
    },
    CrossTarget {
        name: "x86_64-levels-nehalem",
        triple: "x86_64-unknown-linux-gnu",
        cpus: &["x86-64-v2", "x86-64-v3", "x86-64-v4"],
        features: &[],
        emulator: &["qemu-x86_64", "-cpu", "Nehalem"],
        system: X86_64,
        builtins: Builtins::None,
    },
    CrossTarget {
        name: "i686",
        triple: "i686-unknown-linux-gnu",
        cpus: &[],
        features: &[],
        emulator: &["qemu-i386"],
        system: I686,
        builtins: Builtins::None,
    },
    CrossTarget {
        name: "aarch64",
        triple: "aarch64-unknown-linux-gnu",
        cpus: &[],
        features: &[],
        emulator: &["qemu-aarch64"],
        system: AARCH64,
        builtins: Builtins::None,
    },
    CrossTarget {
        name: "aarch64-i8mm",
        triple: "aarch64-unknown-linux-gnu",
        cpus: &[],
        features: &["+dotprod", "+i8mm"],
        emulator: &["qemu-aarch64", "-cpu", "max"],
        system: AARCH64,
        builtins: Builtins::None,
    },
    CrossTarget {
        name: "riscv64",
        triple: "riscv64-unknown-linux-gnu",
        cpus: &[],
        features: &[],
        emulator: &["qemu-riscv64"],
        system: RISCV,
        builtins: Builtins::None,
    },
    CrossTarget {
        name: "riscv64-v",
        triple: "riscv64-unknown-linux-gnu",
        cpus: &[],
        features: &["+v"],
        emulator: &["qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=128"],
        system: RISCV,
        builtins: Builtins::None,
    },
    CrossTarget {
        name: "riscv64-v256",
        triple: "riscv64-unknown-linux-gnu",
        cpus: &[],
        features: &["+v", "+zvl256b"],
        emulator: &["qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=256"],
        system: RISCV,
        builtins: Builtins::None,
    },
    CrossTarget {
        name: "s390x",
        triple: "s390x-unknown-linux-gnu",
        cpus: &[],
        features: &[],
        emulator: &["qemu-s390x"],
        system: S390X,
        builtins: Builtins::None,
    },
    CrossTarget {
        name: "powerpc64le",
        triple: "powerpc64le-unknown-linux-gnu",
        cpus: &[],
        features: &[],
        emulator: &["qemu-ppc64le"],
        system: POWERPC,
        builtins: Builtins::None,
    },
    CrossTarget {
        name: "armv7",
        triple: "armv7-unknown-linux-gnueabihf",
        cpus: &[],
        features: &[],
        emulator: &["qemu-arm"],
        system: ARM,
        builtins: Builtins::Gcc("/usr/lib/gcc-cross/arm-linux-gnueabihf"),
    },
    CrossTarget {
        name: "hexagon",
        triple: "hexagon-unknown-linux-musl",
        cpus: &["hexagonv67"],
        features: &[],
        emulator: &["qemu-hexagon"],
        system: HEXAGON,
        builtins: Builtins::Here(&["__hexagon_sqrtf"], HEXAGON_SQUARE_ROOT),
    },
    CrossTarget {
        name: "wasm32",
        triple: "wasm32-unknown-unknown",
        cpus: &[],
        features: &[],
        emulator: &["node", "-e", NODE],
        system: WASM,
        builtins: Builtins::None,
    },
    CrossTarget {
        name: "wasm32-simd",
        triple: "wasm32-unknown-unknown",
        cpus: &[],
        features: &["+simd128"],
        emulator: &["node", "-e", NODE],
        system: WASM,
        builtins: Builtins::None,
    },
];
