//! Targets of cross runs: how they are named, emulated, and asked for something.

/// A kind of processor under Linux, or WebAssembly in Node.
#[derive(Debug)]
pub struct CrossTarget {
    /// Name in this runner.
    pub name: &'static str,
    /// LLVM's triple.
    pub triple: &'static str,
    /// Processor, if it is not the triple's baseline.
    pub cpu: Option<&'static str>,
    /// Features beside the processor's.
    pub features: &'static [&'static str],
    /// The emulator and its options; none for this machine.
    pub emulator: &'static [&'static str],
    /// Way to call the system.
    pub system: SystemCall,
}

/// A call of the system with a number and three arguments.
#[derive(Clone, Copy, Debug)]
pub struct SystemCall {
    /// Means of the call.
    pub by: CallBy,
    /// Number of `write`.
    pub write: u32,
    /// Number of `exit`.
    pub exit: u32,
}

/// Means of a call of the system.
#[derive(Clone, Copy, Debug)]
pub enum CallBy {
    /// An instruction, with registers as constraints of inline assembly: the result, the number, three arguments, what
    /// changes.
    Instruction(&'static str, &'static str),
    /// The function `system` of module `env`, which who runs the WebAssembly gives to it.
    Import,
}

impl CrossTarget {
    /// Whether this machine can run the target's programs, as far as its processor has a part in it.
    pub fn runs_here(&self) -> bool {
        !self.emulator.is_empty() || has_level(self.cpu.unwrap_or_default())
    }

    /// Whether programs are WebAssembly.
    pub fn is_wasm(&self) -> bool {
        matches!(self.system.by, CallBy::Import)
    }
}

/// Whether this machine has what that level of x86-64 is made of.
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

/// Whether this machine has what that level of x86-64 is made of.
#[cfg(not(target_arch = "x86_64"))]
fn has_level(_: &str) -> bool {
    false
}

/// Gives a module the function that its start imports.
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

/// All targets.
pub const TARGETS: &[CrossTarget] = &[
    CrossTarget {
        name: "x86_64",
        triple: "x86_64-unknown-linux-gnu",
        cpu: None,
        features: &[],
        emulator: &[],
        system: X86_64,
    },
    CrossTarget {
        name: "x86_64-v3",
        triple: "x86_64-unknown-linux-gnu",
        cpu: Some("x86-64-v3"),
        features: &[],
        emulator: &[],
        system: X86_64,
    },
    CrossTarget {
        name: "x86_64-v4",
        triple: "x86_64-unknown-linux-gnu",
        cpu: Some("x86-64-v4"),
        features: &[],
        emulator: &[],
        system: X86_64,
    },
    CrossTarget {
        name: "aarch64",
        triple: "aarch64-unknown-linux-gnu",
        cpu: None,
        features: &[],
        emulator: &["qemu-aarch64"],
        system: AARCH64,
    },
    CrossTarget {
        name: "riscv64",
        triple: "riscv64-unknown-linux-gnu",
        cpu: None,
        features: &[],
        emulator: &["qemu-riscv64"],
        system: RISCV,
    },
    CrossTarget {
        name: "riscv64-v",
        triple: "riscv64-unknown-linux-gnu",
        cpu: None,
        features: &["+v"],
        emulator: &["qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=128"],
        system: RISCV,
    },
    CrossTarget {
        name: "riscv64-v256",
        triple: "riscv64-unknown-linux-gnu",
        cpu: None,
        features: &["+v", "+zvl256b"],
        emulator: &["qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=256"],
        system: RISCV,
    },
    CrossTarget {
        name: "s390x",
        triple: "s390x-unknown-linux-gnu",
        cpu: None,
        features: &[],
        emulator: &["qemu-s390x"],
        system: S390X,
    },
    CrossTarget {
        name: "powerpc64le",
        triple: "powerpc64le-unknown-linux-gnu",
        cpu: None,
        features: &[],
        emulator: &["qemu-ppc64le"],
        system: POWERPC,
    },
    CrossTarget {
        name: "armv7",
        triple: "armv7-unknown-linux-gnueabihf",
        cpu: None,
        features: &[],
        emulator: &["qemu-arm"],
        system: ARM,
    },
    CrossTarget {
        name: "hexagon",
        triple: "hexagon-unknown-linux-musl",
        cpu: Some("hexagonv67"),
        features: &[],
        emulator: &["qemu-hexagon"],
        system: HEXAGON,
    },
    CrossTarget {
        name: "wasm32",
        triple: "wasm32-unknown-unknown",
        cpu: None,
        features: &[],
        emulator: &["node", "-e", NODE],
        system: WASM,
    },
    CrossTarget {
        name: "wasm32-simd",
        triple: "wasm32-unknown-unknown",
        cpu: None,
        features: &["+simd128"],
        emulator: &["node", "-e", NODE],
        system: WASM,
    },
];
