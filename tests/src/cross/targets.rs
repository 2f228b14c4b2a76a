//! Targets of cross runs: how they are named, emulated, and asked for something.

/// A kind of processor under Linux.
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

/// A system call of Linux with three arguments.
#[derive(Clone, Copy, Debug)]
pub struct SystemCall {
    /// The instruction.
    pub instruction: &'static str,
    /// Registers as constraints of inline assembly: the result, the number, three arguments, what changes.
    pub registers: &'static str,
    /// Number of `write`.
    pub write: u32,
    /// Number of `exit`.
    pub exit: u32,
}

const X86_64: SystemCall = SystemCall {
    instruction: "syscall",
    registers: "={rax},{rax},{rdi},{rsi},{rdx},~{rcx},~{r11},~{memory}",
    write: 1,
    exit: 60,
};
const AARCH64: SystemCall =
    SystemCall { instruction: "svc #0", registers: "={x0},{x8},{x0},{x1},{x2},~{memory}", write: 64, exit: 93 };
const RISCV: SystemCall =
    SystemCall { instruction: "ecall", registers: "={x10},{x17},{x10},{x11},{x12},~{memory}", write: 64, exit: 93 };
const S390X: SystemCall =
    SystemCall { instruction: "svc 0", registers: "={r2},{r1},{r2},{r3},{r4},~{memory}", write: 4, exit: 1 };
const POWERPC: SystemCall =
    SystemCall { instruction: "sc", registers: "={r3},{r0},{r3},{r4},{r5},~{cr0},~{memory}", write: 4, exit: 1 };
const ARM: SystemCall =
    SystemCall { instruction: "svc #0", registers: "={r0},{r7},{r0},{r1},{r2},~{memory}", write: 4, exit: 1 };

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
];
