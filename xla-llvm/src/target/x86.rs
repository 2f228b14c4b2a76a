//! Features of x86 that code may use, and the checks that detect them at run time.

use std::collections::{BTreeMap, BTreeSet};

use super::Target;
use super::triple::family;

/// Features of LLVM's processors, and features that features imply; written by `cargo xtask llvm-names`.
pub const FEATURES_OF: &str = include_str!("x86_features.txt");

/// State of XMM and YMM registers in XCR0, which an operating system saves.
pub const AVX_STATE: u32 = 0x06;
/// [`AVX_STATE`] plus mask registers and ZMM registers.
pub const AVX512_STATE: u32 = 0xe6;
/// General-purpose registers of APX.
const APX_STATE: u32 = 1 << 19;

/// Result register of `cpuid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CpuidRegister {
    /// EAX.
    Eax,
    /// EBX.
    Ebx,
    /// ECX.
    Ecx,
    /// EDX.
    Edx,
}

/// Word that `cpuid` returns: its leaf and subleaf, and the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuidWord {
    /// Input in EAX.
    pub leaf: u32,
    /// Input in ECX.
    pub subleaf: u32,
    /// Register that returns the word.
    pub register: CpuidRegister,
}

/// Comparison of bits of a [`CpuidWord`]: `word & mask >= least`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuidCheck {
    /// Bits that are compared.
    pub mask: u32,
    /// Minimum value of these bits; equal to the mask if all of them must be set.
    pub least: u32,
}

/// Checks that an x86 processor and its operating system must pass to run a target's code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct X86Checks {
    /// Checks of `cpuid`.
    pub cpuid: BTreeMap<CpuidWord, CpuidCheck>,
    /// Bits of XCR0 (state that the operating system saves) that must be set. 0 means that the register is not read.
    pub state: u32,
}

/// Feature that LLVM's code generator may use for generic code: name, `cpuid` word, check, XCR0 state.
pub struct Feature(pub &'static str, CpuidWord, CpuidCheck, u32);

const fn word(leaf: u32, subleaf: u32, register: CpuidRegister) -> CpuidWord {
    CpuidWord { leaf, subleaf, register }
}

const fn bit(number: u32) -> CpuidCheck {
    CpuidCheck { mask: 1 << number, least: 1 << number }
}

const EDX_1: CpuidWord = word(1, 0, CpuidRegister::Edx);
const ECX_1: CpuidWord = word(1, 0, CpuidRegister::Ecx);
const EBX_7: CpuidWord = word(7, 0, CpuidRegister::Ebx);
const ECX_7: CpuidWord = word(7, 0, CpuidRegister::Ecx);
const EDX_7: CpuidWord = word(7, 0, CpuidRegister::Edx);
const EAX_7_1: CpuidWord = word(7, 1, CpuidRegister::Eax);
const EDX_7_1: CpuidWord = word(7, 1, CpuidRegister::Edx);
/// Leaf 36, with the version of AVX10 in the lowest byte.
const EBX_36: CpuidWord = word(36, 0, CpuidRegister::Ebx);
const ECX_EXTENDED: CpuidWord = word(0x8000_0001, 0, CpuidRegister::Ecx);

/// Bit of ECX in leaf 1 that signals operating system support for `xgetbv`.
pub const OSXSAVE: (CpuidWord, u32) = (ECX_1, 1 << 27);

/// Checked features. Excludes those for keys, hashes, tiles and system registers, which only intrinsics use.
pub const FEATURES: &[Feature] = &[
    Feature("cmov", EDX_1, bit(15), 0),
    Feature("sse", EDX_1, bit(25), 0),
    Feature("sse2", EDX_1, bit(26), 0),
    Feature("sse3", ECX_1, bit(0), 0),
    Feature("pclmul", ECX_1, bit(1), 0),
    Feature("ssse3", ECX_1, bit(9), 0),
    Feature("fma", ECX_1, bit(12), AVX_STATE),
    Feature("sse4.1", ECX_1, bit(19), 0),
    Feature("sse4.2", ECX_1, bit(20), 0),
    Feature("movbe", ECX_1, bit(22), 0),
    Feature("popcnt", ECX_1, bit(23), 0),
    Feature("avx", ECX_1, bit(28), AVX_STATE),
    Feature("f16c", ECX_1, bit(29), AVX_STATE),
    Feature("bmi", EBX_7, bit(3), 0),
    Feature("avx2", EBX_7, bit(5), AVX_STATE),
    Feature("bmi2", EBX_7, bit(8), 0),
    Feature("avx512f", EBX_7, bit(16), AVX512_STATE),
    Feature("avx512dq", EBX_7, bit(17), AVX512_STATE),
    Feature("adx", EBX_7, bit(19), 0),
    Feature("avx512ifma", EBX_7, bit(21), AVX512_STATE),
    Feature("avx512cd", EBX_7, bit(28), AVX512_STATE),
    Feature("avx512bw", EBX_7, bit(30), AVX512_STATE),
    Feature("avx512vl", EBX_7, bit(31), AVX512_STATE),
    Feature("avx512vbmi", ECX_7, bit(1), AVX512_STATE),
    Feature("avx512vbmi2", ECX_7, bit(6), AVX512_STATE),
    Feature("gfni", ECX_7, bit(8), 0),
    Feature("vpclmulqdq", ECX_7, bit(10), AVX_STATE),
    Feature("avx512vnni", ECX_7, bit(11), AVX512_STATE),
    Feature("avx512bitalg", ECX_7, bit(12), AVX512_STATE),
    Feature("avx512vpopcntdq", ECX_7, bit(14), AVX512_STATE),
    Feature("avx512fp16", EDX_7, bit(23), AVX512_STATE),
    Feature("avxvnni", EAX_7_1, bit(4), AVX_STATE),
    Feature("avx512bf16", EAX_7_1, bit(5), AVX512_STATE),
    Feature("avxifma", EAX_7_1, bit(23), AVX_STATE),
    Feature("avxvnniint8", EDX_7_1, bit(4), AVX_STATE),
    Feature("avxneconvert", EDX_7_1, bit(5), AVX_STATE),
    Feature("avxvnniint16", EDX_7_1, bit(10), AVX_STATE),
    Feature("avx10.1", EDX_7_1, bit(19), AVX512_STATE),
    Feature("avx10.2", EBX_36, CpuidCheck { mask: 0xff, least: 2 }, AVX512_STATE),
    Feature("egpr", EDX_7_1, bit(21), APX_STATE),
    Feature("ndd", EDX_7_1, bit(21), APX_STATE),
    Feature("ccmp", EDX_7_1, bit(21), APX_STATE),
    Feature("nf", EDX_7_1, bit(21), APX_STATE),
    Feature("cf", EDX_7_1, bit(21), APX_STATE),
    Feature("zu", EDX_7_1, bit(21), APX_STATE),
    Feature("ppx", EDX_7_1, bit(21), APX_STATE),
    Feature("push2pop2", EDX_7_1, bit(21), APX_STATE),
    Feature("lzcnt", ECX_EXTENDED, bit(5), 0),
    Feature("sse4a", ECX_EXTENDED, bit(6), 0),
    Feature("prfchw", ECX_EXTENDED, bit(8), 0),
    Feature("xop", ECX_EXTENDED, bit(11), AVX_STATE),
    Feature("fma4", ECX_EXTENDED, bit(16), AVX_STATE),
    Feature("tbm", ECX_EXTENDED, bit(21), 0),
];

/// Features that every 64-bit processor has.
pub const OF_ALL: &[&str] = &["cmov", "sse", "sse2"];

impl Target {
    /// Returns the checks that a processor must pass to run this target's code, beyond the baseline of the triple's
    /// architecture. `None` if there are none, and for architectures other than x86.
    pub fn x86_checks(&self) -> Option<X86Checks> {
        if !self.is_x86() {
            return None;
        }
        let has = features(self.cpu(), self.features());
        let of_all: &[&str] = if self.is_x86_64() { OF_ALL } else { &[] };
        let mut checks = X86Checks::default();
        for Feature(_, word, check, state) in FEATURES.iter().filter(|f| has.contains(f.0) && !of_all.contains(&f.0)) {
            let all = checks.cpuid.entry(*word).or_default();
            *all = CpuidCheck { mask: all.mask | check.mask, least: all.least | check.least };
            checks.state |= state;
        }
        if self.triple().contains("-apple-") {
            // Darwin saves AVX-512 registers only from their first use on; before that, XCR0 lacks the state.
            checks.state &= !(AVX512_STATE & !AVX_STATE);
        }
        Some(checks).filter(|checks| !checks.cpuid.is_empty())
    }

    /// Whether code is x86, of 32 or 64 bits.
    pub fn is_x86(&self) -> bool {
        family(self.triple().split('-').next().unwrap_or_default()) == Some("x86")
    }

    /// Whether code is x86-64, with any pointer width.
    pub fn is_x86_64(&self) -> bool {
        ["x86_64", "x86_64h", "amd64"].contains(&self.triple().split('-').next().unwrap_or_default())
    }
}

/// Returns the features of a processor after changes, with LLVM's semantics: adding a feature adds the features that it
/// implies, and removing one removes the features that imply it.
pub fn features(cpu: &str, changes: &str) -> BTreeSet<&'static str> {
    let mut has = BTreeSet::new();
    for feature in line(cpu) {
        has.extend(closure(feature));
    }
    for change in changes.split(',') {
        let Some(name) = change.get(1..).and_then(known) else { continue };
        if change.starts_with('+') {
            has.extend(closure(name));
        } else {
            has.retain(|feature| !closure(feature).contains(name));
        }
    }
    has
}

/// Returns the static name of a feature that is in [`FEATURES`] or in the file.
fn known(name: &str) -> Option<&'static str> {
    let checked = FEATURES.iter().map(|feature| feature.0).find(|feature| *feature == name);
    checked.or_else(|| {
        FEATURES_OF
            .lines()
            .find_map(|line| line.strip_prefix('+')?.split_once(": ").filter(|(f, _)| *f == name).map(|(f, _)| f))
    })
}

/// Returns a feature with all features that it implies, transitively.
fn closure(feature: &'static str) -> BTreeSet<&'static str> {
    let mut all = BTreeSet::from([feature]);
    let mut left = vec![feature];
    while let Some(feature) = left.pop() {
        left.extend(line(&format!("+{feature}")).filter(|implied| all.insert(implied)));
    }
    all
}

/// Returns the names in the file's line with this title.
fn line(title: &str) -> impl Iterator<Item = &'static str> {
    let lines = FEATURES_OF.lines().filter_map(|line| line.split_once(": "));
    let names = lines.filter(move |(name, _)| *name == title).map(|(_, names)| names).next();
    names.unwrap_or_default().split_whitespace()
}
